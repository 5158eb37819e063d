"""Run a program that may refuse, hang or print rubbish, and end all of it when time is up."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from ioprism.errors import RunFailedError
from ioprism.text import printable

QUICK = 30.0  # seconds for a tool that only has to answer


def call(command: Sequence[str], *, failure: str, timeout: float) -> str:
    """Return what the program printed.

    Raises:
        RunFailedError: it cannot be started, refuses, or takes longer than `timeout` seconds.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - our own command lines
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # so that what it started ends with it
        )
    except OSError as error:
        reason = f"{command[0]} cannot be started ({error.strerror})"
        raise RunFailedError(f"{failure}: {reason}") from error
    try:
        output, complaint = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise RunFailedError(f"{failure}: still running after {timeout:g} s") from None
    finally:
        _end(process)
    if process.returncode:
        raise RunFailedError(f"{failure}: {last_words(complaint or output)}")
    return output


def ask(command: Sequence[str]) -> str:
    """Return what a tool says, or nothing where it is missing, slow or unwilling."""
    try:
        return call(command, failure=command[0], timeout=QUICK)
    except RunFailedError:
        return ""


def last_words(complaint: str) -> str:
    """Return the last line of what a program said."""
    return printable(complaint.strip().rpartition("\n")[2])[-200:] or "no reason given"


def _end(process: subprocess.Popen[str]) -> None:
    """End the program and everything it started, if anything is left."""
    if process.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=5.0)
            return
