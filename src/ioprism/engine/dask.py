"""Compute views on a Dask cluster: one task per partition, joined as a tree or in shards.

The cluster is one that runs already (its address), one on this machine, or one that
dask-jobqueue starts under Slurm, LSF or PBS. A task depends on its partition only, so what a
lost worker had done is simply done again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from ioprism.engine.base import ContinuedPartition, View
from ioprism.engine.cluster import Cluster, ClusterSettings, Session, connected, death_of_workers
from ioprism.engine.summaries import SHARDS, check_room, needed_by_all, pairs
from ioprism.engine.tasks import (
    Found,
    Part,
    PartitionWork,
    Views,
    joined_shard,
    joined_tables,
    moves_of,
    on_partition,
    on_prepared,
    partial_tables,
    prepared_of,
    sample_of,
    shard_of,
)
from ioprism.errors import AnalysisError, IoprismError
from ioprism.model.trace import Partition, Progress, Trace

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
            found = _Graph(client, Views(views), self.memory_limit, self.progress).run(trace)
        for message in found.warnings:
            trace.completeness.warn(message)
        return found.tables

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
        with connected(settings) as client:
            yield client


@dataclass(frozen=True, slots=True)
class _Graph:
    """The tasks of one run."""

    client: Any
    views: Views
    memory_limit: int | None
    progress: Progress | None

    def run(self, trace: Trace) -> Part:
        self._check_beforehand(trace.partitions)
        with warnings.catch_warnings():
            # Events in memory travel with their task: only so can a lost one be done again.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            parts = self._parts(trace.partitions)
        # What the shards need is taken out of the parts before those are let go.
        shards = self._shards(parts) if self.views.sharded else []
        whole = self.result(self._tree(parts))
        done = [self.result(shard) for shard in shards]
        return self.views.assembled(whole, done)

    def _check_beforehand(self, partitions: Sequence[Partition]) -> None:
        """Refuse what this process, which gets the results, cannot hold within the limit."""
        if self.memory_limit is None or not self.views.sharded:
            return
        tasks = [self._submit(sample_of, self.views, pair) for pair in pairs(partitions)]
        samples = [self.result(task) for task in tasks]
        if samples:
            check_room(needed_by_all(samples, len(partitions)), self.memory_limit)

    def _submit(self, work: Any, *given: Any) -> Any:  # noqa: ANN401
        return self.client.submit(work, *given, retries=RETRIES, pure=False)

    def _parts(self, partitions: Sequence[Partition]) -> list[Any]:
        work = partial(partial_tables, self.views, self.memory_limit)
        return self.each(partitions, work) or [self._submit(on_partition, work, 0, None)]

    def each(self, partitions: Sequence[Partition], work: PartitionWork[Any]) -> list[Any]:
        """Submit a task for each partition; one that continues others is told of them."""
        moves: list[Any] = []
        tasks = []
        for place, partition in enumerate(partitions):
            if not isinstance(partition, ContinuedPartition):
                tasks.append(self._submit(on_partition, work, place, partition))
                moves.append(None)
                continue
            prepared = self._submit(prepared_of, partition)
            earlier = moves[place - partition.continues :]
            tasks.append(self._submit(on_prepared, work, place, prepared, *earlier))
            moves.append(self._submit(moves_of, prepared))
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
            found = future.result()
        except Exception as error:
            raise self._failure(error) from error
        if isinstance(found, IoprismError):
            raise found
        if self.progress is not None:
            self.progress(1)
        return found

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
