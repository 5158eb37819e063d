"""The main view conserves calls, bytes and time, whatever the buckets and the partitioning."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from benchmarks.synthetic import checkpointing_job, synthesise
from ioprism import EVENTS, LocalEngine, TooManyPiecesError
from ioprism.engine import base
from ioprism.views import main_view as module
from ioprism.views.call_class import SIZE_EDGES, SIZE_NAMES, size_bin
from ioprism.views.main_view import KEYS, MainView
from tests.call_tables import calls, trace_of

# Where pieces overlap in time, a cut may hide a jump.
WITHOUT_ORDER = [name for name in KEYS if name != "class"]
CALLS = st.tuples(
    st.integers(0, 1),  # process
    st.integers(0, 1),  # file
    st.sampled_from(["read", "read", "write", "stat"]),
    st.sampled_from(["posix", "mpiio"]),
    st.sampled_from([None, 0, 1, 2, 3, 7]),  # place, in units of a request
    st.sampled_from([0.0, 0.1, 2.5]),  # seconds
    st.sampled_from([0.0, 0.0, 0.3, 5.0]),  # until the next begins
)


@pytest.fixture(scope="module")
def events() -> pl.DataFrame:
    return synthesise(checkpointing_job()).trace.events()[::7]


def main_view(*pieces: pl.DataFrame, view: MainView | None = None) -> pl.DataFrame:
    (found,) = LocalEngine().run(trace_of(*pieces), view or MainView())
    return found


def cut(table: pl.DataFrame, cuts: list[int]) -> list[pl.DataFrame]:
    edges = [0, *(min(cut, table.height) for cut in sorted(cuts)), table.height]
    return [table[a:b] for a, b in pairwise(edges)]


def tree(partials: list[pl.LazyFrame]) -> pl.LazyFrame:
    """Join neighbours, and what they give, until one table is left."""
    while len(partials) > 1:
        pairs = [partials[n : n + 2] for n in range(0, len(partials), 2)]
        partials = [MainView().combine(pl.concat(pair).collect().lazy()) for pair in pairs]
    return partials[0]


def same(one: pl.DataFrame, other: pl.DataFrame) -> None:
    assert_frame_equal(one, other, check_row_order=False, rel_tol=1e-9)


def test_a_call_that_spans_buckets_is_shared_out_by_duration() -> None:
    view = main_view(calls([{"start": 0.75, "seconds": 2.0, "bytes": 1001}])).sort("time")

    assert view["time"].to_list() == [0, 1, 2]
    assert view["nanoseconds"].to_list() == [250_000_000, 1_000_000_000, 750_000_000]
    assert view["count"].to_list() == pytest.approx([0.125, 0.5, 0.375])
    assert view["bytes"].sum() == 1001
    assert view["bytes"].to_list() == [125, 500, 376]
    assert view["slowest"].to_list() == [2.0, 2.0, 2.0]


def test_a_call_that_ends_on_an_edge_stays_in_its_bucket() -> None:
    view = main_view(calls([{"start": 1.0, "seconds": 1.0}, {"start": 2.0, "seconds": 0.0}]))

    assert sorted(view["time"].to_list()) == [1, 2]


@pytest.mark.parametrize(
    ("assignment", "buckets"), [("start", [0, 1]), ("middle", [1, 3]), ("split", [0, 1, 2, 3])]
)
def test_a_call_may_also_count_whole_in_one_bucket(assignment: str, buckets: list[int]) -> None:
    table = calls([{"start": 0.5, "seconds": 0.1}, {"start": 1.5, "seconds": 2.0}])
    view = main_view(table, view=MainView(assignment=assignment))  # type: ignore[arg-type]

    assert sorted(view["time"].to_list()) == buckets


@settings(max_examples=30, deadline=None)
@given(
    starts=st.lists(st.floats(0, 50), min_size=1, max_size=40),
    bucket=st.sampled_from([0.013, 0.5, 1.0, 7.0, 1000.0]),
    seed=st.integers(0, 1000),
)
def test_nothing_is_lost_or_made_whatever_the_bucket(
    starts: list[float], bucket: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    table = calls(
        [
            {"start": s, "seconds": float(rng.exponential(1.0)), "bytes": int(rng.integers(10**9)),
             "process": n % 3, "file": n % 5, "operation": "read" if n % 2 else "write"}
            for n, s in enumerate(starts)
        ]
    )  # fmt: skip
    view = main_view(table, view=MainView(bucket))

    assert view["count"].sum() == pytest.approx(table.height)
    assert view["bytes"].sum() == table["bytes"].sum()
    seconds = (table["end"] - table["start"]).sum()
    rounded = 1e-9 * table.height  # every call to a nanosecond
    assert int(view["nanoseconds"].sum()) / 1e9 == pytest.approx(seconds, rel=1e-9, abs=rounded)


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, 9000), max_size=5))
def test_where_an_ordered_trace_is_cut_changes_nothing(
    events: pl.DataFrame, cuts: list[int]
) -> None:
    ordered = events.sort("start", maintain_order=True)

    same(main_view(ordered), main_view(*cut(ordered, cuts)))


@settings(max_examples=75, deadline=None)
@given(made=st.lists(CALLS, max_size=25), cuts=st.lists(st.integers(0, 25), max_size=8))
def test_jumps_across_cuts_are_seen_however_the_pieces_are_joined(
    made: list[tuple[int, int, str, str, int | None, float, float]], cuts: list[int]
) -> None:
    starts = np.cumsum([0.0, *(row[-1] for row in made)])
    table = calls(
        [
            {"start": start, "seconds": seconds, "process": process, "file": file,
             "operation": operation, "layer": layer, "bytes": None if place is None else 4096,
             "offset": None if place is None else place * 4096}
            for start, (process, file, operation, layer, place, seconds, _)
            in zip(starts, made, strict=False)
        ]
    ) if made else EVENTS.empty()  # fmt: skip
    pieces = cut(table, cuts)
    whole = main_view(table)

    same(whole, main_view(*pieces))
    same(whole, MainView().finalize(tree([MainView().partial(p.lazy()) for p in pieces])).collect())


def test_pieces_of_different_processes_may_overlap_and_come_in_any_order(
    events: pl.DataFrame,
) -> None:
    one_each = [part for _, part in events.group_by("process")]

    same(main_view(events), main_view(*one_each[::-1]))


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, 9000), max_size=5), seed=st.integers(0, 2**16))
def test_shuffled_pieces_change_nothing_but_what_is_random(
    events: pl.DataFrame, cuts: list[int], seed: int
) -> None:
    shuffled = events[np.random.default_rng(seed).permutation(events.height)]
    sums = [pl.col("count", "bytes", "nanoseconds").sum(), pl.col("slowest").max()]

    whole = main_view(events)
    split = main_view(*cut(shuffled, cuts))

    same(whole.group_by(WITHOUT_ORDER).agg(sums), split.group_by(WITHOUT_ORDER).agg(sums))
    same(whole, main_view(shuffled))


def test_memory_limits_change_nothing_but_the_pieces(events: pl.DataFrame) -> None:
    (limited,) = LocalEngine(memory_limit=100_000_000).run(trace_of(events), MainView())

    same(main_view(events), limited)


def test_joining_early_to_save_memory_changes_nothing(
    events: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "ROWS_HELD", 3)
    ordered = events.sort("start", maintain_order=True)

    same(main_view(ordered), main_view(*ordered.iter_slices(500)))


def test_impossible_numbers_of_pieces_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PIECES", 100)

    with pytest.raises(TooManyPiecesError, match="longer buckets with --time-bucket"):
        main_view(calls([{"start": 0.0, "seconds": 1000.0}]))


@pytest.mark.parametrize("edge", SIZE_EDGES)
def test_size_bins_begin_at_their_edges(edge: int) -> None:
    sizes = pl.DataFrame({"size": [edge - 1, edge]})
    below, at = sizes.select(size_bin(pl.col("size"))).to_series().to_list()

    assert at == SIZE_EDGES.index(edge) + 1
    assert below == at - 1
    assert SIZE_NAMES[0] == "below 4 KiB"


@pytest.mark.parametrize("end", [1e83, 1e18])
def test_a_damaged_time_is_one_clear_error(end: float) -> None:
    with pytest.raises(TooManyPiecesError, match="time buckets of 1 s"):
        main_view(calls([{"start": 0.0, "seconds": end}, {"start": 1.0, "seconds": 0.1}]))
