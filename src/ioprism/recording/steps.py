"""Run a program as if it had been started directly: output, exit code and signals pass through.

The program shares our terminal and process group, so that Ctrl-C and Ctrl-Z reach it as usual.
Signals that were sent to this process alone are sent on. While it runs we are a subreaper:
processes that it leaves behind, and a tracer that is still writing, are waited for a moment.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ioprism.characteristics.totals import characterise
from ioprism.engine.base import LocalEngine
from ioprism.errors import BrokenTraceError, OutputError, UsageError
from ioprism.formats.registry import read_trace
from ioprism.model.trace import Trace
from ioprism.recording.choice import Choice, choose_tracer
from ioprism.recording.command import QUICK, CommandLine, Program, parse_command
from ioprism.recording.tracer import Tracer
from ioprism.storage.recordings import RecordedRun, Recording, read_recording, write_recording
from ioprism.text import printable

PASSED_ON = frozenset(
    {signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}
)
FROM_KERNEL = 0x80  # si_code of a signal that a terminal sent: the whole group has it
SET_SUBREAPER = 36  # option of prctl(2)
LINGER = 3.0  # seconds that processes left behind may take to end before they are reported
POLL = 0.005  # seconds


def _run(
    plan: Plan, words: Sequence[str], environment: Mapping[str, str], folder: str = ""
) -> RecordedRun:
    """Run a program to its end, with variables added to ours.

    Raises:
        UsageError: it cannot be started.
    """
    before = _children()
    with _signals_held() as mask, _subreaper():
        started, clock = time.time(), time.monotonic()
        try:
            process = subprocess.Popen(  # noqa: S603 - running the user's command is the purpose
                words,
                env={**os.environ, **environment},
                stdout=plan.stdout,
                stderr=plan.stderr,
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask),  # noqa: PLW1509
            )
        except OSError as error:
            raise UsageError(
                f"{printable(words[0])} cannot be started: {error.strerror}.\n"
                "Hint: check the file and its permissions."
            ) from error
        code = _wait(process)
        seconds = time.monotonic() - clock
        left = _wait_for_rest(before)
    exit_code, number = (code, None) if code >= 0 else (None, -code)
    return RecordedRun(folder, seconds, exit_code, number, started, left)


@contextmanager
def _signals_held() -> Iterator[set[int]]:
    """Keep signals for `sigtimedwait`; yield the mask that the program is to start with."""
    if threading.current_thread() is not threading.main_thread():
        yield set(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        return
    mask = set(signal.pthread_sigmask(signal.SIG_BLOCK, {*PASSED_ON, signal.SIGCHLD}))
    try:
        yield mask
    finally:
        while signal.sigtimedwait(PASSED_ON, 0) is not None:  # the program has had its end
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _wait(process: subprocess.Popen[bytes]) -> int:
    while (code := process.poll()) is None:
        arrived = signal.sigtimedwait({*PASSED_ON, signal.SIGCHLD}, 1.0)
        if arrived is None or arrived.si_signo == signal.SIGCHLD:
            continue
        if arrived.si_code != FROM_KERNEL:
            process.send_signal(arrived.si_signo)
    return code


@contextmanager
def _subreaper() -> Iterator[None]:
    prctl = ctypes.CDLL(None).prctl
    prctl(SET_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(SET_SUBREAPER, 0, 0, 0, 0)


def _wait_for_rest(before: set[int]) -> int:
    """Reap what the program left behind; return how many of it still run after a moment."""
    end = time.monotonic() + LINGER
    while (left := _children() - before) and time.monotonic() < end:
        for child in left:
            with suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
        time.sleep(POLL)
    return sum(_name(child) != "strace" for child in left)  # it watches those that still run


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text("utf-8").strip()
    except OSError:
        return ""


def _children() -> set[int]:
    """Return the processes whose parent we are; none where the kernel does not list them."""
    children: set[int] = set()
    with suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            children.update(map(int, (task / "children").read_text().split()))
    return children


CALLS = 3000  # of the probe: 0.1 s with a tracer that takes 30 µs a call
PROBES = 3  # times that the probe runs each way; the fastest counts, as others disturb it
PROBE = """
import os, sys, time
target = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY, 0o600)
began = time.perf_counter()
for _ in range(int(sys.argv[2])):
    os.pwrite(target, b"x", 0)
