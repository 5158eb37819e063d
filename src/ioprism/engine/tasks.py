"""What runs on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import polars as pl

from ioprism.engine.base import (
    ContinuedPartition,
    PreparedPartition,
    ShardedView,
    View,
    finish,
)
from ioprism.engine.local import LocalEngine
from ioprism.engine.summaries import Sample, Summaries, sample
from ioprism.errors import IoprismError
from ioprism.model.trace import Completeness, Job, Partition, Trace, Warn

Found = TypeVar("Found")
Tables = tuple[pl.DataFrame, ...]
PartitionWork = Callable[[int, Partition | None], Found]  # with its number, counted from 0


@dataclass(frozen=True, slots=True)
class Part:
    """Tables over some partitions, and what could not be read of them."""

    tables: Tables
    warnings: tuple[str, ...] = ()
    shards: tuple[Tables, ...] = ()  # of the views that are joined in shards

    def __sizeof__(self) -> int:
        """Tell Dask what it would move: it would take this for a few bytes, and move it about."""
        tables = [table for some in (self.tables, *self.shards) for table in some]
        return int(sum(table.estimated_size() for table in tables))


@dataclass(frozen=True, slots=True)
class Views:
    """What to compute."""

    every: tuple[View, ...]

    @property
    def sharded(self) -> tuple[ShardedView, ...]:
        """The views that are joined in shards."""
        return tuple(view for view in self.every if isinstance(view, ShardedView))

    @property
    def plain(self) -> tuple[View, ...]:
        """The views whose tables are small enough to be joined at once."""
        return tuple(view for view in self.every if not isinstance(view, ShardedView))

    def assembled(self, whole: Part, shards: Sequence[Part]) -> Part:
        """Put the finished tables into the order of the views."""
        plain = iter(whole.tables)
        large = iter(
            [pl.concat(tables) for tables in zip(*(s.tables for s in shards), strict=True)]
        )
        tables = tuple(next(large if isinstance(v, ShardedView) else plain) for v in self.every)
        return Part(tables, whole.warnings)


def expected_failures_returned(work: Callable[..., Found]) -> Callable[..., Found | IoprismError]:
    """Hand expected failures back as values: trying again would change nothing."""

    @wraps(work)
    def attempted(*args: Any) -> Found | IoprismError:  # noqa: ANN401
        failed = next((one for one in args if isinstance(one, IoprismError)), None)
        if failed is not None:
            return failed
        try:
            return work(*args)
        except IoprismError as error:
            return error

    return attempted


@dataclass(frozen=True, slots=True)
class _Told:
    """A partition that knows what the ones before it have done."""

    partition: PreparedPartition
    earlier: tuple[Any, ...]

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        return self.partition.continued(self.earlier, warn)


@expected_failures_returned
def prepared_of(partition: ContinuedPartition) -> PreparedPartition:
    """Read a partition that continues another, or is continued, without knowing the others."""
    return partition.prepared()


@expected_failures_returned
def moves_of(prepared: PreparedPartition) -> Any:  # noqa: ANN401 - only the format knows
    """Return what later partitions have to know of this one."""
    return prepared.moves


@expected_failures_returned
def on_partition(work: PartitionWork[Any], number: int, partition: Partition | None) -> Any:  # noqa: ANN401
    """Apply a function to a partition."""
    return work(number, partition)


@expected_failures_returned
def on_prepared(
    work: PartitionWork[Any],
    number: int,
    prepared: PreparedPartition,
    *earlier: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Apply a function to a partition that is told what the ones before it have done."""
    return work(number, _Told(prepared, earlier))


@expected_failures_returned
def sample_of(views: Views, pair: tuple[Partition, Partition]) -> Sample:
    """Summarise two neighbouring partitions, to know what all will need."""
    return sample(views.every, pair)


def partial_tables(
    views: Views, memory_limit: int | None, number: int, partition: Partition | None
) -> Part:  # fmt: skip
    """Compute all views of one partition."""
    del number
    completeness = Completeness()
    trace = Trace(
        "partition",
        (),
        Job(),
        () if partition is None else (partition,),
        load_files=pl.DataFrame,
        load_processes=pl.DataFrame,
        completeness=completeness,
    )
    engine = LocalEngine(memory_limit=memory_limit or _memory_of_worker())
    summaries = engine.summarise(trace, views.every)
    return Part(
        tuple(one.combine() for one in summaries if not isinstance(one.view, ShardedView)),
        completeness.warnings,
        tuple(zip(*_shards(summaries), strict=True)),
    )


def _shards(summaries: Sequence[Summaries]) -> Iterator[Iterator[pl.DataFrame]]:
    for one in summaries:
        if isinstance(one.view, ShardedView):
            yield one.shards(one.view.shard_by)


def _memory_of_worker() -> int | None:
    """Bytes that this worker may use, if it is one and has a limit."""
    from distributed import get_worker

    try:
        limit = get_worker().memory_manager.memory_limit
    except ValueError:
        return None
    return int(limit) if limit else None


@expected_failures_returned
def shard_of(part: Part, number: int) -> Tables:
    """Take one shard of the tables of a partition."""
    return part.shards[number]


@expected_failures_returned
def joined_shard(views: Views, *pieces: Tables) -> Part:
    """Finish one shard of the views that are joined in shards."""
    return Part(
        tuple(
            finish(view, pl.concat(tables).lazy()).collect()
            for view, tables in zip(views.sharded, zip(*pieces, strict=True), strict=True)
        )
    )


@expected_failures_returned
def joined_tables(views: Views, last: bool, *parts: Part) -> Part:
    """Join the small tables of some partitions; the last step finishes them."""
    tables = []
    for number, view in enumerate(views.plain):
        partials = pl.concat([part.tables[number] for part in parts]).lazy()
        table = finish(view, partials) if last else view.combine(partials)
        tables.append(table.collect())
    messages = dict.fromkeys(message for part in parts for message in part.warnings)
    return Part(tuple(tables), tuple(messages))
