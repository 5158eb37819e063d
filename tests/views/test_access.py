"""Access patterns are those the trace was built with, however it is cut."""

from __future__ import annotations

from itertools import accumulate, pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from benchmarks.synthetic import (
    Burst,
    Requests,
    SyntheticTrace,
    Workload,
    checkpointing_job,
    synthesise,
)
from ioprism import EVENTS, LocalEngine
from ioprism.views.access import AccessPattern, TouchedRanges
from tests.call_tables import trace_of

COLUMNS = ("operations", "bytes", "small", "misaligned", "forward", "consecutive", "first")


def pattern(made: SyntheticTrace) -> pl.DataFrame:
    (whole,) = LocalEngine().run(made.trace, AccessPattern(2**20, 4096))
    return whole


def sums(table: pl.DataFrame, layer: str, operation: str) -> dict[str, int]:
    rows = table.filter(layer=layer, operation=operation)
    return rows.select(pl.col(COLUMNS).sum()).row(0, named=True)


@pytest.mark.parametrize("rows", [999, 10**7])
def test_requests_are_counted_as_they_were_made(rows: int) -> None:
    made = synthesise(checkpointing_job(), partition_rows=rows)
    table = pattern(made)

    for (layer, operation), truth in made.truth.access.items():
        seen = sums(table, layer, operation)
        assert seen["operations"] == truth.requests
        assert seen["bytes"] == truth.bytes
        assert seen["small"] == truth.small
        assert seen["misaligned"] == truth.misaligned
        assert seen["consecutive"] == truth.consecutive
        assert seen["operations"] - seen["forward"] - seen["first"] == truth.backward


def test_the_table_does_not_depend_on_where_the_trace_is_cut() -> None:
    whole, cut = (
        pattern(synthesise(checkpointing_job(), partition_rows=rows)).sort(
            "layer", "file", "rank", "operation"
        )
        for rows in (10**7, 1234)
    )

    assert_frame_equal(cut, whole)


def calls(*rows: tuple[float, str, int | None, int | None]) -> pl.DataFrame:
    table = pl.DataFrame(
        rows,
        schema={"start": pl.Float64, "operation": pl.String, "offset": pl.Int64, "bytes": pl.Int64},
        orient="row",
    ).with_columns(end=pl.col("start") + 0.5, rank=0, process=0, file=0, layer=pl.lit("posix"))
    return EVENTS.conform(table)


@pytest.mark.parametrize("cuts", [(), (2,), (1, 2, 3, 4, 5)])
def test_a_file_that_is_opened_again_is_read_from_the_start_without_a_jump(
    cuts: tuple[int, ...],
) -> None:
    table = calls(
        (0, "open", None, None),
        (1, "read", 0, 100),
        (2, "read", 100, 100),
        (3, "open", None, None),
        (4, "read", 0, 100),
        (5, "read", 50, 100),
    )
    view = AccessPattern(2**20, 4096)
    edges = [0, *cuts, table.height]
    pieces = [table[a:b] for a, b in pairwise(edges)]
    joined = pl.concat([view.partial(piece.lazy()).collect() for piece in pieces])
    row = (
        view.finalize(view.combine(joined.lazy())).collect().filter(operation="read").to_dicts()[0]
    )

    assert (row["operations"], row["forward"], row["consecutive"], row["first"]) == (4, 1, 1, 2)


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 2)])
@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        (("open", "read", "read"), (1, 1, 1)),
        (("read", "open", "read"), (0, 0, 2)),
        (("read", "read", "open"), (1, 1, 1)),
    ],
)
@pytest.mark.parametrize("times", [(6, 6, 7), (6, 7, 7), (6, 6, 6)])
def test_an_open_counts_where_it_stands_even_if_the_clock_does_not_tell(
    cuts: tuple[int, ...],
    kinds: tuple[str, ...],
    told: tuple[int, int, int],
    times: tuple[float, ...],
) -> None:
    places = iter((0, 100))
    table = calls(
        *(
            (time, kind, None, None) if kind == "open" else (time, kind, next(places), 100)
            for time, kind in zip(times, kinds, strict=True)
        )
    )
    pieces = [table[a:b] for a, b in pairwise([0, *cuts, table.height])]
    (whole,) = LocalEngine().run(trace_of(*pieces), AccessPattern(2**20, 4096))
    row = whole.filter(operation="read").to_dicts()[0]

    assert (row["forward"], row["consecutive"], row["first"]) == told


