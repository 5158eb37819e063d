"""Changes that can be made from outside a program: MPI-IO hints through a file or variables.

ROMIO (MPICH, Intel MPI, Cray) reads the file that ROMIO_HINTS names. Open MPI's own OMPIO reads MCA
parameters from variables. Both silently ignore unknown settings, so the trace has to show whether
a hint had an effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ioprism.recording.command import Command
from ioprism.storage.atomic import atomic_write_text

BUFFER = 64 * 2**20  # bytes of an aggregator: four times ROMIO's default
LARGE_RUN = 16  # ranks from which not every rank should be an aggregator: one per node is usual


@dataclass(frozen=True, slots=True)
class Hint:
    """One change to try."""

    name: str
    hints: Mapping[str, str]  # for ROMIO_HINTS
    variables: Mapping[str, str]  # for the environment of the ranks
    removes: frozenset[str]  # codes of causes and findings

    def write(self, folder: Path) -> dict[str, str]:
        """Write the file of hints, and return the variables that the ranks need."""
        if not self.hints:
            return dict(self.variables)
        file = folder / f"{self.name}.hints"
        text = "".join(f"{key} {value}\n" for key, value in self.hints.items())
        atomic_write_text(file, text, replace=True)
        return {**self.variables, "ROMIO_HINTS": str(file)}

    def script_lines(self) -> list[str]:
        """Return the lines for a job script."""
        lines = [f"export {key}={value}" for key, value in self.variables.items()]
        if self.hints:
            content = "\\n".join(f"{key} {value}" for key, value in self.hints.items())
            lines += [
                f"printf '{content}\\n' > romio.hints",
                'export ROMIO_HINTS="$PWD/romio.hints"',
            ]
        return lines


def fitting_hints(command: Command, codes: Iterable[str], ranks: int) -> list[Hint]:
    """Return the hints for causes and findings, of the MPI library that starts the program."""
    if not command.program.mpi:
        return []
    known = _ompio(ranks) if command.launcher == "open-mpi" else _romio(ranks)
    present = set(codes)
    return [hint for hint in known if hint.removes & present]


def _aggregators(ranks: int) -> str:
    return str(ranks if ranks < LARGE_RUN else max(LARGE_RUN // 2, ranks // LARGE_RUN))


SIEVED = frozenset({"read-modify-write", "data-sieving"})
SCATTERED = frozenset({"collective-not-aggregated"})
FUNNELLED = frozenset({"few-aggregators", "single-aggregator"})
EXCHANGED = frozenset({"collective-overhead"})


def _romio(ranks: int) -> Iterator[Hint]:
    yield Hint("no-data-sieving", {"romio_ds_write": "disable"}, {}, SIEVED)
    enable = {"romio_cb_write": "enable", "romio_cb_read": "enable"}
    yield Hint("collective-buffering", enable, {}, SCATTERED)
    disable = {"romio_cb_write": "disable", "romio_cb_read": "disable"}
    yield Hint("no-collective-buffering", disable, {}, EXCHANGED)
    aggregators = {"cb_nodes": _aggregators(ranks), "cb_config_list": "*:*"}
    yield Hint("more-aggregators", aggregators, {}, FUNNELLED)
    yield Hint("larger-buffer", {"cb_buffer_size": str(BUFFER)}, {}, SCATTERED | EXCHANGED)


def _ompio(ranks: int) -> Iterator[Hint]:
    romio = {"OMPI_MCA_io": "romio321"}  # the ROMIO that Open MPI 4 brings with it
    yield Hint("no-data-sieving", {"romio_ds_write": "disable"}, romio, SIEVED)
    yield Hint("two-phase", {}, {"OMPI_MCA_fcoll": "two_phase"}, SCATTERED)
    yield Hint("individual", {}, {"OMPI_MCA_fcoll": "individual"}, EXCHANGED)
    count = {"OMPI_MCA_io_ompio_num_aggregators": _aggregators(ranks)}
    yield Hint("more-aggregators", {}, count, FUNNELLED)
