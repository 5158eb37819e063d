"""Try in another process what may take a native library down with it."""

from __future__ import annotations

import subprocess
import sys


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
        raise IsolationError(
            said[-1] if said and tried.returncode > 0 else "reading it crashes the library"
        )
    return tried.stdout
