"""Try in another process what may take a native library down with it."""

from __future__ import annotations

import signal
import subprocess
import sys

from ioprism.text import printable


class IsolationError(Exception):
    """The other process failed; the message says how."""


def attempt(code: str, given: str, *, seconds: float) -> str:
    """Run a piece of Python with `given` as its input; return what it prints.

    Raises:
        IsolationError: it raised, crashed, or took longer than this.
    """
    try:
        tried = subprocess.run(  # noqa: S603 - our own interpreter, our own code
            [sys.executable, "-P", "-c", code],  # -P: nothing is imported from where the user is
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise IsolationError(f"still running after {seconds:.0f} s") from error
    if tried.returncode:
        said = [line for line in tried.stderr.splitlines() if line and not line.startswith(" ")]
        raise IsolationError(_why(tried.returncode, printable(said[-1]) if said else ""))
    return tried.stdout


def _why(code: int, last_words: str) -> str:
    if code > 0:
        return last_words or f"it ended with {code}"
    known = {number.value for number in signal.Signals}
    name = signal.Signals(-code).name if -code in known else f"signal {-code}"
    return f"reading it crashes the library ({': '.join(filter(None, (name, last_words)))})"
