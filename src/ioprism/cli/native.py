"""What native code prints on its own is kept from the terminal, unless it is its last word.

A library that aborts, or a fault of memory, ends the process without Python hearing of it. So a
second process listens to what native code prints: it says nothing as long as all goes well, and
one message if the process ends that way. The exit code is then the number of the signal.
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import os
import signal
import sys
from contextlib import suppress

from ioprism.text import printable

FATAL = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
MARK = b"Fatal Python error: "  # begins what `faulthandler` writes at the end
FAREWELL = b"\0"  # all went well; what this process started may live on, and hold the pipe
MOST_FILES = 2**16
KEPT = 8192  # bytes of what native code printed last
LONGEST = 300
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
    said = [line for line in before.decode("utf-8", "replace").splitlines() if line.strip()]
    lack = [line for line in said if MEMORY in line]
    why = (*said, *lack)[-1] if said else after.decode("utf-8", "replace").partition("\n")[0]
    small = MEMORY in why
    hint = "--memory-limit reads in smaller pieces" if small else "say --debug to see all it said"
    return f"Error: a library gave up: {printable(why)[:LONGEST]}.\nHint: {hint}.\n"
