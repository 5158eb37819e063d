"""Compute views on a Dask cluster: one task per partition, joined as a tree or in shards.

The cluster is one that runs already (its address), one on this machine, or one that
dask-jobqueue starts under Slurm, LSF or PBS. A task depends on its partition only, so what a
lost worker had done is simply done again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter, methodcaller
from typing import Any, TypeVar

import polars as pl

from ioprism.engine.base import (
    ContinuedPartition,
    LocalEngine,
    PreparedPartition,
    ShardedView,
    View,
    finish,
)
from ioprism.engine.cluster import Cluster, ClusterSettings, Session, connect, death_of_workers
from ioprism.engine.summaries import (
    SHARDS,
    Summaries,
    check_room,
    needed_by_all,
    pairs,
    sample,
)
from ioprism.errors import AnalysisError, IoprismError
from ioprism.model.trace import Completeness, Job, Partition, Progress, Trace, Warn

Found = TypeVar("Found")
Tables = tuple[pl.DataFrame, ...]
PartitionWork = Callable[[int, Partition | None], Found]  # with its number, counted from 0


@dataclass(frozen=True, slots=True)
class TablePart:
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
    def sharded_views(self) -> tuple[ShardedView, ...]:
        """The views that are joined in shards."""
        return tuple(view for view in self.every if isinstance(view, ShardedView))

    @property
    def plain(self) -> tuple[View, ...]:
        """The views whose tables are small enough to be joined in one step."""
        return tuple(view for view in self.every if not isinstance(view, ShardedView))

    def in_order(self, whole: TablePart, shards: Sequence[TablePart]) -> TablePart:
        """Put the finished tables into the order of the views."""
        plain = iter(whole.tables)
        large = iter(
            [pl.concat(tables) for tables in zip(*(s.tables for s in shards), strict=True)]
        )
        tables = tuple(next(large if isinstance(v, ShardedView) else plain) for v in self.every)
        return TablePart(tables, whole.warnings)


def attempt(work: Callable[..., Found], *args: Any) -> Found | IoprismError:  # noqa: ANN401
    """Hand expected failures back as values: trying again would change nothing."""
    failed = next((one for one in args if isinstance(one, IoprismError)), None)
    if failed is not None:
        return failed
    try:
        return work(*args)
    except IoprismError as error:
        return error


@dataclass(frozen=True, slots=True)
class _Told:
    """A partition that knows what the ones before it have done."""

    partition: PreparedPartition
    earlier: tuple[Any, ...]

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        return self.partition.continue_after(self.earlier, warn)


def on_prepared(
    work: PartitionWork[Any],
    number: int,
    prepared: PreparedPartition,
    *earlier: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Apply a function to a partition, given the moves of the ones before it."""
    return work(number, _Told(prepared, earlier))


