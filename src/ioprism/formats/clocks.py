"""Bring the clocks of several nodes together: by what must coincide, or by what the user says.

Some tracers write the time of each node's own clock. Where one is ahead, calls of its processes
seem to come later than they did. All processes leave a barrier together, and ranks that use a
file alike open it together; how far apart they seem to do so is how far apart the clocks are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from ioprism.errors import UsageError
from ioprism.model.trace import Partition, Trace, Warn

SUSPICIOUS = 2.0  # seconds between the first calls of two nodes of one job
LEAST = 0.5  # seconds; nodes are not told to differ by less
FEWEST_OPENS = 3  # files that have to agree; a barrier shows more than an open does
SCATTER = 0.25  # seconds by which what should coincide may differ among itself
_TOGETHER = ("MPI_Barrier", "MPI_Allreduce", "MPI_Allgather", "MPI_Alltoall", "MPI_File_open",
             "MPI_File_close", "MPI_File_write_all", "MPI_File_read_all", "MPI_File_write_at_all",
             "MPI_File_read_at_all", "MPI_Init", "MPI_Finalize")  # fmt: skip

Spans = Mapping[str, tuple[float, float]]
_said: ContextVar[Mapping[str, float] | None] = ContextVar("clock_offsets", default=None)


@contextmanager
def clock_offsets(offsets: Mapping[str, float] | None) -> Iterator[None]:
    """Say by how many seconds the clocks of hosts are ahead, for traces read meanwhile."""
    token = _said.set(offsets)
    try:
        yield
    finally:
        _said.reset(token)


def read_clock_offsets(path: Path) -> dict[str, float]:
    """Read lines of a host and the seconds its clock is ahead.

    Raises:
        UsageError: the file cannot be read, or has a line of another kind.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: the clock offsets cannot be read ({error}).") from error
    found = {}
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            host, ahead = words
            found[host] = float(ahead)
        except ValueError:
            raise UsageError(
                f"{path}, line {number}: this is not a host and a number of seconds: {line!r}.\n"
                "Hint: write lines such as `node2 60.0`."
            ) from None
    return found


def aligned(trace: Trace, spans: Spans) -> Trace:
    """Return the trace on one clock; it is looked through only if there is reason to.

    Args:
        trace: its processes know their hosts.
        spans: first and last time of every host, in seconds since the job's start.
    """
    said = _said.get()
    if said is not None:
        unknown = sorted(set(said) - set(trace.processes["host"].drop_nulls()))
        if unknown:
            trace.completeness.warn(
                f"no process runs on {', '.join(unknown)}; that clock offset is unused"
            )
        return _moved(trace, said, spans)
    begun = [first for first, _ in spans.values()]
    if len(begun) < 2 or max(begun) - min(begun) < SUSPICIOUS:
        return trace
    seen = _Seen.of(trace, spans)
    ahead = {}
    for host in seen.hosts[1:]:
        found = seen.ahead_by(host)
        if found is not None and abs(found.seconds) >= LEAST:
            ahead[host] = found.seconds
            trace.completeness.warn(
                f"the clock of {host} is {abs(found.seconds):.3f} s "
                f"{'ahead of' if found.seconds > 0 else 'behind'} that of {seen.hosts[0]}, as "
                f"{found.count} {found.what} show; its times are corrected"
            )
        elif found is None and seen.apart(host):
            trace.completeness.warn(
                f"the clocks of {seen.hosts[0]} and {host} may differ: their calls never overlap, "
                "though they use the same files; correct them with --clock-offsets"
            )
    return _moved(trace, ahead, spans) if ahead else trace


@dataclass(frozen=True, slots=True)
class Ahead:
    """How far a clock is ahead of another, and what shows it."""

    seconds: float
    count: int
    what: str  # barriers or files


