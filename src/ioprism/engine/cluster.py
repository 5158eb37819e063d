"""Work beside this process: connect to a Dask cluster, or use all cores of this machine."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ioprism.errors import AnalysisError, IoprismError, MissingPackageError, UsageError
from ioprism.text import printable

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor


Cluster = Literal["local", "slurm", "lsf", "pbs"]
QUEUES = {"slurm": "SLURMCluster", "lsf": "LSFCluster", "pbs": "PBSCluster"}
PATIENCE = 30  # seconds to wait for a scheduler, or for the end of a cluster
# The processes of one command are not monitored: they need not measure themselves.
LEAN = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
# Workers that have died and cannot be started again would be waited for without end.
WITHOUT_WORKERS = "distributed.scheduler.no-workers-timeout"
WORKER_PATIENCE = 120  # seconds
# Dask lets workers return freed memory immediately; that only helps where memory is limited.
KEEP_MEMORY = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**28,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
}
QUEUE_MEMORY = 4 * 10**9  # bytes of a queued worker, unless a limit is given
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ucx)://)?(?:[^/:\s\[\]]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})")


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Which cluster to use."""

    address: str | None = None  # of a scheduler; None: start a cluster
    cluster: Cluster = "local"
    workers: int = 2
    memory_limit: int | None = None  # bytes for each worker

    def __post_init__(self) -> None:
        """Refuse addresses that Dask would wait for in vain.

        Raises:
            UsageError: the address names no host and port of a scheduler.
        """
        if self.address is None:
            return
        match = _ADDRESS.fullmatch(self.address)
        if match is None or not 0 < int(match[1]) < 2**16:
            raise UsageError(
                f"{self.address!r} is not the address of a Dask scheduler.\n"
                "Hint: give --scheduler HOST:PORT, such as tcp://node1:8786."
            )


@contextmanager
def connect(settings: ClusterSettings) -> Iterator[Any]:
    """Yield a client of the cluster; a cluster that was started for it ends with it.

    Raises:
        MissingPackageError: Dask is not installed.
        UsageError: the cluster cannot be started.
        AnalysisError: no scheduler answers, or the queue takes no jobs.
    """
    distributed = package("distributed")
    with ExitStack() as stack:  # the client goes before its cluster
        target = settings.address
        if target is None:
            target = _start_cluster(settings, distributed)
            stack.callback(close, target)
            _submit(target, settings, distributed)
        try:
            client = distributed.Client(
                target,
                timeout=PATIENCE,
                set_as_default=False,
                # Results need not pass through a scheduler that is this process.
                direct_to_workers=settings.address is None and settings.cluster == "local",
            )
        except (OSError, TimeoutError, ValueError) as error:
            raise AnalysisError(
                f"the Dask scheduler at {target} does not answer ({error}).\n"
                "Hint: check --scheduler, or leave it out to start a cluster here."
            ) from error
        yield stack.enter_context(client)


