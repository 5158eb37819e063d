"""What every tracer can be asked: does it fit, how is it started, what can it not see?"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ioprism.recording.command import Command

PRELOAD = "LD_PRELOAD"
INHERITED = "files that another program opened, such as the shell for `PROGRAM > FILE`"
STAT_IS_A_SYMBOL = (2, 33)  # glibc from which stat is no longer a wrapper of __xstat


@dataclass(frozen=True, slots=True)
class Start:
    """How a command is run with a tracer."""

    words: tuple[str, ...]
    environment: Mapping[str, str]  # for the command itself


class Tracer(Protocol):
    """Something that records what a program does."""

    @property
    def name(self) -> str:
        """How users choose it."""
        ...

    @property
    def version(self) -> str:
        """What it says of itself, such as `strace 6.1`."""
        ...

    @property
    def where(self) -> str:
        """The program or library that is used."""
        ...

    def obstacle(self, command: Command) -> str | None:
        """Return why it cannot record this command, or None."""
        ...

    def blind_spots(self, command: Command) -> tuple[str, ...]:
        """Return what it cannot see of this command."""
        ...

    def start(self, command: Command, folder: Path) -> Start:
        """Return how to run the command so that traces go to an existing, empty folder."""
        ...


def preloaded(command: Command, library: str, variables: Mapping[str, str]) -> Start:
    """Return how to run a command whose programs load a library first."""
    present = os.environ.get(PRELOAD)
    chain = f"{library}:{present}" if present and library not in present else library
    wanted = {**variables, PRELOAD: chain}
    if command.launcher is None:
        return Start(command.words, wanted)
    return Start(tuple(command.with_environment(wanted)), {})


def preload_obstacle(command: Command, title: str) -> str | None:
    """Return why a library cannot be preloaded into the program."""
    if command.program.static:
        return f"the program is statically linked, so that {title} cannot be loaded into it"
    return None


def glibc_version() -> tuple[int, int]:
    """Return the version of the C library; zeros where it is another one."""
    name, version = platform.libc_ver()
    numbers = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    return (numbers[0], numbers[1]) if name == "glibc" and len(numbers) == 2 else (0, 0)


def hidden_stat() -> tuple[str, ...]:
    """Name the calls that interposed libraries miss with this C library."""
    if glibc_version() < STAT_IS_A_SYMBOL:
        return ()
    version = ".".join(map(str, glibc_version()))
    return (f"stat, lstat and fstat (they bypass its wrappers with glibc {version})",)
