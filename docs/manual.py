"""The manual page, from the commands' own help: written by `make docs`, read with `man`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from ioprism.cli import COMMANDS, main
from ioprism.version import __version__

NAME = "ioprism.1"
EXIT_CODES = {
    "0": "answered",
    "1": "cannot answer: one message says why",
    "2": "wrong usage",
    "3": "answered, and --fail-on was met",
}


def page() -> str:
    """Return the page in man's own format."""
    lines = [f'.TH IOPRISM 1 "" "ioprism {__version__}" "User commands"']
    lines += [".SH NAME", r"ioprism \- explain the I/O of HPC jobs from their traces"]
    lines += [".SH SYNOPSIS", r".B ioprism", r"\fICOMMAND\fR [\fIOPTION\fR]... [\fITRACE\fR]..."]
    lines += [".SH DESCRIPTION", *_text(main.help or ""), ".SH COMMANDS"]
    for name in sorted(COMMANDS):
        lines += _command(name)
    lines.append(".SH EXIT STATUS")
    for code, meaning in EXIT_CODES.items():
        lines += [".TP", rf"\fB{code}\fR", meaning]
    return "\n".join([*lines, ""])


def _command(name: str) -> Iterator[str]:
    context = click.Context(main, info_name="ioprism")
    command = main.get_command(context, name)
    assert command is not None
    yield f".SS ioprism {name}"
    yield from _text(command.help or "")
    if isinstance(command, click.Group):
        below = click.Context(command, info_name=name)
        yield ".PP"
        yield f"Commands: {', '.join(command.list_commands(below))}; each has --help."
    for option in command.params:
        if isinstance(option, click.Option) and option.help:
            yield from (".TP", rf"\fB{_escaped(', '.join(option.opts))}\fR", _escaped(option.help))


def _text(text: str) -> Iterator[str]:
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        yield _escaped(" ".join(paragraph.split()))
        yield ".PP"


def _escaped(text: str) -> str:
    plain = text.replace("\\", r"\e").replace("-", r"\-").replace("…", "...")
    return rf"\&{plain}" if plain.startswith((".", "'")) else plain
