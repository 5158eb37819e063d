"""Do the same to many inputs on all cores; an input that crashes its process is reported alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from ioprism.engine.cluster import fault_of_shared_memory

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

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
