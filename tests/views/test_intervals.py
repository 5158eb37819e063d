"""The union of busy intervals is the same whether it is built at once or piece by piece."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from ioprism.model.arrays import unite
from ioprism.model.schema import Layer
from ioprism.views.intervals import BusyIntervals

spans = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10)), min_size=1, max_size=30)


def covered(intervals: list[tuple[int, int]]) -> list[tuple[float, float]]:
    """The slow way: join one after the other."""
    found: list[list[float]] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([start, end])
    return [(start, end) for start, end in found]


@given(spans)
def test_two_sorts_give_the_union(lengths: list[tuple[int, int]]) -> None:
    intervals = [(start, start + length) for start, length in lengths]
    starts, ends = unite(*np.array(intervals, np.float64).T)

    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == covered(intervals)


@given(spans, st.integers(0, 30))
def test_pieces_unite_to_the_same(lengths: list[tuple[int, int]], cut: int) -> None:
    table = pl.DataFrame(
        {"layer": ["posix"] * len(lengths),
         "start": [float(s) for s, _ in lengths], "end": [float(s + n) for s, n in lengths]},
        schema_overrides={"layer": Layer},
    )  # fmt: skip
    view = BusyIntervals()
    whole = view.partial(table.lazy()).collect()
    parts = [view.partial(part.lazy()).collect() for part in (table[:cut], table[cut:])]

    assert view.combine(pl.concat(parts).lazy()).collect().equals(whole)
