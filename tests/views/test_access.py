"""Access patterns are those the trace was built with, however it is cut."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from ioprism.engine.local import LocalEngine
from ioprism.model.schema import EVENTS
from ioprism.readers.synthetic import (
    Burst,
    Requests,
    SyntheticTrace,
    Workload,
    checkpointing_job,
    synthesise,
)
from ioprism.views.access import AccessPattern, TouchedRanges, stitched

COLUMNS = ("operations", "bytes", "small", "misaligned", "forward", "consecutive", "first")


def pattern(made: SyntheticTrace) -> pl.DataFrame:
    (pieces,) = LocalEngine().run(made.trace, AccessPattern(2**20, 4096))
    return stitched(pieces)


def sums(made: SyntheticTrace, layer: str, operation: str) -> dict[str, int]:
    rows = pattern(made).filter(layer=layer, operation=operation)
    return rows.select(pl.col(COLUMNS).sum()).row(0, named=True)


@pytest.mark.parametrize("rows", [999, 10**7])
def test_requests_are_counted_as_they_were_made(rows: int) -> None:
    made = synthesise(checkpointing_job(), partition_rows=rows)

    for (layer, operation), truth in made.truth.access.items():
        seen = sums(made, layer, operation)
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
        rows, schema=["start", "operation", "offset", "bytes"], orient="row"
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
        stitched(view.combine(joined.lazy()).collect()).filter(operation="read").row(0, named=True)
    )

    assert (row["operations"], row["forward"], row["consecutive"], row["first"]) == (4, 1, 1, 2)


def test_bytes_that_are_touched_twice_count_once() -> None:
    table = calls((0, "read", 0, 100), (1, "read", 50, 100), (2, "read", 300, 10))
    view = TouchedRanges()
    pieces = [view.partial(table[n : n + 1].lazy()).collect() for n in range(3)]
    touched = view.combine(pl.concat(pieces).lazy()).collect()

    assert touched.select("low", "high").rows() == [(0, 150), (300, 310)]
    assert view.combine(touched.lazy()).collect().equals(touched)


def test_a_trace_without_offsets_tells_nothing_of_order() -> None:
    table = calls((0, "read", None, 100), (1, "read", None, 100))
    row = stitched(AccessPattern(2**20, 4096).partial(table.lazy()).collect()).row(0, named=True)

    assert (row["operations"], row["unplaced"], row["forward"], row["first"]) == (2, 2, 0, 0)


def test_a_burst_of_random_reads_is_seen_as_such() -> None:
    burst = Burst("/scratch/in", "read", Requests(count=1000, size=4096, random=1.0))
    made = synthesise(Workload(ranks=1, bursts=(burst,)))
    seen = sums(made, "posix", "read")

    assert seen["operations"] - seen["forward"] - seen["first"] == pytest.approx(500, abs=60)
