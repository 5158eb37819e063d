"""Compute views on a Dask cluster: one task per partition, joined as a tree.

The cluster is one that runs already (its address), one on this machine, or one that
dask-jobqueue starts under Slurm, LSF or PBS. A task depends on its partition only, so what a
lost worker had done is simply done again.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, TypeVar

import polars as pl

from ioprism.engine.base import View, finished
from ioprism.engine.local import Held, LocalEngine
from ioprism.errors import AnalysisError, IoprismError, MissingPackageError, UsageError
from ioprism.model.schema import EVENTS
from ioprism.model.trace import Completeness, Job, Partition, Progress, Trace
from ioprism.text import printable

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Cluster = Literal["local", "slurm", "lsf", "pbs"]
QUEUES = {"slurm": "SLURMCluster", "lsf": "LSFCluster", "pbs": "PBSCluster"}
FAN_IN = 8  # tables that one task joins
RETRIES = 2
PATIENCE = 30  # seconds to wait for a scheduler
QUEUE_MEMORY = 4 * 10**9  # bytes of a queued worker, unless a limit is given


@dataclass(frozen=True, slots=True)
class Part:
    """Tables of all views over some partitions, and what could not be read of them."""

    tables: tuple[pl.DataFrame, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DaskEngine:
    """Runs views on a Dask cluster."""

    address: str | None = None  # of a scheduler; None: start a cluster
    cluster: Cluster = "local"
    workers: int = 2
    memory_limit: int | None = None  # bytes for each worker
    progress: Progress | None = None

    def run(self, trace: Trace, *views: View) -> tuple[pl.DataFrame, ...]:
        """Compute all views in one pass over the events, in the order given.

        Raises:
            MissingPackageError: Dask is not installed.
            AnalysisError: the cluster cannot be reached or a task failed for good.
        """
        with self._client() as client:
            found = self._computed(client, trace, views)
        for message in found.warnings:
            trace.completeness.warn(message)
        return found.tables

    def mapped(self, work: Callable[[Item], Answer], items: Sequence[Item]) -> Iterator[Answer]:
        """Do independent work on the cluster; answers come in the order of the items.

        Raises:
            MissingPackageError: Dask is not installed.
            AnalysisError: the cluster cannot be reached.
        """
        with self._client() as client:
            waiting = deque(client.map(work, items, retries=RETRIES, pure=False))
            while waiting:
                yield waiting.popleft().result()

    @contextmanager
    def _client(self) -> Iterator[Any]:
        distributed = _package("distributed")
        with ExitStack() as stack:  # the client goes before its cluster
            target = self.address
            if target is None:
                target = stack.enter_context(closing(self._cluster(distributed)))
                self._submit(target, distributed)
            try:
                client = distributed.Client(target, timeout=PATIENCE, set_as_default=False)
            except (OSError, TimeoutError, ValueError) as error:
                raise AnalysisError(
                    f"the Dask scheduler at {target} does not answer ({error}).\n"
                    "Hint: check --scheduler, or leave it out to start a cluster here."
                ) from error
            yield stack.enter_context(client)

    def _cluster(self, distributed: Any) -> Any:  # noqa: ANN401 - a cluster of an optional package
        make = self._local_cluster if self.cluster == "local" else self._queue_cluster
        try:
            return make(distributed)
        except (ValueError, OSError, RuntimeError) as error:
            raise UsageError(
                f"the {self.cluster} cluster cannot be started ({error}).\n"
                "Hint: for a queue, set its name and project in ~/.config/dask/jobqueue.yaml."
            ) from error

    def _local_cluster(self, distributed: Any) -> Any:  # noqa: ANN401
        threads = max(1, (os.cpu_count() or 1) // self.workers)
        return distributed.LocalCluster(
            n_workers=self.workers,
            threads_per_worker=1,
            memory_limit=self.memory_limit if self.memory_limit is not None else "auto",
            dashboard_address=":0",
            env={"POLARS_MAX_THREADS": str(threads)},
        )

    def _queue_cluster(self, _: Any) -> Any:  # noqa: ANN401
        """A cluster without workers yet; what the site has configured for its queue stays."""
        import dask

        queue = getattr(_package("dask_jobqueue"), QUEUES[self.cluster])
        options = dask.config.get(f"jobqueue.{self.cluster}.scheduler-options") or {}
        prologue = dask.config.get(f"jobqueue.{self.cluster}.job-script-prologue") or []
        return queue(
            cores=1,
            processes=1,
            memory=f"{self.memory_limit or QUEUE_MEMORY}B",
            scheduler_options={"dashboard_address": ":0", **options},
            job_script_prologue=[*prologue, "export POLARS_MAX_THREADS=1"],
        )

    def _submit(self, cluster: Any, distributed: Any) -> None:  # noqa: ANN401
        """Ask the queue for workers; they start when it is their turn.

        Dask's own `scale` tells of a refused job in its log only, and waits for it forever.
        """
        if self.cluster == "local":
            return
        for _ in range(self.workers):
            cluster.worker_spec.update(cluster.new_worker_spec())
        try:
            cluster.sync(cluster._correct_state)
        except (OSError, RuntimeError) as error:
            for job in cluster.workers.values():
                job.status = distributed.Status.failed  # or the cluster would refuse to close
            raise AnalysisError(
                f"no job can be submitted to {self.cluster} ({_gist(error)}).\n"
                "Hint: run it where jobs are submitted, or use --cluster local."
            ) from error

    def _computed(self, client: Any, trace: Trace, views: tuple[View, ...]) -> Part:  # noqa: ANN401
        with warnings.catch_warnings():
            # Events in memory travel with their task: only so can a lost one be done again.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            waiting = [
                client.submit(
                    partial_tables, piece, views, self.memory_limit, retries=RETRIES, pure=False
                )
                for piece in trace.partitions
            ] or [client.submit(partial_tables, None, views, None, pure=False)]
        while len(waiting) > FAN_IN:
            waiting = [
                client.submit(joined, views, *waiting[n : n + FAN_IN], retries=RETRIES, pure=False)
                for n in range(0, len(waiting), FAN_IN)
            ]
        last = client.submit(joined, views, *waiting, last=True, retries=RETRIES, pure=False)
        return self._result(last)

    def _result(self, future: Any) -> Part:  # noqa: ANN401
        try:
            found: Part | IoprismError = future.result()
        except Exception as error:
            raise AnalysisError(
                f"the cluster could not compute this: {type(error).__name__}: {error}.\n"
                "Hint: give workers more memory with --memory-limit, or use --engine local."
            ) from error
        if isinstance(found, IoprismError):
            raise found
        if self.progress is not None:
            self.progress(1)
        return found


def expected_failures_returned(work: Callable[..., Part]) -> Callable[..., Part | IoprismError]:
    """Hand expected failures back as values: trying again would change nothing."""

    @wraps(work)
    def attempted(*args: Any, **options: Any) -> Part | IoprismError:  # noqa: ANN401
        try:
            return work(*args, **options)
        except IoprismError as error:
            return error

    return attempted


@expected_failures_returned
def partial_tables(
    partition: Partition | None, views: tuple[View, ...], memory_limit: int | None
) -> Part:
    """Compute all views of one partition; runs on a worker."""
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
    engine = LocalEngine(memory_limit=memory_limit)
    held = [Held(view, [], engine.rows_held) for view in views]
    for batch in engine.batches(trace):
        partials = pl.collect_all([view.partial(batch) for view in views])
        for tables, partial in zip(held, partials, strict=True):
            tables.add(partial)
    # A single table is joined with those of other partitions soon enough.
    found = tuple(h.tables[0] if len(h.tables) == 1 else h.combined() for h in held if h.tables)
    return Part(found or _nothing(views), completeness.warnings)


def _nothing(views: tuple[View, ...]) -> tuple[pl.DataFrame, ...]:
    empty = EVENTS.empty().lazy()
    return tuple(pl.collect_all([view.partial(empty) for view in views]))


@expected_failures_returned
def joined(views: tuple[View, ...], *parts: Part | IoprismError, last: bool = False) -> Part:
    """Join the tables of some partitions; runs on a worker."""
    whole = list(map(_succeeded, parts))
    tables = []
    for number, view in enumerate(views):
        partials = pl.concat([part.tables[number] for part in whole]).lazy()
        table = finished(view, partials) if last else view.combine(partials)
        tables.append(table.collect())
    messages = dict.fromkeys(message for part in whole for message in part.warnings)
    return Part(tuple(tables), tuple(messages))


def _succeeded(part: Part | IoprismError) -> Part:
    if isinstance(part, IoprismError):
        raise part
    return part


def _gist(error: Exception) -> str:
    """The last line that says something, of what a command printed."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.endswith(":")]
    return printable(said[-1] if said else type(error).__name__)


def _package(name: str) -> Any:  # noqa: ANN401 - an optional package
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise MissingPackageError(
            needed_by="the Dask engine", package=name, install="'ioprism[dask]'"
        ) from None