def partial_tables(
    views: Views, memory_limit: int | None, number: int, partition: Partition | None
) -> TablePart:  # fmt: skip
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
    return TablePart(
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


def shard_of(part: TablePart, number: int) -> Tables:
    """Take one shard of the tables of a partition."""
    return part.shards[number]


def joined_shard(views: Views, *pieces: Tables) -> TablePart:
    """Finish one shard of the views that are joined in shards."""
    return TablePart(
        tuple(
            finish(view, pl.concat(tables).lazy()).collect()
            for view, tables in zip(views.sharded_views, zip(*pieces, strict=True), strict=True)
        )
    )


def joined_tables(views: Views, last: bool, *parts: TablePart) -> TablePart:
    """Join the small tables of some partitions; the last step finishes them."""
    tables = []
    for number, view in enumerate(views.plain):
        partials = pl.concat([part.tables[number] for part in parts]).lazy()
        table = finish(view, partials) if last else view.combine(partials)
        tables.append(table.collect())
    messages = dict.fromkeys(message for part in parts for message in part.warnings)
    return TablePart(tuple(tables), tuple(messages))


FAN_IN = 8  # tables that one task joins
RETRIES = 2


@dataclass(frozen=True, slots=True)
class DaskEngine:
    """Runs views on a Dask cluster."""

    address: str | None = None  # of a scheduler; None: start a cluster
    cluster: Cluster = "local"
    workers: int = 2
    memory_limit: int | None = None  # bytes for each worker
    progress: Progress | None = None
    session: Session | None = None  # a connection that is there already, instead of all that

    def run(self, trace: Trace, *views: View) -> tuple[pl.DataFrame, ...]:
        """Compute all views in one pass over the events, in the order given.

        Raises:
            MissingPackageError: Dask is not installed.
            UsageError: the cluster cannot be started.
            AnalysisError: the cluster cannot be reached or a task failed for good.
        """
        with self._client() as client:
            part = _Graph(client, Views(views), self.memory_limit, self.progress).run(trace)
        for message in part.warnings:
            trace.completeness.warn(message)
        return part.tables

    def map_partitions(self, trace: Trace, work: PartitionWork[Found]) -> list[Found]:
        """Apply a function to every partition and its number, on the workers.

        Raises:
            IoprismError: as `run`, or what the function raises.
        """
        with self._client() as client:
            graph = _Graph(client, Views(()), self.memory_limit, self.progress)
            return [graph.result(one) for one in graph.each(trace.partitions, work)]

    @contextmanager
    def _client(self) -> Iterator[Any]:
        if self.session is not None:
            yield self.session.client()
            return
        settings = ClusterSettings(self.address, self.cluster, self.workers, self.memory_limit)
        with connect(settings) as client:
            yield client


@dataclass(frozen=True, slots=True)
class _Graph:
    """The tasks of one run."""

    client: Any
    views: Views
    memory_limit: int | None
    progress: Progress | None

    def run(self, trace: Trace) -> TablePart:
        self._check_beforehand(trace.partitions)
        with warnings.catch_warnings():
            # Events in memory travel with their task: only so can a lost one be done again.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            parts = self._parts(trace.partitions)
        # What the shards need is taken out of the parts before those are let go.
        shards = self._shards(parts) if self.views.sharded_views else []
        whole = self.result(self._tree(parts))
        done = [self.result(shard) for shard in shards]
        return self.views.in_order(whole, done)

    def _check_beforehand(self, partitions: Sequence[Partition]) -> None:
        """Refuse what this process, which gets the results, cannot hold within the limit."""
        if self.memory_limit is None or not self.views.sharded_views:
            return
        tasks = [self._submit(sample, self.views.every, pair) for pair in pairs(partitions)]
        samples = [self.result(task) for task in tasks]
        if samples:
            check_room(needed_by_all(samples, len(partitions)), self.memory_limit)

    def _submit(self, work: Any, *given: Any) -> Any:  # noqa: ANN401
        return self.client.submit(attempt, work, *given, retries=RETRIES, pure=False)

    def _parts(self, partitions: Sequence[Partition]) -> list[Any]:
        work = partial(partial_tables, self.views, self.memory_limit)
        return self.each(partitions, work) or [self._submit(work, 0, None)]

    def each(self, partitions: Sequence[Partition], work: PartitionWork[Any]) -> list[Any]:
        """Submit a task for each partition; one that continues others gets their moves."""
        moves: list[Any] = []
        tasks = []
        for place, partition in enumerate(partitions):
            if not isinstance(partition, ContinuedPartition):
                tasks.append(self._submit(work, place, partition))
                moves.append(None)
                continue
            prepared = self._submit(methodcaller("prepare"), partition)
            earlier = moves[place - partition.continues :]
            tasks.append(self._submit(on_prepared, work, place, prepared, *earlier))
            moves.append(self._submit(attrgetter("moves"), prepared))
        return tasks

    def _shards(self, parts: Sequence[Any]) -> list[Any]:
        return [
            self._submit(
                joined_shard, self.views, *(self._submit(shard_of, part, n) for part in parts)
            )
            for n in range(SHARDS)
        ]

    def _tree(self, parts: Sequence[Any]) -> Any:  # noqa: ANN401
        waiting = [self._submit(joined_tables, self.views, False, part) for part in parts]
        while len(waiting) > FAN_IN:
            waiting = [
                self._submit(joined_tables, self.views, False, *waiting[n : n + FAN_IN])
                for n in range(0, len(waiting), FAN_IN)
            ]
        return self._submit(joined_tables, self.views, True, *waiting)

    def result(self, future: Any) -> Any:  # noqa: ANN401
        """Wait for a task; an expected failure is raised here."""
        try:
            result = future.result()
        except Exception as error:
            raise self._failure(error) from error
        if isinstance(result, IoprismError):
            raise result
        if self.progress is not None:
            self.progress(1)
        return result

    def _failure(self, error: Exception) -> AnalysisError:
        if type(error).__name__ != "KilledWorker":
            return AnalysisError(
                f"the cluster could not compute this: {type(error).__name__}: {error}.\n"
                "Hint: try --engine local."
            )
        why = (
            death_of_workers(self.client)
            or "for no recorded reason; the batch system may have stopped them"
        )
        return AnalysisError(
            f"workers kept dying while computing ({why}).\n"
            "Hint: give workers more memory with --memory-limit, or use --engine local."
        )
