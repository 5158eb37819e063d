"""What a command says when it fails: one message and an exit code, whatever went wrong.

A library that aborts, or a memory fault, ends the process before Python can react. So a second
process listens to what native code prints (`hide`): it says nothing as long as all goes
well, and one message if the process ends that way. The exit code is then the signal's number.
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import faulthandler
import os
import signal
import sys
from contextlib import suppress

import click

from ioprism.errors import IoprismError, UsageError
from ioprism.text import harmless, printable

LONGEST = 300  # characters of what a library says
REPORT_IT = "Hint: use --debug to see where, and please report it, with the trace if you can."
# Exceptions of libraries that are not imported just to name them.
PANIC = "PanicException"
NO_MEMORY = "OutOfMemoryException"
NO_SPACE = "No space left on device"
FREE_SPACE = "free some space, or write somewhere else."
OTHER_PLACE = "check the permissions, or choose another place."
OTHER_NAME = "give the name of a file instead."
SPELLING = "check the spelling."
HINTS: dict[int | None, str] = {
    errno.ENOSPC: FREE_SPACE,
    errno.EDQUOT: FREE_SPACE,
    errno.EACCES: OTHER_PLACE,
    errno.EPERM: OTHER_PLACE,
    errno.EROFS: OTHER_PLACE,
    errno.EISDIR: OTHER_NAME,
    errno.ENOENT: SPELLING,
    errno.ENOTDIR: SPELLING,
    errno.EEXIST: "choose another name.",
    errno.ENAMETOOLONG: "choose a shorter name.",
}


def explained(error: BaseException) -> click.ClickException:
    """Return the message for anything that a command may raise."""
    if isinstance(error, click.ClickException):
        vars(error)["message"] = harmless(error.message)
        return error
    if isinstance(error, UsageError):
        return click.UsageError(harmless(str(error)))
    return click.ClickException(harmless(_message(error)))


def _message(error: BaseException) -> str:
    if isinstance(error, IoprismError):
        return str(error)
    if isinstance(error, MemoryError) or type(error).__name__ == NO_MEMORY:
        return "there is not enough memory for this.\nHint: --memory-limit reads in smaller pieces."
    if isinstance(error, RecursionError):
        return "the input is nested too deeply.\nHint: check that it is what you meant to give."
    if isinstance(error, UnicodeEncodeError):
        return (
            f"the output's encoding ({error.encoding}) cannot show a character of the answer.\n"
            "Hint: set PYTHONIOENCODING=utf-8, or use --json."
        )
    if isinstance(error, OSError):
        return _of_system(error)
    return _of_library(error)


def _of_system(error: OSError) -> str:
    where = f"{printable(str(error.filename))}: " if error.filename else ""
    hint = f"\nHint: {HINTS[error.errno]}" if error.errno in HINTS else ""
    return f"{where}{error.strerror or first_line(error)}{hint}"


def _of_library(error: BaseException) -> str:
    said = first_line(error)
    if NO_SPACE in str(error):
        return f"{NO_SPACE}.\nHint: {FREE_SPACE}"
    if type(error).__name__ == PANIC:
        return f"a library gave up on the data ({said}).\n{REPORT_IT}"
    return f"this should not have happened: {type(error).__name__}: {said}\n{REPORT_IT}"


def first_line(error: BaseException) -> str:
    """What an exception says, on one harmless line."""
    return printable(str(error).strip().partition("\n")[0])[:LONGEST]


def is_last_resort(error: BaseException) -> bool:
    """Whether an exception is a failure to explain, rather than a wish to stop."""
    return isinstance(error, Exception) or type(error).__name__ == PANIC


def prepare_streams() -> None:
    """Make printing safe: no closed stream, no character that cannot be shown.

    Raises:
        SystemExit: nobody can read the answer.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - it stays open to the end
        if sys.stderr is not None:
            sys.stderr.write("Error: standard output is closed.\nHint: use > FILE instead.\n")
        raise SystemExit(1)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - it stays open to the end
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


FATAL = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
MARK = b"Fatal Python error: "  # begins what `faulthandler` writes at the end
FAREWELL = b"\0"  # all went well; what this process started may live on, and hold the pipe
MOST_FILES = 2**16
KEPT = 8192  # bytes of what native code printed last
MEMORY = "memory"


def hide() -> None:
    """Keep what native code prints from the terminal; Python's messages stay.

    `sys.stderr` goes on to where it was. Where somebody else has redirected it, we are a guest in
    their process and change nothing.
    """
    stream = sys.__stderr__
    if stream is None or sys.stderr is not stream:
        return
    with suppress(OSError, ValueError):
        shown = os.dup(stream.fileno())
        heard, said = os.pipe()
        if os.fork() == 0:
            _listen(heard, shown)
        os.close(heard)
        os.dup2(said, 2)
        os.close(said)
        sys.stderr = open(  # noqa: SIM115, PTH123 - it stays open to the end
            shown, "w", encoding=stream.encoding, errors="backslashreplace", buffering=1
        )
        atexit.register(os.write, 2, FAREWELL)
        _end_with_a_word()


def _end_with_a_word() -> None:
    """Let a fatal signal print its name on what is listened to, and then be an exit code."""
    library = ctypes.CDLL(None)
    for number in FATAL:
        library.signal(int(number), library._exit)
    faulthandler.enable(file=2)


def _listen(heard: int, shown: int) -> None:
    """Wait for the end of the other process; runs in the second one and never returns."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        os.dup2(heard, 0)
        os.dup2(shown, 2)
        os.closerange(1, 2)  # or whoever reads the answer would wait for us
        os.closerange(3, MOST_FILES)
        text = b""
        while (piece := os.read(0, KEPT)) and not piece.endswith(FAREWELL):
            text = (text + piece)[-KEPT:]
        if MARK in text:
            os.write(2, last_words(text).encode("utf-8", "backslashreplace"))
    finally:
        os._exit(0)


def last_words(text: bytes) -> str:
    """The message for a process that ended while native code was at work."""
    before, _, after = text.partition(MARK)
    lines = [line for line in before.decode("utf-8", "replace").splitlines() if line.strip()]
    lack = [line for line in lines if MEMORY in line]
    why = (*lines, *lack)[-1] if lines else after.decode("utf-8", "replace").partition("\n")[0]
    small = MEMORY in why
    hint = "--memory-limit reads in smaller pieces" if small else "--debug shows all it printed"
    return f"Error: a library gave up: {printable(why)[:LONGEST]}.\nHint: {hint}.\n"
