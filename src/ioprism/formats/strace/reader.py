"""Turn what strace wrote into a trace, a range of a large file at a time.

Descriptors are followed from the first line to the last. The first pass does that once, and
keeps what it knows every few megabytes, so that ranges can be read apart from each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.formats.calls import Row, RowPartition, TraceSpan
from ioprism.formats.reading import Budget
from ioprism.formats.strace.replay import (
    NO_PID,
    CallLines,
    Process,
    Replay,
    has_date,
    looks_like_strace,
)
from ioprism.formats.text import (
    TORN_END,
    ends_torn,
    head,
    open_text,
    placed_lines,
)
from ioprism.model.schema import PROCESSES, file_table
from ioprism.model.trace import Completeness, Job, Trace, Warn
from ioprism.model.usage import is_data
from ioprism.units import format_counted

HEAD = 16384  # bytes that show what a file is
MOST_DIGITS = 10  # of a process id: Linux has none above 2^22


class StraceReader:
    """Reads strace's text: `-ttt` or `-tt`, best with `-f -T -yy`."""

    name = "strace"
    title = "strace text (strace -f -ttt -T -yy -o FILE)"
    tells = frozenset({"calls", "metadata", "offsets", "ranks", "threads", "files"})

    def recognises(self, source: Path) -> bool:
        """Whether the text is lines as strace writes them. Never raises."""
        return source.is_file() and looks_like_strace(head(source, HEAD))

    def read(self, source: Path) -> Trace:
        """Follow all calls once to learn files and processes; events are read when asked for."""
        span, first, moved = TraceSpan(Budget(source)), State.of(source), Counter[int]()
        ranges = [StraceRange(source)]
        for row in first.rows(_cut(ranges, first)):
            span.see(row)
            if row.bytes and row.path is not None and is_data(row.path):
                moved[row.process] += row.bytes
        if span.first is None or span.last is None:
            raise BrokenTraceError(
                "no call on a file can be read from it.\n"
                "Hint: record with `strace -f -ttt -T -yy -o FILE PROGRAM`.",
                source=source,
            )
        completeness, replay = Completeness(), first.replay
        if replay.untimed:
            completeness.warn("strace ran without -T: calls have no duration")
        if ends_torn(source):
            completeness.warn(f"{source.name}: {TORN_END}")
        if running := len(first.calls.running):
            completeness.warn(
                f"{source.name}: the end of {format_counted(running, 'process', 'processes')} is "
                "missing: the tracer was stopped or ran with -qq, or the file is truncated"
            )
        processes = _described_here(replay.processes, source)
        program = _program(processes, moved)
        ranks, dated = _ranks(processes, program), has_date(head(source, HEAD))
        return Trace(
            format=self.name,
            paths=(source,),
            job=Job(
                ranks=len(set(ranks.values())),
                start_time=span.first if dated else None,
                end_time=span.last if dated else None,
                runtime=span.last - span.first,
                executable=program,
            ),
            partitions=tuple(RowPartition(part, span.first, span.paths, ranks) for part in ranges),
            load_files=lambda: file_table(list(span.paths)),
            load_processes=partial(_process_table, processes, ranks),
            completeness=completeness,
            children=frozenset(replay.processes) - {NO_PID, *(p.tid for p in processes)},
        )


def _described_here(known: Mapping[int, Process], source: Path) -> list[Process]:
    """The processes whose calls are in this file.

    With -ff, each process has a file whose name ends with its id, and lines do not say it.
    """
    if [pid for pid, process in known.items() if process.called] != [NO_PID]:
        return list(known.values())
    own, number = known[NO_PID], source.suffix.removeprefix(".")
    if number.isdecimal() and len(number) < MOST_DIGITS:
        own.pid = own.tid = int(number)
    return [own]


def _program(processes: list[Process], moved: Mapping[int, int]) -> str | None:
    """The program that moves most, rather than the launcher or the shell that started it."""
    sums = Counter[str]()
    for process in processes:
        if process.program:
            sums[process.program] += moved.get(process.row, 0)
    return max(sums, key=sums.__getitem__, default=None)


def _ranks(processes: list[Process], program: str | None) -> dict[int, int]:
    """A process's index, by row, those of the program first; threads have that of theirs."""
    numbers: dict[int, int] = {}
    ordered = sorted(processes, key=lambda process: process.program != program)
    return {p.row: numbers.setdefault(p.pid, len(numbers)) for p in ordered}


def _process_table(processes: list[Process], ranks: dict[int, int]) -> pl.DataFrame:
    table = pl.DataFrame(
        {
            "process": [process.row for process in processes],
            "rank": [ranks[process.row] for process in processes],
            "application": [process.program for process in processes],
            "pid": [process.pid for process in processes],
            "tid": [process.tid for process in processes],
        },
        schema_overrides={"application": pl.String},
    )
    return PROCESSES.conform(table)


RANGE = 16 * 2**20  # bytes of text that are worth a separate partition


@dataclass(slots=True)
class State:
    """Processes with their open files, and calls that have not returned yet."""

    calls: CallLines
    replay: Replay

    @classmethod
    def of(cls, source: Path) -> State:
        """Return what is known before the first line of a file."""
        budget = Budget(source)
        return cls(CallLines(budget), Replay(budget))

    def rows(self, lines: Iterable[str]) -> Iterator[Row]:
        """Yield the calls that concern files, and follow them."""
        return self.replay.events(self.calls.read(lines))

    def copy_state(self) -> State:
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
    before: State | None = None  # None: the range begins with the file

    def rows(self, warn: Warn) -> Iterator[Row]:
        """Yield the calls that concern files."""
        state = deepcopy(self.before) or State.of(self.path)
        yield from state.rows(line for _, line in self.lines(warn))
        name, calls = self.path.name, state.calls
        if calls.damaged:
            warn(f"{name}: {format_counted(calls.damaged, 'damaged line')} left out")
        if calls.unfinished_count and self.end is None:
            warn(f"{name}: {format_counted(calls.unfinished_count, 'unfinished call')} left out")

    def lines(self, warn: Warn) -> Iterator[tuple[int, str]]:
        """Yield the lines with their places."""
        return placed_lines(self.path, warn, begin=self.begin, end=self.end)


def _cut(ranges: list[StraceRange], state: State) -> Iterator[str]:
    """Yield all lines of a whole file, and cut it into ranges; the state follows the lines."""
    whole = ranges[0]
    with open_text(whole.path) as file:
        can_be_cut = file.seekable()
    for at, line in whole.lines(lambda _: None):
        if can_be_cut and at - ranges[-1].begin >= RANGE:
            ranges[-1] = replace(ranges[-1], end=at)
            ranges.append(StraceRange(whole.path, at, before=state.copy_state()))
        yield line
