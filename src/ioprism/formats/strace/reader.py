"""Turn what strace wrote into a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.formats.call_rows import RowPartition, Span
from ioprism.formats.strace.lines import has_date, looks_like_strace
from ioprism.formats.strace.ranges import Ranges, State
from ioprism.formats.strace.replay import Process
from ioprism.formats.text import head
from ioprism.model.files import file_table
from ioprism.model.schema import PROCESSES
from ioprism.model.trace import Completeness, Job, Trace
from ioprism.model.usage import is_data

HEAD = 16384  # bytes that show what a file is


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
        span, first, moved = Span(), State(), Counter[int]()
        ranges = Ranges(source)
        for row in first.rows(ranges.cut(first)):
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
        processes = list(replay.processes.values())
        program = _program(processes, moved)
        ranks = _ranks(processes, program)
        return Trace(
            format=self.name,
            paths=(source,),
            job=_job(source, span.first, span.last, len(set(ranks.values())), program),
            partitions=tuple(
                RowPartition(part, span.first, span.paths, ranks) for part in ranges.found
            ),
            load_files=lambda: file_table(list(span.paths)),
            load_processes=partial(_process_table, processes, ranks),
            completeness=completeness,
        )


def _job(source: Path, first: float, last: float, ranks: int, program: str | None) -> Job:
    dated = has_date(head(source, HEAD))
    return Job(
        ranks=ranks,
        start_time=first if dated else None,
        end_time=last if dated else None,
        runtime=last - first,
        executable=program,
    )


def _program(processes: list[Process], moved: Mapping[int, int]) -> str | None:
    """The program that moves most, rather than the launcher or the shell that started it."""
    sums = dict.fromkeys((process.program for process in processes if process.program), 0)
    for process in processes:
        if process.program:
            sums[process.program] += moved.get(process.row, 0)
    return max(sums, key=lambda name: sums[name], default=None)


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
