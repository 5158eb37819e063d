"""From a command line to traces: choose a tracer, run, measure what it costs, keep what is left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ioprism.characteristics.totals import characterise
from ioprism.engine.local import LocalEngine
from ioprism.errors import OutputError, UsageError
from ioprism.formats.registry import read_trace
from ioprism.model.trace import Trace
from ioprism.recording.choice import Choice, choose_tracer
from ioprism.recording.command import Command, parse_command
from ioprism.recording.run import Outcome, TracerCost, measure_cost, run_program
from ioprism.storage.recordings import MARKER, RecordedRun, Recording, write_recording
from ioprism.text import printable

TEXT_TRACES = (".strace", ".pfw")  # one line for each call
PAGE = "report.html"
TRIALS = "try"  # the folder of what --try runs
LONGEST_NAME = 40  # characters of a program's name in the name of a folder


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be run, with which tracer, and where its traces go."""

    command: Command
    choice: Choice
    folder: Path
    cost: TracerCost | None  # measured here; None where the probe did not run

    @property
    def blind_spots(self) -> tuple[str, ...]:
        """What the tracer cannot see of this command."""
        return self.choice.tracer.blind_spots(self.command)


def plan_recording(
    words: Sequence[str], *, folder: Path | None, tracer: str = "auto", overwrite: bool = False
) -> Plan:
    """Choose the tracer, make the folder, and measure the tracer's cost.

    Raises:
        UsageError: no tracer fits, or the program cannot be found.
        OutputError: the folder cannot be used.
    """
    command = parse_command(words)
    if shutil.which(words[0]) is None:
        raise UsageError(
            f"{printable(words[0])}: no such program, or it cannot be executed.\n"
            "Hint: a program in the current folder is written ./NAME."
        )
    choice = choose_tracer(command, tracer)
    target = make_folder(folder, command.program.name, overwrite=overwrite)
    return Plan(command, choice, target, measure_cost(choice.tracer, target))


def _free_folder(program: str) -> Path:
    """Return the first name that is not taken in the current folder."""
    name = "".join(c if c.isalnum() or c in "._-" else "_" for c in program)[:LONGEST_NAME]
    number = 1
    while os.path.lexists(folder := Path(f"record-{name}-{number}")):
        number += 1
    return folder


def make_folder(wanted: Path | None, program: str, *, overwrite: bool) -> Path:
    """Make the folder of a recording; an earlier one is replaced only if that was asked for.

    Args:
        wanted: None: the first record-PROGRAM-1, -2, … that is not there.
        program: what is recorded.
        overwrite: whether an earlier recording is replaced.

    Raises:
        OutputError: it holds something else.
    """
    folder = wanted or _free_folder(program)
    if (folder / MARKER).is_file():
        if not overwrite:
            raise OutputError(
                f"{printable(str(folder))} holds a recording; not overwritten.\n"
                "Hint: use --force, or another folder."
            )
        shutil.rmtree(folder)
    elif folder.is_dir() and any(folder.iterdir()):
        raise OutputError(
            f"{printable(str(folder))} is not empty, and is not a recording.\n"
            "Hint: choose another folder."
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def record_runs(
    plan: Plan,
    *,
    repeat: int = 1,
    untraced: bool = False,
    stdout: int | None = None,
    stderr: int | None = None,
) -> Recording:
    """Run the command, and note how each run ended; a run that is interrupted is the last one.

    Args:
        plan: what to run.
        repeat: how often.
        untraced: whether to run once more without the tracer, to compare the times.
        stdout: the file descriptor for the program's output; None: ours.
        stderr: the same for its messages.

    Raises:
        UsageError: the program cannot be started.
    """
    recording = Recording(
        folder=plan.folder,
        command=plan.command.words,
        tracer=plan.choice.tracer.version,
        runs=(),
        cost=None if plan.cost is None else asdict(plan.cost),
    )
    write_recording(recording)
    for number in range(1, repeat + 1):
        traces = plan.folder / f"run-{number}"
        outcome = run_once(plan, traces, stdout=stdout, stderr=stderr)
        run = RecordedRun(
            folder=traces.name,
            seconds=outcome.seconds,
            exit_code=outcome.exit_code,
            signal=outcome.signal,
            started=outcome.started,
            left_running=outcome.left_running,
        )
        recording = replace(recording, runs=(*recording.runs, run))
        write_recording(recording)
        if not run.succeeded:
            return recording
    if untraced:
        outcome = _run(plan.command.words, {}, stdout, stderr)
        recording = replace(recording, untraced_seconds=outcome.seconds)
        write_recording(recording)
    return recording


def run_once(
    plan: Plan,
    traces: Path,
    *,
    variables: Mapping[str, str] | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
) -> Outcome:
    """Run the command once under the tracer.

    Args:
        plan: what to run.
        traces: a folder to make for its traces.
        variables: for the environment of the program, besides those of the tracer.
        stdout: the file descriptor for the program's output; None: ours.
        stderr: the same for its messages.

    Raises:
        UsageError: the program cannot be started.
    """
    traces.mkdir()
    start = plan.choice.tracer.start(plan.command.exporting(variables or {}), traces)
    outcome = _run(start.words, {**start.environment, **(variables or {})}, stdout, stderr)
    _remove_empty(traces)
    return outcome


def _run(
    words: Sequence[str],
    environment: Mapping[str, str],
    stdout: int | None,
    stderr: int | None,
) -> Outcome:
    try:
        return run_program(words, environment=environment, stdout=stdout, stderr=stderr)
    except OSError as error:
        raise UsageError(
            f"{printable(words[0])} cannot be started: {error.strerror}.\n"
            "Hint: check the file and its permissions."
        ) from error


def _remove_empty(folder: Path) -> None:
    """Remove what tracers leave of processes that recorded nothing."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            with suppress(OSError):
                path.rmdir()
        elif path.stat(follow_symlinks=False).st_size == 0:
            path.unlink()


def read_run(recording: Recording, run: RecordedRun) -> Trace:
    """Read the traces of one run: all of its processes are one job.

    Raises:
        TraceError: nothing was recorded, or it cannot be read.
    """
    return read_trace(recording.traces(run), grouping="one")


@dataclass(frozen=True, slots=True)
class Overhead:
    """What the tracer added to one run."""

    seconds: float  # summed over all processes
    calls: int
    processes: int


def estimate_overhead(recording: Recording, run: RecordedRun, trace: Trace) -> Overhead | None:
    """Return the measured cost of a call and of a process, times how many there were."""
    if recording.cost is None:
        return None
    lines = 0
    for path in recording.traces(run).rglob("*"):
        if path.suffix in TEXT_TRACES:
            with path.open("rb") as file:
                lines += sum(1 for _ in file)
    population = trace.population
    processes = population.processes or population.ranks or 1
    calls = lines or _counted_calls(trace)
    cost = TracerCost(**recording.cost)
    return Overhead(cost.seconds(calls=calls, processes=processes), calls, processes)


def _counted_calls(trace: Trace) -> int:
    by_operation = characterise(trace, LocalEngine()).by_operation
    return sum(part.operations for part in by_operation.values())


def delete_traces(recording: Recording) -> None:
    """Delete the traces of all runs; the report and the list of runs stay."""
    for run in recording.runs:
        shutil.rmtree(recording.traces(run), ignore_errors=True)
    shutil.rmtree(recording.folder / TRIALS, ignore_errors=True)
