"""Bring the clocks of several nodes together: by what must coincide, or by what the user says.

Some tracers write the time of each node's own clock. Where one is ahead, calls of its processes
seem to come later than they did. All processes leave a barrier together, and ranks that use a
file in the same way open it together: the difference of these times is that of the clocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from ioprism.formats.reading import add_step
from ioprism.model.trace import Trace, Warn

if TYPE_CHECKING:
    from ioprism.formats.reading import Batches

SUSPICIOUS = 2.0  # seconds between the first calls of two nodes of one job
LEAST = 0.5  # seconds; nodes are not said to differ by less
MOST_NAMED = 3  # clocks in a message
FEWEST_OPENS = 3  # files that have to agree; a barrier shows more than an open does
SCATTER = 0.25  # seconds by which what should coincide may differ among itself
_TOGETHER = ("MPI_Barrier", "MPI_Allreduce", "MPI_Allgather", "MPI_Alltoall", "MPI_File_open",
             "MPI_File_close", "MPI_File_write_all", "MPI_File_read_all", "MPI_File_write_at_all",
             "MPI_File_read_at_all", "MPI_Init", "MPI_Finalize")  # fmt: skip

Spans = Mapping[str, tuple[float, float]]
Times = Mapping[str, pl.DataFrame]  # by clock: key, time


def apply_offsets(trace: Trace, offsets: Mapping[str, float]) -> Trace:
    """Return the trace moved by the offsets of its hosts, its ranks, or its file."""
    if not offsets or not trace.partitions:
        return trace
    names = [pl.col("host"), pl.format("rank{}", "rank"), pl.lit(trace.paths[0].name)]
    known = pl.coalesce(
        name.replace_strict(offsets, default=None, return_dtype=pl.Float64) for name in names
    )
    ahead = trace.processes.select("process", ahead=known.fill_null(0.0))
    if not (ahead["ahead"] != 0).any():
        return trace
    seen = [
        batch.group_by("process").agg(pl.col("start").min(), pl.col("end").max()).collect()
        for batch in trace.batches()
    ]
    wrong = pl.col("ahead").fill_null(0.0)
    times = (
        pl.concat(seen)
        .join(ahead, on="process", how="left")
        .select(first=(pl.col("start") - wrong).min(), last=(pl.col("end") - wrong).max())
    )
    return trace if times["first"].item() is None else _shift_job(trace, ahead, *times.row(0))


def warn_of_unused(offsets: Mapping[str, float], traces: Sequence[Trace]) -> None:
    """Warn about offsets whose host, rank or file is in none of these traces."""
    unused = set(offsets) - {path.name for trace in traces for path in trace.paths}
    for processes in (trace.processes for trace in traces):
        unused -= set(processes["host"].drop_nulls())
        unused -= set(processes.select(pl.format("rank{}", "rank"))["rank"].drop_nulls())
    if unused:
        traces[0].completeness.warn(
            f"no host, rank or file is called {_first_names(sorted(unused))}: "
            "its clock offset is unused"
        )


def align_clocks(
    trace: Trace,
    spans: Spans,
    offsets: Mapping[str, float] | None,
    clocks: pl.DataFrame | None = None,
) -> Trace:
    """Return the trace on one clock; it is looked through only if there is reason to.

    Args:
        trace: its processes know their hosts, unless `clocks` is given.
        spans: first and last time by every clock, in seconds since the job's start.
        offsets: seconds by which clocks are ahead; None: find out.
        clocks: `process` and the name of its clock, `clock`; None: that of its host.
    """
    clocks = trace.processes.select("process", clock="host") if clocks is None else clocks
    if offsets is not None:
        return _move_clocks(trace, offsets, spans, clocks)
    begun = [first for first, _ in spans.values()]
    if len(begun) < 2 or max(begun) - min(begun) < SUSPICIOUS:
        return trace
    seen = _Evidence.of(trace, spans, clocks)
    offsets_of = {name: seen.ahead_by(name) for name in seen.clocks[1:]}
    ahead = {
        n: one for n, one in offsets_of.items() if one is not None and abs(one.seconds) >= LEAST
    }
    apart = [name for name, one in offsets_of.items() if one is None and seen.apart(name)]
    _warn(trace, seen.clocks[0], ahead, apart)
    measured = {name: one.seconds for name, one in ahead.items()}
    return _move_clocks(trace, measured, spans, clocks) if ahead else trace


def _warn(trace: Trace, first: str, ahead: Mapping[str, Ahead], apart: Sequence[str]) -> None:
    """Warn once about clocks with the same offset, such as those of one node's ranks."""
    alike: dict[int, list[str]] = {}
    for name, one in ahead.items():
        alike.setdefault(round(one.seconds / LEAST), []).append(name)
    for names in alike.values():
        one = ahead[names[0]]
        trace.completeness.warn(
            f"the clock of {_first_names(names)} is {abs(one.seconds):.3f} s "
            f"{'ahead of' if one.seconds > 0 else 'behind'} that of {first}, as "
            f"{one.count} {one.what} show; its times are corrected"
        )
    if apart:
        trace.completeness.warn(
            f"the clocks of {first} and {_first_names(apart)} may differ: their calls never "
            "overlap, though they use the same files; correct them with --clock-offsets"
        )


def _first_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


@dataclass(frozen=True, slots=True)
class Ahead:
    """How far a clock is ahead of another, and what shows it."""

    seconds: float
    count: int
    what: str  # barriers or files