sys.stderr.write(repr(time.perf_counter() - began))
"""


@dataclass(frozen=True, slots=True)
class TracerCost:
    """What a tracer adds, in seconds."""

    per_call: float
    per_process: float  # to start and end a process


def measure_cost(tracer: Tracer, folder: Path) -> TracerCost | None:
    """Return what the tracer adds to a small write on this machine; None where it does not run.

    The folder is left as it was.
    """
    place = folder / "probe"
    place.mkdir()
    try:
        plain = [_run_once(None, place) for _ in range(PROBES)]
        traced = [_run_once(tracer, place) for _ in range(PROBES)]
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None
    finally:
        shutil.rmtree(place, ignore_errors=True)
    calls, around = (
        max(0.0, min(run[part] for run in traced) - min(run[part] for run in plain))
        for part in (0, 1)
    )
    return TracerCost(calls / CALLS, around)


def _run_once(tracer: Tracer | None, place: Path) -> tuple[float, float]:
    """Return the seconds in the probe's calls, and those around them."""
    options = ("-I", "-S", "-c", PROBE, str(place / "data"), str(CALLS))
    words: tuple[str, ...] = (sys.executable, *options)
    environment: dict[str, str] = {}
    if tracer is not None:
        traces = place / "traces"
        traces.mkdir()
        program = Program(words, linkage=None, python=True, mpi=False)
        start = tracer.start(CommandLine(words, None, (0,), program), traces)
        words, environment = start.words, dict(start.environment)
    began = time.perf_counter()
    answer = subprocess.run(  # noqa: S603 - our own program
        words,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=QUICK,
        check=True,
    )
    whole = time.perf_counter() - began
    with suppress(OSError):
        shutil.rmtree(place / "traces")
    inside = float(answer.stderr.split()[-1])
    return inside, whole - inside


TEXT_TRACES = (".strace", ".pfw")  # one line for each call
PAGE = "report.html"
TRIALS = "try"  # the folder of what --try runs
LONGEST_NAME = 40  # characters of a program's name in the name of a folder


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be run, with which tracer, and where its traces go."""

    command: CommandLine
    choice: Choice
    folder: Path
    cost: TracerCost | None  # measured here; None where the probe did not run
    stdout: int | None = None  # the file descriptor for the program's output; None: ours
    stderr: int | None = None  # the same for its messages

    @property
    def blind_spots(self) -> tuple[str, ...]:
        """What the tracer cannot see of this command."""
        return self.choice.tracer.blind_spots(self.command)


def plan_recording(
    words: Sequence[str],
    *,
    folder: Path | None,
    tracer: str = "auto",
    overwrite: bool = False,
    stdout: int | None = None,
    stderr: int | None = None,
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
    return Plan(command, choice, target, measure_cost(choice.tracer, target), stdout, stderr)


def _free_folder(program: str) -> Path:
    """Return the first name that is not taken in the current folder."""
    name = "".join(c if c.isalnum() or c in "._-" else "_" for c in program)[:LONGEST_NAME]
    number = 1
    while os.path.lexists(folder := Path(f"record-{name}-{number}")):
        number += 1
    return folder


def make_folder(wanted: Path | None, program: str, *, overwrite: bool) -> Path:
    """Make the folder of a recording; an earlier one is replaced only if that was asked for.

    Where none is wanted, it is the first record-PROGRAM-1, -2, … that is not there.

    Raises:
        OutputError: it holds something else.
    """
    folder = wanted or _free_folder(program)
    if _is_recording(folder):
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


def _is_recording(folder: Path) -> bool:
    """Whether ioprism made a folder; a file of the marker's name is not enough to remove it."""
    try:
        return read_recording(folder) is not None
    except BrokenTraceError:
        return False


def record_runs(plan: Plan, *, repeat: int = 1, untraced: bool = False) -> Recording:
    """Run the command, and note how each run ended; a run that is interrupted is the last one.

    With `untraced`, it is run once more without the tracer, to compare the times.

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
        run = run_once(plan, traces)
        recording = replace(recording, runs=(*recording.runs, run))
        write_recording(recording)
        if not run.succeeded:
            return recording
    if untraced:
        seconds = _run(plan, plan.command.words, {}).seconds
        recording = replace(recording, untraced_seconds=seconds)
        write_recording(recording)
    return recording


def run_once(
    plan: Plan, traces: Path, *, variables: Mapping[str, str] | None = None
) -> RecordedRun:
    """Run the command once under the tracer, with traces in a folder that is made.

    The program has these variables in its environment, besides those of the tracer.

    Raises:
        UsageError: the program cannot be started.
    """
    traces.mkdir()
    start = plan.choice.tracer.start(plan.command.exporting(variables or {}), traces)
    environment = {**start.environment, **(variables or {})}
    run = _run(plan, start.words, environment, traces.name)
    _remove_empty(traces)
    return run


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

    Where several programs ran, such as a shell and what it started, the job is called by the
    command that was given.

    Raises:
        TraceError: nothing was recorded, or it cannot be read.
    """
    trace = read_trace(recording.traces(run), grouping="one")
    if (trace.population.applications or 0) < 2:
        return trace
    return trace.derive(job=replace(trace.job, executable=shlex.join(recording.command)))


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
    calls = lines or characterise(trace, LocalEngine()).total.operations
    cost = TracerCost(**recording.cost)
    return Overhead(cost.per_call * calls + cost.per_process * processes, calls, processes)


def delete_traces(recording: Recording) -> None:
    """Delete the traces of all runs; the report and the list of runs stay."""
    for run in recording.runs:
        shutil.rmtree(recording.traces(run), ignore_errors=True)
    shutil.rmtree(recording.folder / TRIALS, ignore_errors=True)
