"""Several traces as one: the logs of one job, or the applications of a workflow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, takewhile

import polars as pl

from ioprism.model.arrays import StepFunction, TimeSeries
from ioprism.model.schema import FILES, PROCESSES
from ioprism.model.trace import Completeness, Job, LazyTables, Partition, Trace, Warn

MOST_NAMED = 3  # programs in the name of a workflow


@dataclass(frozen=True, slots=True)
class RenumberedPartition:
    """A partition whose times, ranks, processes and files are those of the merged trace."""

    inner: Partition
    shift: float  # seconds
    first_rank: int
    first_process: int
    files: pl.Series  # row of the merged file table, by row of the inner one

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield the inner batches, renumbered."""
        for batch in self.inner.batches(warn):
            yield batch.with_columns(
                start=pl.col("start") + self.shift,
                end=pl.col("end") + self.shift,
                rank=pl.col("rank") + self.first_rank,
                process=pl.col("process") + self.first_process,
                file=look_up_rows("file", self.files),
            )


def look_up_rows(column: str, rows: pl.Series) -> pl.Expr:
    """Look up each row number in `rows`; null stays null."""
    return pl.lit(rows).gather(pl.col(column)).alias(column)


def merge(traces: Sequence[Trace]) -> Trace:
    """Join traces on one clock; a single trace is returned as it is."""
    if len(traces) == 1:
        return traces[0]
    return _Merged(tuple(traces)).trace()


@dataclass(frozen=True)
class _Merged:
    traces: tuple[Trace, ...]

    @cached_property
    def shares_ranks(self) -> bool:
        """Whether the traces are the ranks of one killed job rather than separate jobs."""
        jobs = {(t.job.ranks, t.job.executable, t.job.user) for t in self.traces}
        return len(jobs) == 1 and all(
            t.job.end_time is None and (t.job.ranks or 1) > 1 for t in self.traces
        )

    @cached_property
    def first_ranks(self) -> list[int]:
        if self.shares_ranks:
            return [0] * len(self.traces)
        return _starts([trace.job.ranks or 1 for trace in self.traces])

    @cached_property
    def shifts(self) -> list[float]:
        """Seconds from the first job's start to each job's; 0 where a start is unknown."""
        known = [t.job.start_time for t in self.traces if t.job.start_time is not None]
        first = min(known, default=0.0)
        return [
            0.0 if trace.job.start_time is None else trace.job.start_time - first
            for trace in self.traces
        ]

    @cached_property
    def files(self) -> pl.DataFrame:
        """Every path once."""
        tables = pl.concat([trace.files for trace in self.traces])
        unique = tables.unique("path", keep="first", maintain_order=True).drop("file")
        own = unique.with_row_index("file")
        parents = self._parents(own)
        return FILES.conform(own.drop("parent").join(parents, on="file", how="left"))

    def _parents(self, files: pl.DataFrame) -> pl.DataFrame:
        """The parent of each data set, in the merged numbering."""
        rows = files.select("file", "path")
        pairs = [
            trace.files.filter(pl.col("parent").is_not_null())
            .join(trace.files.select(parent="file", parent_path="path"), on="parent")
            .select("path", "parent_path")
            for trace in self.traces
        ]
        return (
            pl.concat(pairs)
            .unique("path", keep="first")
            .join(rows, on="path")
            .join(rows.select(parent="file", parent_path="path"), on="parent_path")
            .select("file", "parent")
        )

    @cached_property
    def file_rows(self) -> list[pl.Series]:
        """For each trace: row of the merged table by its original row."""
        return [_rows(trace.files, self.files) for trace in self.traces]

    @cached_property
    def first_processes(self) -> list[int]:
        if self.shares_ranks:
            return [0] * len(self.traces)
        return _starts([trace.processes.height for trace in self.traces])

    @cached_property
    def processes(self) -> pl.DataFrame:
        firsts = zip(self.traces, self.first_processes, self.first_ranks, strict=True)
        tables = [
            trace.processes.with_columns(
                process=pl.col("process") + process, rank=pl.col("rank") + rank
            )
            for trace, process, rank in firsts
        ]
        every = pl.concat(tables).unique("process", keep="first", maintain_order=True)
        return PROCESSES.conform(every)

    def trace(self) -> Trace:
        formats = dict.fromkeys(trace.format for trace in self.traces)
        modules = dict.fromkeys(name for trace in self.traces for name in trace.counters)
        return Trace(
            format="+".join(formats),
            paths=tuple(path for trace in self.traces for path in trace.paths),
            job=self._job(),
            partitions=tuple(self._partitions()),
            counters=LazyTables({name: partial(self._counters, name) for name in modules}),
            series=self._series(),
            load_files=lambda: self.files,
            load_processes=lambda: self.processes,
            completeness=Completeness.of(*(trace.completeness for trace in self.traces)),
        )

    def _job(self) -> Job:
        jobs = [trace.job for trace in self.traces]
        starts = [job.start_time for job in jobs if job.start_time is not None]
        ends = [job.end_time for job in jobs if job.end_time is not None]
        programs = dict.fromkeys(job.executable for job in jobs if job.executable)
        ids = dict.fromkeys(job.job_id for job in jobs if job.job_id)
        ranks = [job.ranks for job in jobs if job.ranks is not None]
        start, end = min(starts, default=None), max(ends, default=None)
        return Job(
            ranks=(max(ranks) if self.shares_ranks else sum(ranks)) if ranks else None,
            start_time=start,
            end_time=end,
            runtime=end - start if start is not None and end is not None else _longest(jobs),
            executable=_program(list(programs)),
            user=jobs[0].user if len({job.user for job in jobs}) == 1 else None,
            job_id=next(iter(ids)) if len(ids) == 1 else None,
            mounts=tuple(dict.fromkeys(mount for job in jobs for mount in job.mounts)),
            metadata=jobs[0].metadata if len({str(job.metadata) for job in jobs}) == 1 else {},
        )

    def _partitions(self) -> Iterator[Partition]:
        if not any(trace.partitions for trace in self.traces):
            return
        for number, trace in enumerate(self.traces):
            for partition in trace.partitions:
                yield RenumberedPartition(
                    partition,
                    self.shifts[number],
                    self.first_ranks[number],
                    self.first_processes[number],
                    self.file_rows[number],
                )

    def _series(self) -> dict[str, TimeSeries]:
        """The series of all traces; those of one name get the name of their file."""
        merged: dict[str, TimeSeries] = {}
        for trace, shift in zip(self.traces, self.shifts, strict=True):
            for name, series in trace.series.items():
                own = name if name not in merged else f"{name} ({trace.paths[0].name})"
                steps = StepFunction(series.steps.edges + shift, series.steps.values)
                merged[own] = TimeSeries(own, steps, series.direction)
        return merged

    def _counters(self, name: str) -> pl.DataFrame:
        tables = []
        for number, trace in enumerate(self.traces):
            if name not in trace.counters:
                continue
            table = trace.counters[name]
            shared = pl.col("rank") < 0
            rank = pl.when(shared).then("rank").otherwise(pl.col("rank") + self.first_ranks[number])
            rows = [c for c in ("file", "parent") if c in table.columns]
            tables.append(
                table.with_columns(
                    rank.alias("rank"), *(look_up_rows(c, self.file_rows[number]) for c in rows)
                )
            )
        return pl.concat(tables, how="diagonal")


