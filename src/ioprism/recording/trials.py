"""Try changes from outside a program, in turn with runs without them, until the answer is clear."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from ioprism.characteristics.details import by_file
from ioprism.comparison.changes import SAME
from ioprism.comparison.repetitions import MAX_FALSE_ALARM, Difference, difference
from ioprism.engine.base import Engine, LocalEngine
from ioprism.errors import RunFailedError, TraceError
from ioprism.formats.registry import read_trace
from ioprism.model.trace import HEIGHT, MIB, Trace
from ioprism.model.usage import is_data
from ioprism.recording.command import QUICK, CommandLine, call, last_words
from ioprism.recording.steps import TRIALS, Plan, run_once
from ioprism.storage.atomic import atomic_write_text
from ioprism.text import printable

LFS = "lfs"  # Lustre's command

BUFFER = 64 * MIB  # bytes of an aggregator: four times ROMIO's default
ALL_TARGETS = -1  # as a stripe count
LARGE_RUN = 16  # ranks from which not every rank should be an aggregator: one per node is usual


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """A folder on Lustre whose striping may be changed, and what was in it before the first run."""

    path: Path
    count: int  # of targets, for new files; 0: as the file system has it
    existing: frozenset[Path]

    def command(self, count: int) -> list[str]:
        """Return the words that set the number of targets of new files."""
        return [LFS, "setstripe", "-c", str(count), str(self.path)]

    def made(self) -> list[Path]:
        """Return the files that were made since."""
        files = (path for path in self.path.rglob("*") if path not in self.existing)
        return [path for path in files if path.is_file() and not path.is_symlink()]

    def stripes(self) -> tuple[int, ...]:
        """Return on how many targets each of them lies."""
        return tuple(sorted(_stripe_count(path) for path in self.made()))

    @contextmanager
    def prepared(self, count: int) -> Iterator[None]:
        """Remove what the last run made, as only new files are striped anew; set the striping.

        Raises:
            RunFailedError: it cannot be set.
        """
        for path in self.made():
            path.unlink()
        call(self.command(count), failure="striping cannot be set", timeout=QUICK)
        try:
            yield
        finally:
            call(self.command(self.count), failure="striping cannot be set back", timeout=QUICK)


def look_at_output(folder: Path) -> OutputFolder:
    """Return a folder as it is before the first run.

    Raises:
        RunFailedError: it is not on Lustre.
    """
    return OutputFolder(folder, _stripe_count(folder, "-d"), frozenset(folder.rglob("*")))


def _stripe_count(path: Path, *options: str) -> int:
    words = [LFS, "getstripe", *options, "-c", str(path)]
    failure = f"the striping of {printable(str(path))} is not known"
    said = call(words, failure=failure, timeout=QUICK).strip()
    if not said.lstrip("-").isdecimal():
        raise RunFailedError(f"{failure}: {last_words(said)}")
    return int(said)


@dataclass(frozen=True, slots=True)
class Hint:
    """One change to try."""

    name: str
    hints: Mapping[str, str]  # for ROMIO_HINTS
    variables: Mapping[str, str]  # for the environment of the ranks
    removes: frozenset[str]  # codes of causes and findings
    seen: bool = True  # whether the number or size of requests shows its effect
    stripes: OutputFolder | None = None  # whose new files lie on all targets

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
        lines = [f"export {key}={shlex.quote(value)}" for key, value in self.variables.items()]
        if self.stripes is not None:
            lines.append(shlex.join(self.stripes.command(ALL_TARGETS)))
        if self.hints:
            content = "\\n".join(f"{key} {value}" for key, value in self.hints.items())
            lines += [
                f"printf '{content}\\n' > romio.hints",
                'export ROMIO_HINTS="$PWD/romio.hints"',
            ]
        return lines


def fitting_hints(
    command: CommandLine, codes: Iterable[str], ranks: int, *, output: OutputFolder | None = None
) -> list[Hint]:
    """Return the changes for causes and findings, of the libraries that the program uses.

    The striping of `output` may be changed.
    """
    known = list(_libraries(command))
    if command.program.mpi:
        known += _ompio(ranks) if command.launcher == "open-mpi" else _romio(ranks)
    present = set(codes)
    fitting = [hint for hint in known if hint.removes & present]
    if output is not None:
        fitting.append(Hint("stripe-over-all-targets", {}, {}, frozenset(), stripes=output))
    return fitting


def _aggregators(ranks: int) -> str:
    return str(ranks if ranks < LARGE_RUN else max(LARGE_RUN // 2, ranks // LARGE_RUN))


def _libraries(command: CommandLine) -> Iterator[Hint]:
    """Yield what libraries take from the environment; HDF5 has no variable for alignment."""
    needed = () if command.program.linkage is None else command.program.linkage.needed
    if any(name.startswith("libhdf5") for name in needed):
        unlocked = {"HDF5_USE_FILE_LOCKING": "FALSE"}
        yield Hint("no-file-locking", {}, unlocked, frozenset({"metadata"}), seen=False)
    if any(name.startswith("libpnetcdf") for name in needed):
        # As the stripes of Lustre, unless somebody changed them.
        aligned = f"nc_header_align_size={MIB};nc_var_align_size={MIB}"
        misaligned = frozenset({"misalignment", "misaligned-file"})
        yield Hint("alignment", {}, {"PNETCDF_HINTS": aligned}, misaligned, seen=False)


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


Judgement = Literal["gain", "no gain", "undecided"]
# Before the first look: if one run in six is an outlier, three on one side and none on the other
# occur in 0.3 % of all trials and look like a gain beyond doubt; four in 0.04 %.
MIN_ROUNDS = 4
WORTH = 0.03  # of the run time: a gain below is not worth a line in a job script
EARLY_SHARE = 0.1  # of the chance of a false gain, for all looks but the last together


def judge(
    before: Sequence[float], after: Sequence[float], *, rounds: int, changes: int
) -> Judgement:
    """Judge the times of all rounds so far.

    Args:
        before: seconds of the runs without the change.
        after: seconds of the runs with it.
        rounds: how many there are at most; it is judged after each.
        changes: how many are tried.
    """
    done = min(len(before), len(after))
    if done < MIN_ROUNDS:
        return "undecided"
    early = max(rounds - MIN_ROUNDS, 1)  # looks before the last
    share = 1 - EARLY_SHARE if done >= rounds else EARLY_SHARE / early
    allowed = share * MAX_FALSE_ALARM / changes
    # The sides are swapped: ranks are discrete, so that 1 less the chance of the other tail is
    # smaller than the chance of a saving as large as this one.
    without = difference(after, before, false_alarm=allowed)
    if without.slower_by_chance is not None and without.slower_by_chance <= allowed:
        return "gain"
    # Against runs that are shorter by what is worth having: significantly longer than those.
    shorter = [(1 - WORTH) * seconds for seconds in before]
    hoped = difference(shorter, after, false_alarm=allowed)
    if hoped.slower_by_chance is not None and hoped.slower_by_chance <= allowed:
        return "no gain"
    return "undecided"


@dataclass(frozen=True, slots=True)
class Requests:
    """What a run asked of the system, on the files that it wrote."""

    reads: int
    writes: int
    bytes_read: int
    bytes_written: int
    stripes: tuple[int, ...] = ()  # on how many targets each file lies, where that may be changed


def requests_of(trace: Trace, engine: Engine) -> Requests:
    """Add up the requests on files that were written: starting up and reading hints are others."""
    rows = [
        row
        for row in by_file(trace, engine).iter_rows(named=True)
        if HEIGHT[row["layer"]] == 0 and row["bytes_written"] and is_data(row["path"] or "")
    ]
    names = [field.name for field in fields(Requests) if field.name != "stripes"]
    return Requests(*(sum(row[name] for row in rows) for name in names))


def same_requests(before: Requests, after: Requests) -> bool:
    """Whether two runs made the same requests: a hint then had no effect."""
    *old_sums, old_stripes = astuple(before)
    *new_sums, new_stripes = astuple(after)
    return old_stripes == new_stripes and all(
        abs(old - new) <= SAME * max(old, new) for old, new in zip(old_sums, new_sums, strict=True)
    )


@dataclass(slots=True, eq=False)
class Trial:
    """One change, and what came of it."""

    hint: Hint
    status: str = "undecided"  # gain, no gain, ignored, failed, undecided
    seconds: list[float] = field(default_factory=list)
    requests: tuple[int, int] | None = None  # reads and writes without and with it
    run_time: Difference | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.hint.name,
            "hints": dict(self.hint.hints),
            "variables": dict(self.hint.variables),
            "stripe_count": None if self.hint.stripes is None else ALL_TARGETS,
            "status": self.status,
            "seconds": self.seconds,
            "requests": None if self.requests is None else list(self.requests),
            "run_time": None if self.run_time is None else asdict(self.run_time),
            "script": self.hint.script_lines() if self.status == "gain" else [],
        }


def try_hints(
    plan: Plan, hints: Sequence[Hint], *, rounds: int, output: OutputFolder | None = None
) -> list[Trial]:
    """Run the command without and with each hint, round by round.

    Traces go to the folder `try` of the plan. What the program makes in `output` is removed before
    each run.
    """
    folder = plan.folder / TRIALS
    folder.mkdir()
    trials = [Trial(hint) for hint in hints]
    base: list[float] = []
    for number in range(1, rounds + 1):
        active = [trial for trial in trials if trial.status == "undecided"]
        # Every other round goes backwards, so that no side is always the first.
        order: list[Trial | None] = [None, *active] if number % 2 else [*reversed(active), None]
        outcomes = {trial: _run_trial(plan, trial, folder, number, output) for trial in order}
        plain, without = outcomes.pop(None)
        if not active or without is None:
            break
        base.append(without)
        for trial, (requests, seconds) in outcomes.items():
            if trial is not None:
                _judge(trial, requests, seconds, plain, base, rounds=rounds, changes=len(trials))
    return trials


def _run_trial(
    plan: Plan, trial: Trial | None, folder: Path, number: int, output: OutputFolder | None
) -> tuple[Requests | None, float | None]:
    """Run once, and return the requests and the seconds; no seconds if the program failed."""
    traces = folder / f"{trial.hint.name if trial else 'without'}-{number}"
    variables = trial.hint.write(folder) if trial else {}
    with ExitStack() as stack:
        if output is not None:
            striped = trial is not None and trial.hint.stripes is not None
            stack.enter_context(output.prepared(ALL_TARGETS if striped else output.count))
        run = run_once(plan, traces, variables=variables)
    requests = None
    with suppress(TraceError):
        requests = requests_of(read_trace(traces, grouping="one"), LocalEngine())
        if output is not None:
            requests = replace(requests, stripes=output.stripes())
    return requests, run.seconds if run.succeeded else None


def _judge(
    trial: Trial,
    requests: Requests | None,
    seconds: float | None,
    plain: Requests | None,
    base: Sequence[float],
    *,
    rounds: int,
    changes: int,
) -> None:
    """Note what one more round showed of a change."""
    if seconds is None:
        trial.status = "failed"
        return
    trial.seconds.append(seconds)
    trial.run_time = difference(base, trial.seconds)
    if requests is not None and plain is not None:
        trial.requests = (plain.reads + plain.writes, requests.reads + requests.writes)
        # The first run may differ because it makes the files that others overwrite.
        if trial.hint.seen and same_requests(plain, requests):
            trial.status = "ignored"
            return
    trial.status = judge(base, trial.seconds, rounds=rounds, changes=changes)
