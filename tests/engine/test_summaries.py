"""What will not fit is refused before the work starts, by a look at a few partitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
import pytest

from ioprism import LocalEngine, NotEnoughMemoryError, Trace
from ioprism.engine import summaries
from ioprism.model.trace import Warn
from ioprism.views.main_view import MainView
from ioprism.views.totals import Totals
from tests.call_tables import calls, trace_of

PARTITIONS, CALLS = 24, 400


@dataclass(frozen=True, slots=True)
class Block:
    """Calls of some seconds of a job; it notes when it is read."""

    number: int
    seconds: float
    read: list[int] = field(default_factory=list)

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        del warn
        self.read.append(self.number)
        rng = np.random.default_rng(self.number)
        starts = np.sort(rng.uniform(self.number, self.number + 1, CALLS)) * self.seconds
        yield calls(
            [
                {"start": float(start), "seconds": 1e-4, "process": int(rng.integers(8)),
                 "file": int(rng.integers(16))}
                for start in starts
            ]
        ).lazy()  # fmt: skip


def job(seconds: float) -> tuple[Trace, list[int]]:
    read: list[int] = []
    blocks = tuple(Block(number, seconds, read) for number in range(PARTITIONS))
    return replace(trace_of(), partitions=blocks), read


@pytest.mark.parametrize("seconds", [3.0, 0.5])  # of a partition: some buckets, half of one
def test_a_few_pairs_tell_what_all_partitions_need(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summaries, "ONE_PAIR_IN", 6)
    trace, _ = job(seconds)
    (whole,) = LocalEngine().run(trace, MainView())
    samples = [summaries.sample([MainView()], pair) for pair in summaries.pairs(trace.partitions)]

    needed = summaries.needed_by_all(samples, PARTITIONS)

    assert len(samples) == 4
    assert 0.6 < needed / MainView().memory(whole) < 1.7


def test_what_does_not_fit_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, read = job(3.0)
    monkeypatch.setattr(summaries, "PROGRAM", 2 * 10**9)

    with pytest.raises(NotEnoughMemoryError, match=r"needs about 2.0 GB.*may use only 1.0 GB"):
        LocalEngine(memory_limit=10**9).run(trace, MainView())
    assert len(read) == 2


def test_small_results_and_few_partitions_are_not_sampled() -> None:
    trace, read = job(3.0)
    LocalEngine(memory_limit=10**9).run(trace, Totals(("rank",)))
    few = replace(trace, partitions=trace.partitions[:3])
    LocalEngine(memory_limit=10**9).run(few, MainView())

    assert read == [*range(PARTITIONS), 0, 1, 2]
