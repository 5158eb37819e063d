"""One gate for the events of all readers: what cannot be true is left out, and counted.

Traces are untrusted, and a single call of 1e308 seconds or -5 bytes would make every sum of an
answer wrong. Readers pass on what a trace says; this is where it is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from ioprism.model.layers import LARGEST_PLAUSIBLE, MOST_RANKS
from ioprism.model.trace import Job, Partition, Trace, Warn
from ioprism.units import format_counted

if TYPE_CHECKING:  # small signals are read without a table library
    import polars as pl

LATEST = 1e11  # seconds; beyond any clock
SIZES = ("bytes", "offset")


@dataclass(frozen=True, slots=True, eq=False)
class PlausiblePartition:
    """The events of another partition, without those that cannot be true."""

    partition: Partition
    source: str  # name of the trace

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield what is plausible; say how much was left out."""
        return _checked(self.partition.batches(warn), self.source, warn)


@dataclass(frozen=True, slots=True, eq=False)
class PlausibleRange(PlausiblePartition):
    """The same for a part of a file for which the parts before it matter."""

    @property
    def continues(self) -> int:
        """How many of the partitions in front of it belong to the same file."""
        return cast("Any", self.partition).continues  # type: ignore[no-any-return]

    def prepared(self) -> PlausiblePrepared:
        """Read it as far as that is possible without knowing the parts before it."""
        return PlausiblePrepared(cast("Any", self.partition).prepared(), self.source)


@dataclass(frozen=True, slots=True, eq=False)
class PlausiblePrepared:
    """A part that was read alone, and has to be told of the parts before it."""

    prepared: Any  # as its format made it
    source: str

    @property
    def moves(self) -> Any:  # noqa: ANN401 - only the format knows
        """What later parts have to know of this one."""
        return self.prepared.moves

    def continued(self, earlier: Sequence[Any], warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield what is plausible, given the moves of the parts before this one."""
        return _checked(self.prepared.continued(earlier, warn), self.source, warn)


def _checked(batches: Iterator[pl.LazyFrame], source: str, warn: Warn) -> Iterator[pl.LazyFrame]:
    impossible = dict.fromkeys(("times", *SIZES), 0)
    for batch in batches:
        implausible = batch.select(times=_wrong_times(), **_wrong_sizes()).sum().collect()
        for name, number in implausible.row(0, named=True).items():
            impossible[name] += number or 0
        yield _sound(batch) if sum(implausible.row(0)) else batch
    _tell(impossible, lambda message: warn(f"{source}: {message}"))


def _gated(partition: Partition, source: str) -> Partition:
    """Put a partition behind the gate, unless its reader has judged every event itself."""
    if getattr(partition, "judged", False):
        return partition
    kind = PlausibleRange if hasattr(partition, "prepared") else PlausiblePartition
    return kind(partition, source)


def _wrong_times() -> pl.Expr:
    import polars as pl

    start, end = pl.col("start"), pl.col("end")
    sound = (start.abs() < LATEST) & (end.abs() < LATEST) & (end >= start)
    return sound.fill_null(False).not_()  # NaN compares as larger than every number


def _possible(name: str) -> pl.Expr:
    import polars as pl

    return pl.col(name).is_between(0, LARGEST_PLAUSIBLE)


def _wrong_sizes() -> dict[str, pl.Expr]:
    """Sizes that a call which counts gives, and that cannot be."""
    counts = _wrong_times().not_()
    return {name: _possible(name).not_().fill_null(False) & counts for name in SIZES}


def _sound(batch: pl.LazyFrame) -> pl.LazyFrame:
    import polars as pl

    kept = [pl.when(_possible(name)).then(pl.col(name)).alias(name) for name in SIZES]
    return batch.filter(_wrong_times().not_()).with_columns(kept)


def _tell(impossible: dict[str, int], warn: Warn) -> None:
    if impossible["times"]:
        warn(f"{format_counted(impossible['times'], 'call')} with impossible times left out")
    for name in SIZES:
        if impossible[name]:
            what = "size" if name == "bytes" else "offset"
            many = format_counted(impossible[name], "call")
            warn(f"{many} with an impossible {what}, which is left out")


def _plausible_job(job: Job, warn: Warn) -> Job:
    for name in ("runtime", "start_time", "end_time"):
        value = getattr(job, name)
        if value is not None and not 0 <= value < LATEST:
            what = name.replace("_", " ")
            warn(f"the job's {what} of {value:g} s is impossible; it is left out")
            changed: dict[str, Any] = {name: None}
            job = replace(job, **changed)
    if job.ranks is not None and not 0 <= job.ranks <= MOST_RANKS:
        warn("the job's number of ranks is impossible; it is left out")
        job = replace(job, ranks=None)
    return job


def gated(trace: Trace) -> Trace:
    """Return a trace whose events and facts about the job have passed the gate."""
    name = trace.paths[0].name if trace.paths else trace.format
    return trace.derive(
        job=_plausible_job(trace.job, trace.completeness.warn),
        partitions=tuple(_gated(part, name) for part in trace.partitions),
    )
