"""Look through many files, or parts of files, before a trace is read: here or on workers.

Readers call `each`. Whoever has workers says so for as long as traces are opened, with
`surveyed_by`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")
Mapper = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

THREADS = max(1, min(8, os.cpu_count() or 1))


def _in_threads(look: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    if THREADS == 1 or len(items) == 1:
        return [look(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(THREADS, thread_name_prefix="survey") as pool:
        return list(pool.map(look, items))


_mapper: ContextVar[Mapper] = ContextVar("mapper", default=_in_threads)


def each(look: Callable[[Item], Found], items: Sequence[Item]) -> list[Found]:
    """Return what `look` finds in each item, in their order."""
    return _mapper.get()(look, items)


def on_workers() -> bool:
    """Whether something else than threads of this process does it."""
    return _mapper.get() is not _in_threads


@contextmanager
def surveyed_by(mapper: Mapper) -> Iterator[None]:
    """Let something else than threads of this process do it."""
    token = _mapper.set(mapper)
    try:
        yield
    finally:
        _mapper.reset(token)