def test_the_order_of_calls_in_pieces_that_alternate_is_unknown() -> None:
    table = calls(*((float(n), "read", 100 * n, 100) for n in range(8)))
    halves = (table.gather_every(2), table.gather_every(2, 1))
    for pieces, unordered in (((table[:4], table[4:]), 0), (halves, 8)):
        (whole,) = LocalEngine().run(trace_of(*pieces), AccessPattern(2**20, 4096))

        assert whole["unordered"].to_list() == [unordered]


@settings(max_examples=75, deadline=None)
@given(
    made=st.lists(
        st.tuples(
            st.sampled_from(["read", "read", "write", "open"]),
            st.sampled_from([None, 0, 100, 200, 300]),
            st.sampled_from([0.001, 0.5, 7.0]),
            st.sampled_from([0, 0, 1]),  # a coarse clock gives neighbours one time
        ),
        min_size=1,
        max_size=14,
    ),
    cuts=st.lists(st.integers(0, 14), max_size=5),
)
def test_calls_that_overlap_or_tie_are_told_alike_wherever_an_ordered_trace_is_cut(
    made: list[tuple[str, int | None, float, int]], cuts: list[int]
) -> None:
    times = accumulate(step for *_, step in made)
    rows = [
        (float(time), kind, None if kind == "open" else place, None if kind == "open" else 100)
        for time, (kind, place, *_) in zip(times, made, strict=True)
    ]
    took = pl.Series([seconds for _, _, seconds, _ in made])
    table = calls(*rows).with_columns(end=pl.col("start") + took)
    edges = [0, *sorted(min(cut, table.height) for cut in cuts), table.height]
    pieces = [table[a:b] for a, b in pairwise(edges)]

    whole, cut = (
        LocalEngine().run(trace_of(*some), AccessPattern(2**20, 4096))[0]
        for some in ([table], pieces)
    )

    assert_frame_equal(whole, cut, check_row_order=False)


def test_bytes_that_are_touched_twice_count_once() -> None:
    table = calls((0, "read", 0, 100), (1, "read", 50, 100), (2, "read", 300, 10))
    view = TouchedRanges()
    pieces = [view.partial(table[n : n + 1].lazy()).collect() for n in range(3)]
    touched = view.combine(pl.concat(pieces).lazy()).collect()

    assert touched.select("low", "high").rows() == [(0, 150), (300, 310)]
    assert view.combine(touched.lazy()).collect().equals(touched)


def test_a_trace_without_offsets_tells_nothing_of_order() -> None:
    table = calls((0, "read", None, 100), (1, "read", None, 100))
    view = AccessPattern(2**20, 4096)
    row = view.finalize(view.partial(table.lazy())).collect().row(0, named=True)

    assert (row["operations"], row["unplaced"], row["forward"], row["first"]) == (2, 2, 0, 0)


def test_a_burst_of_random_reads_is_seen_as_such() -> None:
    burst = Burst("/scratch/in", "read", Requests(count=1000, size=4096, random=1.0))
    made = synthesise(Workload(ranks=1, bursts=(burst,)))
    seen = sums(pattern(made), "posix", "read")

    assert seen["operations"] - seen["forward"] - seen["first"] == pytest.approx(500, abs=60)


@pytest.mark.parametrize("opens", [0, 1])
@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (0, 2, 4, 1, 3), (4, 3, 2, 1, 0)])
def test_the_order_of_rows_does_not_matter(order: tuple[int, ...], opens: int) -> None:
    table = calls(
        (1, "read", 0, 100),
        (2, "write", 900, 100),
        (3, "read", 100, 100),
        (4, "write", 500, 100),
        (5, "read", 50, 100),
        *[(0, "open", None, None)] * opens,
    )
    view = AccessPattern(2**20, 4096)
    every = [*order, *range(5, table.height)]
    found = view.finalize(view.partial(table[every].lazy())).collect()

    told = found.filter(operation="read").select("forward", "consecutive", "first").row(0)
    assert told == (1, 1, 1)
    assert found.filter(operation="write").select("forward", "first").row(0) == (0, 1)
