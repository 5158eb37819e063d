"""DFTracer: every call of POSIX and of Python functions that are marked, at a low price."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from ioprism.recording.command import Command
from ioprism.recording.process import ask
from ioprism.recording.tracer import INHERITED, Start, hidden_stat, preload_obstacle, preloaded

LIBRARY = "lib64/libdftracer_preload.so"
# Bytes of events that are kept in memory: what a killed process loses, about 20 calls. Its default
# is 1 MiB, which loses short programs altogether and saved no measurable time per call.
KEPT_IN_MEMORY = 4096
ASK = (
    "from importlib.util import find_spec; from importlib.metadata import version; "
    "print(find_spec('dftracer').submodule_search_locations[0]); print(version('dftracer'))"
)


@dataclass(frozen=True, slots=True)
class DFTracer:
    """The DFTracer of a Python environment."""

    library: str
    number: str
    name: str = "dftracer"

    @property
    def version(self) -> str:
        """What it says of itself."""
        return f"DFTracer {self.number}"

    @property
    def where(self) -> str:
        """The library that is preloaded."""
        return self.library

    def obstacle(self, command: Command) -> str | None:
        """Return why it cannot record this command, or None."""
        return preload_obstacle(command, "DFTracer")

    def blind_spots(self, command: Command) -> tuple[str, ...]:
        """Return what it cannot see of this command."""
        mpi = ("MPI-IO calls (only the POSIX calls below them)",) if command.program.mpi else ()
        return (
            *mpi,
            *hidden_stat(),
            "bytes of buffered streams (fprintf, fputs, putc; fwrite and fread are seen)",
            INHERITED,
            "accesses to mapped files (mmap)",
            "statically linked child processes",
            "the last 20 calls or so of a process that is killed",
        )

    def start(self, command: Command, folder: Path) -> Start:
        """Return how to run the command so that traces go to the folder."""
        variables = {
            "DFTRACER_ENABLE": "1",
            "DFTRACER_INIT": "PRELOAD",
            "DFTRACER_INC_METADATA": "1",
            "DFTRACER_DATA_DIR": "all",
            "DFTRACER_TRACE_COMPRESSION": "0",  # a killed process leaves every line written so far
            "DFTRACER_WRITE_BUFFER_SIZE": str(KEPT_IN_MEMORY),
            "DFTRACER_LOG_FILE": str(folder / command.program.name),
        }
        return preloaded(command, self.library, variables)


def find_dftracer() -> DFTracer | None:
    """Return the DFTracer of our Python, else of the `python3` in PATH; None where both lack it."""
    spec = find_spec("dftracer")
    if spec is not None and spec.submodule_search_locations:
        found = [spec.submodule_search_locations[0], metadata.version("dftracer")]
    else:
        found = ask(["python3", "-c", ASK]).split("\n")[:2]
    if len(found) == 2 and (library := Path(found[0]) / LIBRARY).is_file():
        return DFTracer(str(library), found[1])
    return None
