"""The answer is the same to the last digit, however the events are cut, ordered and joined."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from ioprism import Engine, LocalEngine, Trace
from ioprism.bottleneck_search.steps import analyse
from ioprism.engine import base
from tests.call_tables import calls, trace_of

PROCESSES = 6


@pytest.fixture(scope="module")
def events() -> pl.DataFrame:
    """Calls whose durations are no round numbers; some span buckets, one process is slow."""
    rng = np.random.default_rng(7)
    rows = [
        {"start": float(start), "process": process, "file": int(rng.integers(5)),
         "seconds": float(rng.lognormal(-4, 2)) * (9 if process == 3 else 1),
         "operation": str(rng.choice(["read", "write", "open", "stat"])),
         "bytes": int(rng.integers(10**6)), "offset": int(rng.integers(10**9))}
        for process in range(PROCESSES)
        for start in np.sort(rng.uniform(0, 60, 300))
    ]  # fmt: skip
    return calls(rows).sort("start")


def answer(trace: Trace, engine: Engine, **options: object) -> str:
    return json.dumps(analyse(trace, engine, **options).to_dict())  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["excess", "slope"])
def test_the_answer_is_the_same_to_the_last_digit(
    events: pl.DataFrame, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = answer(trace_of(events), LocalEngine(), method=method)
    rng = np.random.default_rng(1)
    for _ in range(3):
        edges = [0, *np.sort(rng.integers(0, events.height, 5)).tolist(), events.height]
        pieces = [events[a:b] for a, b in pairwise(edges)]
        assert answer(trace_of(*pieces, processes=6), LocalEngine(), method=method) == whole

    monkeypatch.setattr(base, "FEWEST_ROWS", 50)
    monkeypatch.setattr(base, "BYTES_PER_ROW", 10**6)
    spilling = LocalEngine(memory_limit=5 * 10**8)
    pieces = list(events.iter_slices(100))
    assert answer(trace_of(*pieces, processes=6), spilling, method=method) == whole
    assert json.loads(whole)["bottlenecks"]
