"""What commands print, how they fail, and the user's configuration file.

The user's configuration file: defaults of options, by command.

```toml
[diagnose]
site = "/projects/io/site.store"

[servers.report]
top = 20
```
"""

from __future__ import annotations

import codecs
import errno
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ioprism.errors import IoprismError, UsageError
from ioprism.model.trace import Progress, Trace
from ioprism.text import harmless, printable, read_toml

if TYPE_CHECKING:
    from rich.console import Console


PATIENCE = 1.0  # seconds before progress is shown
WIDTH = 100
FAILED = 3  # exit code when --fail-on was met


def console() -> Console:
    """Return the terminal for results; plain text when it is not one, unless --color asks."""
    from rich.console import Console

    class Results(Console):
        """A console whose reader may leave early, as `head` does."""

        def on_broken_pipe(self) -> None:
            """Let the command end without an error."""
            raise BrokenPipeError

    context = click.get_current_context(silent=True)
    color = None if context is None else context.find_root().color
    return Results(
        highlight=False,
        emoji=False,
        markup=False,
        width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH,
        force_terminal=color,
        no_color=True if color is False else None,
    )


def show_job(trace: Trace, paths: Iterable[Path], *, label: str = "") -> None:
    """Print in a line which log it is, and which job."""
    from ioprism.reports import to_terminal

    to_terminal.show_job(console(), trace.job, paths, hosts=trace.population.hosts, label=label)


def show_warnings(said: Trace | Iterable[str]) -> None:
    """Print what is missing from the answer on standard error."""
    from rich.console import Console

    from ioprism.reports import to_terminal

    stderr = Console(stderr=True, highlight=False, emoji=False, markup=False, soft_wrap=True)
    to_terminal.warnings(stderr, said.completeness.warnings if isinstance(said, Trace) else said)


def show_document(pieces: Iterable[str]) -> None:
    """Print a long JSON document while it is made."""
    for piece in pieces:
        click.echo(piece, nl=False)
    click.echo()


def say(text: str) -> None:
    """Print a remark on standard error; names in it cannot steer the terminal."""
    click.echo(harmless(text), err=True)


def say_written(*targets: Path | None, quiet: bool = False) -> None:
    """Name the files that were asked for and written."""
    for target in targets:
        if target is not None and not quiet:
            say(f"wrote {target}")


def fail_if(met: bool) -> None:
    """End with the exit code for `--fail-on` where its condition is met."""
    if met:
        click.get_current_context().exit(FAILED)


@contextmanager
def progress(what: str, *, quiet: bool) -> Iterator[Progress]:
    """Show on a terminal's standard error how far long work has come."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    started = time.monotonic()
    stderr = Console(stderr=True)
    with stderr.status("", spinner="dots") as status:
        status.stop()

        def report(done: int) -> None:
            if time.monotonic() - started > PATIENCE:
                status.start()
                status.update(f"{what}: {done} pieces")

        yield report


LONGEST = 300  # characters of what a library says
REPORT_IT = "Hint: use --debug to see where, and please report it, with the trace if you can."
# Exceptions of libraries that are not imported just to name them.
PANIC = "PanicException"
NO_MEMORY = "OutOfMemoryException"
NO_THREAD = "can't start new thread"
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
    if isinstance(error, RuntimeError) and NO_THREAD in str(error):
        return (
            "no further thread can be started: memory or the number of processes is too limited.\n"
            "Hint: raise the limit (ulimit -v, ulimit -u)."
        )
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


VARIABLE = "IOPRISM_CONFIG"


def configuration_file() -> Path:
    """Return the file that IOPRISM_CONFIG names, or the one in the user's configuration folder."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "ioprism" / "config.toml"


def configured_defaults() -> dict[str, Any]:
    """Read the defaults; a file that is not there has none.

    Raises:
        UsageError: the file is not TOML, or does not hold options by command.
    """
    try:
        path = configuration_file()
        content = read_toml(path)
    except (FileNotFoundError, NotADirectoryError, RuntimeError):
        return {}  # RuntimeError: the user has no home
    except (OSError, ValueError) as error:
        raise click.UsageError(
            f"the configuration file {printable(str(path))} cannot be used: "
            f"{printable(str(error))}.\nHint: write options below [COMMAND], or remove the file."
        ) from error
    if not all(isinstance(options, dict) for options in content.values()):
        raise click.UsageError(
            f"the configuration file {printable(str(path))} has an option outside a command.\n"
            "Hint: write options below [COMMAND]."
        )
    return {command: _by_parameter(options) for command, options in content.items()}


def _by_parameter(options: dict[str, Any]) -> dict[str, Any]:
    """Name options as click's parameters, `fail-on` as `fail_on`, also of subcommands."""
    return {
        name.replace("-", "_") if not isinstance(value, dict) else name: (
            _by_parameter(value) if isinstance(value, dict) else value
        )
        for name, value in options.items()
    }