@dataclass(slots=True)
class Session:
    """A connection that several steps share; it is made when the first of them needs it."""

    settings: ClusterSettings
    _stack: ExitStack = field(default_factory=ExitStack)
    _client: Any = None

    def client(self) -> Any:  # noqa: ANN401 - of an optional package
        """Return the client."""
        if self._client is None:
            self._client = self._stack.enter_context(connect(self.settings))
        return self._client

    def close(self) -> None:
        """End the connection, and the cluster if it was started for it."""
        self._stack.close()
        self._client = None

    def map(self, look: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Apply a function to each item, on the workers."""
        client = self.client()
        try:
            results: list[Any] = client.gather(client.map(look, items, pure=False))
        except (OSError, IoprismError):
            raise
        except Exception as error:
            raise AnalysisError(
                f"the workers cannot read the files ({type(error).__name__}: {error}).\n"
                "Hint: check that they see the same paths as this machine."
            ) from error
        return results


def close(cluster: Any) -> None:  # noqa: ANN401
    """End a cluster.

    Dask stumbles over news of a worker that was killed and that it has forgotten already, or over
    one that takes long to end on a busy machine and is killed. Workers and scheduler are closed by
    then; what listened to the news must not be waited for again, and the answer stands.
    """
    try:
        cluster.close(timeout=PATIENCE)
    except (KeyError, TimeoutError):
        cluster._watch_worker_status_task = None
        cluster.status = package("distributed").Status.created  # neither running nor closing
        with suppress(TimeoutError):  # what is left ends with this process
            cluster.close(timeout=PATIENCE)


def _start_cluster(settings: ClusterSettings, distributed: Any) -> Any:  # noqa: ANN401
    make = _local_cluster if settings.cluster == "local" else _queue_cluster
    try:
        return make(settings, distributed)
    except (ValueError, OSError, RuntimeError) as error:
        raise UsageError(
            f"the {settings.cluster} cluster cannot be started ({error}).\n"
            "Hint: for a batch queue, set its name and project in ~/.config/dask/jobqueue.yaml."
        ) from error


def _local_cluster(settings: ClusterSettings, distributed: Any) -> Any:  # noqa: ANN401
    import dask

    if fault := fault_of_shared_memory():  # Dask would start workers again without end
        raise AnalysisError(
            f"no Dask worker can be started: this machine has no usable shared memory ({fault}).\n"
            "Hint: make /dev/shm writable, or use --engine local."
        )
    threads = max(1, (os.cpu_count() or 1) // settings.workers)
    limit = settings.memory_limit
    bounded = {WITHOUT_WORKERS: WORKER_PATIENCE}
    with dask.config.set({**LEAN, **bounded, **(KEEP_MEMORY if limit is None else {})}):
        return distributed.LocalCluster(
            n_workers=settings.workers,
            threads_per_worker=1,
            memory_limit=limit if limit is not None else "auto",
            dashboard_address="127.0.0.1:0",  # any free port, on this machine only
            silence_logs=logging.ERROR,  # work of lost workers is done again, and long lists of it
            env={"POLARS_MAX_THREADS": str(threads)},
        )


def fault_of_shared_memory() -> OSError | ImportError | None:
    """Return why processes started here could share no locks, if that is so."""
    from multiprocessing import get_context

    try:
        get_context("spawn").Lock()
    except (OSError, ImportError) as error:
        return error
    return None


def _queue_cluster(settings: ClusterSettings, _: Any) -> Any:  # noqa: ANN401
    """A cluster without workers yet; what the site has configured for its queue stays."""
    import dask

    queue = getattr(package("dask_jobqueue"), QUEUES[settings.cluster])
    options = dask.config.get(f"jobqueue.{settings.cluster}.scheduler-options") or {}
    prologue = dask.config.get(f"jobqueue.{settings.cluster}.job-script-prologue") or []
    return queue(
        cores=1,
        processes=1,
        memory=f"{settings.memory_limit or QUEUE_MEMORY}B",
        scheduler_options={"dashboard_address": ":0", **options},
        job_script_prologue=[*prologue, "export POLARS_MAX_THREADS=1"],
    )


def job_script(settings: ClusterSettings) -> str:
    """Return the script that is submitted to the queue for each worker."""
    package("distributed")
    with closing(_start_cluster(settings, None)) as cluster:
        return str(cluster.job_script())


def _submit(cluster: Any, settings: ClusterSettings, distributed: Any) -> None:  # noqa: ANN401
    """Ask the queue for workers; they start when it is their turn.

    Dask's own `scale` reports a refused job in its log only, and waits for it forever.
    """
    if settings.cluster == "local":
        return
    for _ in range(settings.workers):
        cluster.worker_spec.update(cluster.new_worker_spec())
    try:
        cluster.sync(cluster._correct_state)
    except (OSError, RuntimeError) as error:
        for job in cluster.workers.values():
            job.status = distributed.Status.failed  # or the cluster would refuse to close
        raise AnalysisError(
            f"no job can be submitted to {settings.cluster} ({_gist(error)}).\n"
            "Hint: run it where jobs are submitted, or use --cluster local."
        ) from error


def death_of_workers(client: Any) -> str | None:  # noqa: ANN401
    """Return why workers were ended, if their nannies have told the scheduler."""
    try:
        told = client.get_events("worker-restart-memory")
    except (OSError, TimeoutError, RuntimeError, ValueError):
        return None
    used = [event["rss"] for _, event in told if isinstance(event.get("rss"), int)]
    if not used:
        return None
    return f"they ran out of memory: one had used {max(used) / 1e6:,.0f} MB when it was stopped"


def _gist(error: Exception) -> str:
    """The last line that says something, of what a command printed."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.endswith(":")]
    return printable(said[-1] if said else type(error).__name__)


def package(name: str) -> Any:  # noqa: ANN401 - an optional package
    """Import an optional package.

    Raises:
        MissingPackageError: it is not installed.
    """
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise MissingPackageError(
            needed_by="the Dask engine", package=name, install="'ioprism[dask]'"
        ) from None


CHUNK = 4  # inputs that a process takes at a time
FEW = 8  # so few inputs are not worth starting processes for
# The table library's streaming engine takes longer to start than a small log's queries last.
SMALL_TABLES = {"POLARS_MAX_THREADS": "1", "POLARS_ENGINE_AFFINITY": "in-memory"}
CRASHED = "reading it took its process down: a library crashed, or memory ran out"

Given = TypeVar("Given")
Result = TypeVar("Result")


def map_in_processes(
    work: Callable[[Given], Result],
    inputs: Sequence[Given],
    *,
    crashed: Callable[[Given], Result],
    processes: int | None = None,
) -> Iterator[Result]:
    """Yield the result of every input, in order; `crashed` stands in where a process ended."""
    cores = processes or len(os.sched_getaffinity(0))
    if len(inputs) <= FEW or cores < 2 or fault_of_shared_memory():
        yield from map(work, inputs)
        return
    from concurrent.futures.process import BrokenProcessPool

    for name, value in SMALL_TABLES.items():
        os.environ.setdefault(name, value)
    done = 0
    while done < len(inputs):
        try:
            with _pool(cores) as pool:
                for result in pool.map(work, inputs[done:], chunksize=CHUNK):
                    done += 1
                    yield result
        except BrokenProcessPool:
            # It is one of those in progress: run each of them in a separate process.
            for one in inputs[done : done + CHUNK * (cores + 1)]:
                done += 1
                yield _alone(work, one, crashed)


def _alone(
    work: Callable[[Given], Result], one: Given, crashed: Callable[[Given], Result]
) -> Result:
    from concurrent.futures.process import BrokenProcessPool

    try:
        with _pool(1) as pool:
            return pool.submit(work, one).result()
    except BrokenProcessPool:
        return crashed(one)


def _pool(processes: int) -> ProcessPoolExecutor:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # A table library's threads do not survive a fork, so processes start afresh.
    fresh = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(processes, mp_context=fresh, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """Without this, the processes of a run that is killed would wait for work forever."""
    Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    import multiprocessing

    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)