@dataclass(frozen=True)
class _Evidence:
    """What the calls say about the clocks."""

    clocks: tuple[str, ...]  # the first one counts
    together: Times  # of calls that all processes leave together
    opened: Times  # of files that processes use in the same way
    spans: Spans

    @classmethod
    def of(cls, trace: Trace, spans: Spans, clocks: pl.DataFrame) -> _Evidence:
        programs = trace.processes.select("process", "application")
        who = clocks.join(programs, on="process").drop_nulls("clock")
        parts = [_coincidences(batch) for batch in trace.batches()]
        calls, files = (pl.concat(tables) for tables in zip(*parts, strict=True))
        calls = calls.sort("process", "function", "end").join(who, on="process")
        order = pl.int_range(pl.len()).over("process", "function")
        calls = calls.with_columns(key=pl.format("{} {}", "function", order))
        files = files.group_by("process", "file").agg(
            pl.col("opened").min(), pl.col("reads", "writes").any()
        )
        files = files.drop_nulls("opened").join(who, on="process")
        files = files.with_columns(
            key=pl.format("{} {} {} {}", pl.col("application").fill_null(""), "file", "reads",
                          "writes")
        )  # fmt: skip
        return cls(
            tuple(name for name in dict.fromkeys(who.sort("process")["clock"]) if name in spans),
            _by_clock(calls.group_by("clock", "key").agg(time=pl.col("end").median())),
            _by_clock(files.group_by("clock", "key").agg(time=pl.col("opened").median())),
            spans,
        )

    def ahead_by(self, host: str) -> Ahead | None:
        """How far a clock is ahead of the first one's; None if nothing shows it."""
        by_calls = self._common_offset(self.together, host, "collective calls", fewest=1)
        if by_calls is not None:
            return by_calls
        by_files = self._common_offset(self.opened, host, "shared files", fewest=FEWEST_OPENS)
        if by_files is None:
            return None
        # Nodes of one job begin together, too; a later step of a workflow does not.
        begun = self.spans[host][0] - self.spans[self.clocks[0]][0]
        as_far = abs(begun - by_files.seconds) <= max(SUSPICIOUS, 0.1 * abs(begun))
        return by_files if as_far else None

    def _common_offset(self, times: Times, host: str, what: str, *, fewest: int) -> Ahead | None:
        one, other = times.get(self.clocks[0]), times.get(host)
        if one is None or other is None:
            return None
        both = one.join(other, on="key", suffix="_other")
        apart = both["time_other"] - both["time"]
        middle = apart.median()
        if len(apart) < fewest or not isinstance(middle, float):
            return None
        scatter = (apart - middle).abs().median()
        agrees = isinstance(scatter, float) and scatter <= SCATTER
        return Ahead(middle, len(apart), what) if agrees else None

    def apart(self, host: str) -> bool:
        """Whether its calls never overlap those of the first one, though they share files."""
        (begin, end), (start, stop) = self.spans[self.clocks[0]], self.spans[host]
        one, other = self.opened.get(self.clocks[0]), self.opened.get(host)
        if one is None or other is None or not (start > end or begin > stop):
            return False
        return one["key"].is_in(other["key"].implode()).any()


def _by_clock(times: pl.DataFrame) -> Times:
    """Part a table once: a job has a clock for each of thousands of ranks."""
    return {str(name): part for (name,), part in times.partition_by("clock", as_dict=True).items()}


def _coincidences(batch: pl.LazyFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What one batch says: calls that coincide, and files by process."""
    operation = pl.col("operation").cast(pl.String)
    name = pl.col("function").cast(pl.String)
    together = batch.filter(name.is_in(_TOGETHER)).select("process", name, "end")
    files = (
        batch.filter(pl.col("file").is_not_null())
        .group_by("process", "file")
        .agg(
            opened=pl.col("start").filter(operation == "open").min(),
            reads=(operation == "read").any(),
            writes=(operation == "write").any(),
        )
    )
    collected = pl.collect_all([together, files])
    return collected[0], collected[1]


def _move_times(batches: Batches, _: Warn, *, moved: pl.DataFrame) -> Batches:
    """Move each process's times by what its clock is ahead."""
    for batch in batches:
        ahead = pl.col("ahead").fill_null(0.0)
        yield (
            batch.join(moved.lazy(), on="process", how="left", maintain_order="left")
            .with_columns(start=pl.col("start") - ahead, end=pl.col("end") - ahead)
            .drop("ahead")
        )


def _move_clocks(
    trace: Trace, ahead: Mapping[str, float], spans: Spans, clocks: pl.DataFrame
) -> Trace:
    """Move the times by clocks that are ahead; the job begins with its first call."""
    first = min(begin - ahead.get(host, 0.0) for host, (begin, _) in spans.items())
    last = max(end - ahead.get(host, 0.0) for host, (_, end) in spans.items())
    by_clock = pl.col("clock").replace_strict(ahead, default=0.0, return_dtype=pl.Float64)
    return _shift_job(trace, clocks.select("process", ahead=by_clock), first, last)


def _shift_job(trace: Trace, ahead: pl.DataFrame, first: float, last: float) -> Trace:
    """Move each process's times by what it is ahead, and the job to its first call."""
    begun = trace.job.start_time
    move = partial(_move_times, moved=ahead.with_columns(pl.col("ahead") + first))
    return trace.derive(
        partitions=tuple(add_step(one, move) for one in trace.partitions),
        job=replace(
            trace.job,
            start_time=None if begun is None else begun + first,
            end_time=None if begun is None else begun + last,
            runtime=last - first,
        ),
    )
