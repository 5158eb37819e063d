"""What a command prints when it fails: one message and an exit code, whatever went wrong."""

from __future__ import annotations

import codecs
import errno
import os
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


def explain_error(error: BaseException) -> click.ClickException:
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


# What stands for our own signs on terminals that are not UTF-8; other characters are escaped.
PLAIN = "ioprism.plain"
PLAIN_SIGNS = {
    "·": "-", "−": "-", "–": "-", "…": "...", "µ": "u", "×": "x", "≥": ">=", "≤": "<=", "≈": "~",
    "→": "->", "›": ">", "█": "#", "▇": "#", "▆": "#", "▅": "#", "▄": "=", "▃": "=", "▂": "-",
    "▁": "_", "─": "-", "━": "-", "│": "|", "├": "|", "└": "`", "•": "*", "“": '"', "”": '"',
    "’": "'", "°": " deg", "²": "^2", "σ": "sigma", "ρ": "rho",
}  # fmt: skip


def _plain_sign(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    if character in PLAIN_SIGNS:
        return PLAIN_SIGNS[character], error.start + 1
    only = UnicodeEncodeError(
        error.encoding, error.object, error.start, error.start + 1, error.reason
    )
    return codecs.backslashreplace_errors(only)


codecs.register_error(PLAIN, _plain_sign)


def prepare_streams() -> None:
    """Make printing safe: no closed stream, no character that the terminal cannot show.

    Raises:
        SystemExit: standard output is closed.
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
            stream.reconfigure(errors=PLAIN)  # type: ignore[union-attr]
