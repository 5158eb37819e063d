"""No test waits without end for workers that a busy machine could not start."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from ioprism.engine.cluster import WITHOUT_WORKERS


@pytest.fixture(autouse=True, scope="session")
def bounded_waits() -> Iterator[None]:
    if find_spec("dask") is None:
        yield
        return
    import dask

    with dask.config.set({WITHOUT_WORKERS: 180}):
        yield