@dataclass(frozen=True)
class _Seen:
    """What the calls say about the clocks."""

    hosts: tuple[str, ...]  # the first one's clock counts
    together: pl.DataFrame  # host, key, time: of calls that all processes leave together
    opened: pl.DataFrame  # host, key, time: of files that processes use alike
    spans: Spans

    @classmethod
    def of(cls, trace: Trace, spans: Spans) -> _Seen:
        who = trace.processes.select("process", "host", "application").drop_nulls("host")
        parts = [_noted(batch) for batch in trace.batches()]
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
            tuple(who.sort("process")["host"].unique(maintain_order=True)),
            calls.group_by("host", "key").agg(time=pl.col("end").median()),
            files.group_by("host", "key").agg(time=pl.col("opened").median()),
            spans,
        )

    def ahead_by(self, host: str) -> Ahead | None:
        """How far a host's clock is ahead of the first one's; None if nothing shows it."""
        by_calls = self._agreed(self.together, host, "collective calls", fewest=1)
        if by_calls is not None:
            return by_calls
        by_files = self._agreed(self.opened, host, "shared files", fewest=FEWEST_OPENS)
        if by_files is None:
            return None
        # Nodes of one job begin together, too; a later step of a workflow does not.
        begun = self.spans[host][0] - self.spans[self.hosts[0]][0]
        as_far = abs(begun - by_files.seconds) <= max(SUSPICIOUS, 0.1 * abs(begun))
        return by_files if as_far else None

    def _agreed(self, times: pl.DataFrame, host: str, what: str, *, fewest: int) -> Ahead | None:
        one, other = (times.filter(pl.col("host") == name) for name in (self.hosts[0], host))
        both = one.join(other, on="key", suffix="_other")
        apart = both["time_other"] - both["time"]
        middle = apart.median()
        if len(apart) < fewest or not isinstance(middle, float):
            return None
        scatter = (apart - middle).abs().median()
        agrees = isinstance(scatter, float) and scatter <= SCATTER
        return Ahead(middle, len(apart), what) if agrees else None

    def apart(self, host: str) -> bool:
        """Whether a host's calls never overlap those of the first one, though they share files."""
        (begin, end), (start, stop) = self.spans[self.hosts[0]], self.spans[host]
        one, other = (self.opened.filter(pl.col("host") == n)["key"] for n in (self.hosts[0], host))
        return (start > end or begin > stop) and one.is_in(other.implode()).any()


def _noted(batch: pl.LazyFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
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
    found = pl.collect_all([together, files])
    return found[0], found[1]


@dataclass(frozen=True, slots=True, eq=False)
class ClockedPartition:
    """A partition whose times are those of one clock."""

    inner: Partition
    moved: pl.DataFrame  # process, ahead: seconds

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield the inner batches, each process's times moved by what its clock is ahead."""
        for batch in self.inner.batches(warn):
            ahead = pl.col("ahead").fill_null(0.0)
            yield (
                batch.join(self.moved.lazy(), on="process", how="left", maintain_order="left")
                .with_columns(start=pl.col("start") - ahead, end=pl.col("end") - ahead)
                .drop("ahead")
            )


def _moved(trace: Trace, ahead: Mapping[str, float], spans: Spans) -> Trace:
    """Move the times of hosts whose clocks are ahead; the job begins with its first call."""
    first = min(begin - ahead.get(host, 0.0) for host, (begin, _) in spans.items())
    last = max(end - ahead.get(host, 0.0) for host, (_, end) in spans.items())
    begun = trace.job.start_time
    on_host = pl.col("host").replace_strict(ahead, default=0.0, return_dtype=pl.Float64)
    table = trace.processes.select("process", ahead=on_host + first)
    return replace(
        trace,
        partitions=tuple(ClockedPartition(one, table) for one in trace.partitions),
        job=replace(
            trace.job,
            start_time=None if begun is None else begun + first,
            end_time=None if begun is None else begun + last,
            runtime=last - first,
        ),
        load_files=lambda: trace.files,
        load_processes=lambda: trace.processes,
    )
