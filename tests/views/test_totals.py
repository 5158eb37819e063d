"""Sums and histograms by key are what a person would add up by hand."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest

from ioprism import EVENTS
from ioprism.model.trace import SIZE_BINS
from ioprism.views.totals import RequestSizes, Totals, size_bin


@pytest.fixture
def events() -> pl.LazyFrame:
    rows = {
        "start": [0.0, 1.0, 2.0, 5.0],
        "end": [0.5, 1.25, 2.0, 6.0],
        "rank": [0, 0, 1, 1],
        "operation": ["write", "write", "open", "read"],
        "bytes": [100, 101, None, 2**30 + 1],
    }
    return EVENTS.conform(pl.DataFrame(rows)).lazy()


def test_totals_by_rank(events: pl.LazyFrame) -> None:
    table = Totals(("rank",)).partial(events).collect().sort("rank")

    assert table.rows() == [(0, 2, 201, 0.75), (1, 2, 2**30 + 1, 1.0)]


def test_request_sizes_leave_metadata_calls_out(events: pl.LazyFrame) -> None:
    table = RequestSizes(("operation",)).partial(events).collect().sort("operation", "bin")

    assert table.rows() == [("read", 9, 1), ("write", 0, 1), ("write", 1, 1)]


@pytest.mark.parametrize("number", range(len(SIZE_BINS)))
def test_both_ends_of_a_bin_lie_in_it(number: int) -> None:
    low, high = SIZE_BINS[number].low, SIZE_BINS[number].high
    ends = pl.DataFrame({"size": [low, low if high is None else high]})

    assert ends.select(size_bin(pl.col("size"))).to_series().to_list() == [number, number]


def test_bins_leave_no_gap() -> None:
    for one, following in pairwise(SIZE_BINS):
        assert one.high is not None
        assert following.low == one.high + 1
