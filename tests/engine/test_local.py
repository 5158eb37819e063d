"""An answer does not depend on how the events are split or ordered."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from ioprism import (
    EVENTS,
    Job,
    LocalEngine,
    MemoryPartition,
    NotEnoughMemoryError,
    Trace,
    View,
    read,
)
from ioprism.engine import base
from ioprism.views import main_view
from ioprism.views.main_view import MainView
from ioprism.views.totals import ExactSizes, RequestSizes, Totals
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"
VIEWS: tuple[View, ...] = (
    Totals(("rank", "operation")),
    Totals(("file",)),
    Totals(("layer", "operation", "file")),
    RequestSizes(("layer", "operation")),
    ExactSizes(),
)


def trace_of(*pieces: pl.DataFrame) -> Trace:
    return Trace(
        "synthetic",
        (),
        Job(),
        tuple(MemoryPartition(piece) for piece in pieces),
        load_files=EVENTS.empty,
        load_processes=EVENTS.empty,
    )


@pytest.fixture(scope="module")
def events() -> pl.DataFrame:
    return read(DATA / "e_mpiio_collective.darshan").events()


def same(one: pl.DataFrame, other: pl.DataFrame) -> None:
    assert_frame_equal(one, other, check_row_order=False, rel_tol=1e-9)


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(0, 5200), max_size=6), seed=st.integers(0, 2**16))
def test_partitioning_and_order_change_nothing(
    events: pl.DataFrame, cuts: list[int], seed: int
) -> None:
    shuffled = events[np.random.default_rng(seed).permutation(events.height)]
    edges = [0, *sorted(cuts), events.height]
    pieces = [shuffled[a:b] for a, b in pairwise(edges)]

    whole = LocalEngine().run(trace_of(events), *VIEWS)
    split = LocalEngine().run(trace_of(*pieces), *VIEWS)
    for one, other in zip(whole, split, strict=True):
        same(one, other)


def test_joining_early_to_save_memory_changes_nothing(
    events: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = LocalEngine().run(trace_of(events), *VIEWS)
    monkeypatch.setattr(base, "ROWS_HELD", 3)
    early = LocalEngine().run(trace_of(*events.iter_slices(100)), *VIEWS)

    for one, other in zip(whole, early, strict=True):
        same(one, other)


def test_summaries_on_disk_change_nothing(
    events: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole,) = LocalEngine().run(trace_of(events), MainView(bucket=0.01))
    monkeypatch.setattr(base, "FEWEST_ROWS", 20)
    monkeypatch.setattr(base, "BYTES_PER_ROW", 10**6)
    (spilled,) = LocalEngine(memory_limit=500_000_000).run(
        trace_of(*events.iter_slices(100)), MainView(bucket=0.01)
    )

    same(whole, spilled)


def test_a_result_that_does_not_fit_is_refused_with_what_it_needs(
    events: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "FEWEST_ROWS", 20)
    monkeypatch.setattr(base, "BYTES_PER_ROW", 10**6)
    monkeypatch.setattr(main_view, "BYTES_PER_ROW", 10**9)

    with pytest.raises(
        NotEnoughMemoryError, match=r"GB of memory, but may use only 0.5 GB(.|\n)*--memory-limit"
    ):
        LocalEngine(memory_limit=500_000_000).run(
            trace_of(*events.iter_slices(100)), MainView(bucket=0.01)
        )


def test_no_events_give_empty_tables_of_the_same_form(events: pl.DataFrame) -> None:
    full = LocalEngine().run(trace_of(events), *VIEWS)
    none = LocalEngine().run(trace_of(), *VIEWS)

    for one, other in zip(full, none, strict=True):
        assert other.height == 0
        assert other.schema == one.schema


def test_progress_is_told_once_per_batch(events: pl.DataFrame) -> None:
    heard: list[int] = []
    LocalEngine(heard.append).run(trace_of(events[:10], events[10:]), VIEWS[0])

    assert heard == [1, 2]