def _starts(sizes: Sequence[int]) -> list[int]:
    """Where each block starts when blocks of these sizes stand in a row."""
    return list(accumulate(sizes[:-1], initial=0))


def _rows(own: pl.DataFrame, merged: pl.DataFrame) -> pl.Series:
    joined = own.select("file", "path").join(
        merged.select("path", row="file"), on="path", how="left", maintain_order="left"
    )
    highest = joined["file"].max()
    size = highest + 1 if isinstance(highest, int) else 0
    every = pl.DataFrame({"file": pl.Series(range(size), dtype=pl.UInt32)})
    return every.join(joined, on="file", how="left", maintain_order="left")["row"]


def _program(commands: Sequence[str]) -> str | None:
    """What all command lines begin with, or the first few of them."""
    if len(commands) < 2:
        return commands[0] if commands else None
    columns = zip(*map(str.split, commands), strict=False)
    common = [words[0] for words in takewhile(lambda words: len(set(words)) == 1, columns)]
    if common:
        return f"{' '.join(common)} …"
    more = f" + {len(commands) - MOST_NAMED} more" if len(commands) > MOST_NAMED else ""
    return " + ".join(commands[:MOST_NAMED]) + more


def _longest(jobs: Sequence[Job]) -> float | None:
    """Without a clock in common, jobs are taken to start together."""
    known = [job.runtime for job in jobs if job.runtime is not None]
    return max(known) if known and len(known) == len(jobs) else None
