"""Cut what strace wrote into ranges, each with what is known of processes where it begins.

Descriptors are followed from the first line to the last. The first pass does that once, and
keeps what it knows every few megabytes, so that ranges can be read apart from each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path

from ioprism.formats.call_rows import Row
from ioprism.formats.strace.lines import Calls
from ioprism.formats.strace.replay import Replay
from ioprism.formats.text import LONGEST_LINE, is_damaged, opened
from ioprism.model.trace import Warn
from ioprism.units import format_counted

RANGE = 16 * 2**20  # bytes of text that are worth a partition of their own


@dataclass(slots=True)
class State:
    """Processes with their open files, and calls that have not returned yet."""

    calls: Calls = field(default_factory=Calls)
    replay: Replay = field(default_factory=Replay)

    def rows(self, lines: Iterable[str]) -> Iterator[Row]:
        """Yield the calls that concern files, and follow them."""
        return self.replay.events(self.calls.read(lines))

    def kept(self) -> State:
        """Return what is known now, for a range that begins here."""
        copy = deepcopy(self)
        copy.calls.damaged = 0
        return copy


@dataclass(frozen=True, slots=True, eq=False)
class StraceRange:
    """The calls that return within a range of a file."""

    path: Path
    begin: int = 0  # bytes of text
    end: int | None = None  # None: to the end of the file
    before: State = field(default_factory=State)

    def rows(self, warn: Warn) -> Iterator[Row]:
        """Yield the calls that concern files."""
        state = deepcopy(self.before)
        yield from state.rows(line for _, line in self.lines(warn))
        name, calls = self.path.name, state.calls
        if calls.damaged:
            warn(f"{name}: {format_counted(calls.damaged, 'damaged line')} left out")
        if calls.unfinished and self.end is None:
            warn(f"{name}: {format_counted(calls.unfinished, 'unfinished call')} left out")

    def lines(self, warn: Warn) -> Iterator[tuple[int, str]]:
        """Yield the lines with their places; overlong ones are cut, a damaged end is told."""
        with opened(self.path) as file:
            if self.begin:
                file.seek(self.begin)
            at = self.begin
            while (self.end is None or at < self.end) and (line := file.readline(LONGEST_LINE)):
                yield at, line.decode("utf-8", "backslashreplace")
                at += len(line)
            if is_damaged(file):
                warn(f"{self.path.name}: the compressed data are cut short or damaged")


@dataclass(slots=True)
class Ranges:
    """The ranges of a file, found while it is read for the first time."""

    path: Path
    found: list[StraceRange] = field(default_factory=list)

    def cut(self, state: State) -> Iterator[str]:
        """Yield all lines; whoever takes the next one has followed those before it."""
        self.found = [StraceRange(self.path)]
        with opened(self.path) as file:
            can_be_cut = file.seekable()
        for at, line in StraceRange(self.path).lines(lambda _: None):
            if can_be_cut and at - self.found[-1].begin >= RANGE:
                self.found[-1] = replace(self.found[-1], end=at)
                self.found.append(StraceRange(self.path, at, before=state.kept()))
            yield line
