"""Run a program as if it had been started directly: output, exit code and signals pass through.

The program shares our terminal and process group, so that Ctrl-C and Ctrl-Z reach it as usual.
Signals that were sent to this process alone are sent on. While it runs we are a subreaper:
processes that it leaves behind, and a tracer that is still writing, are waited for a moment.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ioprism.recording.command import Command, Program
from ioprism.recording.tracer import Tracer

PASSED_ON = frozenset(
    {signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}
)
FROM_KERNEL = 0x80  # si_code of a signal that a terminal sent: the whole group has it
SET_SUBREAPER = 36  # option of prctl(2)
LINGER = 3.0  # seconds that processes left behind may take to end before they are reported
POLL = 0.005  # seconds


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended."""

    seconds: float
    exit_code: int | None  # None where a signal ended it
    signal: int | None
    started: float  # seconds since 1970
    left_running: int = 0  # processes that it started and that still run


def run_program(
    words: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
) -> Outcome:
    """Run a program to its end.

    Args:
        words: the program and its arguments.
        environment: variables that are added to ours.
        stdout: the file descriptor for its output; None: ours.
        stderr: the same for its messages.

    Raises:
        OSError: it cannot be started.
    """
    before = _children()
    with _signals_held() as mask, _subreaper():
        started, clock = time.time(), time.monotonic()
        process = subprocess.Popen(  # noqa: S603 - running the user's command is the purpose
            words,
            env={**os.environ, **(environment or {})},
            stdout=stdout,
            stderr=stderr,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask),  # noqa: PLW1509
        )
        code = _wait(process)
        seconds = time.monotonic() - clock
        left = _wait_for_rest(before)
    return Outcome(
        seconds=seconds,
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        started=started,
        left_running=left,
    )


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
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:
        yield
        return
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
TIMEOUT = 20.0  # seconds
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

    def seconds(self, *, calls: float, processes: float) -> float:
        """Return what it adds to a number of calls and processes."""
        return self.per_call * calls + self.per_process * processes


def measure_cost(tracer: Tracer, folder: Path) -> TracerCost | None:
    """Return what the tracer adds to a small write on this machine; None where it does not run.

    Args:
        tracer: what to measure.
        folder: where the probe may write; it is left as it was.
    """
    place = folder / "probe"
    place.mkdir()
    try:
        plain = [_run(None, place) for _ in range(PROBES)]
        traced = [_run(tracer, place) for _ in range(PROBES)]
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None
    finally:
        shutil.rmtree(place, ignore_errors=True)
    calls = min(inside for inside, _ in traced) - min(inside for inside, _ in plain)
    around = min(outside for _, outside in traced) - min(outside for _, outside in plain)
    return TracerCost(max(calls, 0.0) / CALLS, max(around, 0.0))


def _run(tracer: Tracer | None, place: Path) -> tuple[float, float]:
    """Return the seconds in the probe's calls, and those around them."""
    words: tuple[str, ...] = (
        sys.executable,
        "-I",
        "-S",
        "-c",
        PROBE,
        str(place / "data"),
        str(CALLS),
    )
    environment: dict[str, str] = {}
    if tracer is not None:
        traces = place / "traces"
        traces.mkdir()
        program = Program(words, linkage=None, python=True, mpi=False)
        start = tracer.start(Command(words, None, (0,), program), traces)
        words, environment = start.words, dict(start.environment)
    began = time.perf_counter()
    answer = subprocess.run(  # noqa: S603 - our own program
        words,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=TIMEOUT,
        check=True,
    )
    whole = time.perf_counter() - began
    with suppress(OSError):
        shutil.rmtree(place / "traces")
    inside = float(answer.stderr.split()[-1])
    return inside, whole - inside
