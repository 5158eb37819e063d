"""Run a program as if it had been started directly: output, exit code and signals pass through.

The program shares our terminal and process group, so that Ctrl-C and Ctrl-Z reach it as usual.
Signals that were sent to this process alone are sent on. While it runs we are a subreaper:
processes that it leaves behind, and a tracer that is still writing, are waited for a moment.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

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
