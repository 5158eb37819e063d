"""The paper's worked example, drill-down and cross-products, and what must never matter."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from benchmarks.synthetic import checkpointing_job, synthesise
from ioprism import LocalEngine, Trace
from ioprism.bottleneck_search.classify import classify_views
from ioprism.bottleneck_search.counted_once import io_rows, main_view
from ioprism.bottleneck_search.find import Found, bottlenecks_of
from ioprism.bottleneck_search.result import Settings
from ioprism.views.records import summed_records
from tests.call_tables import calls, trace_of

ORDER_FIELDS = "^(sequential|random)_.*$"  # known where pieces do not overlap in time


def found(trace: Trace, **chosen: object) -> Found:
    settings = Settings(**chosen)  # type: ignore[arg-type]
    return bottlenecks_of(main_view(trace, settings, LocalEngine()), trace, settings)


@pytest.fixture(scope="module")
def job() -> Trace:
    return synthesise(checkpointing_job()).trace


@pytest.fixture(scope="module")
def paper() -> Trace:
    """Four operations on three files by two processes in two seconds (Figures 3 to 6)."""
    return trace_of(
        calls(
            [
                {"start": 0.0, "seconds": 0.49, "process": 0, "file": 0},
                {"start": 0.1, "seconds": 0.36, "process": 1, "file": 1},
                {"start": 1.0, "seconds": 0.08, "process": 1, "file": 2},
                {"start": 1.5, "seconds": 0.07, "process": 1, "file": 2},
            ]
        ),
        paths=["a", "b", "c"],
    )


def test_the_papers_files_are_at_63_55_and_17_degrees(paper: Trace) -> None:
    table = found(paper, views=("file",), threshold=0.0, floor=0.0).table

    angles = dict(zip(table["record_file"], table["severity"].round(0), strict=True))
    assert angles == {"a": 63, "b": 55, "c": 17}


def test_four_of_the_papers_seven_records_are_bottlenecks(paper: Trace) -> None:
    views = [v for v in found(paper, floor=0.0).views if len(v.view) == 1]

    assert sum(view.records for view in views) == 7
    assert sum(view.bottlenecks for view in views) == 4


def test_three_views_make_fifteen_drill_downs_and_seven_crosses(paper: Trace) -> None:
    drilled = [view.view for view in found(paper).views]
    crossed = [view.view for view in found(paper, combine="cross").views]

    assert len(drilled) == len(set(drilled)) == 15
    assert len(crossed) == 7
    assert drilled[:3] == [("process",), ("file",), ("time",)]


def test_a_drill_down_looks_only_at_what_bottlenecks_did(paper: Trace) -> None:
    views = {view.view: view for view in found(paper, floor=0.0).views}

    assert views["file", "process"].records == 2
    assert views["process", "file"].records == 1  # process 0 used one file
    assert views["time", "file"].records == 2


def test_a_cross_product_has_a_record_for_every_pair(paper: Trace) -> None:
    views = {view.view: view for view in found(paper, combine="cross").views}

    assert views["process", "file"].records == 3
    assert views["process", "file", "time"].records == 3


def test_the_floor_keeps_trivia_out_and_counts_it() -> None:
    rows = [{"start": n * 0.1, "seconds": 0.01, "file": 0} for n in range(100)]
    rows += [
        {"start": 12.0, "seconds": 0.1, "file": 1},
        {"start": 13.0, "seconds": 1e-9, "file": 2},
    ]
    rows += [{"start": 14.0, "seconds": 0.0005, "file": 3}]
    rows += [{"start": 15.0, "seconds": 1e-5, "file": 4} for _ in range(3000)]
    trace = trace_of(calls(rows))

    (strict,) = found(trace, views=("file",), floor=0.001).views
    (every,) = found(trace, views=("file",), floor=0.0).views

    assert (every.bottlenecks, every.below_floor) == (3, 0)
    assert (strict.bottlenecks, strict.below_floor) == (3, 1)
    assert found(trace, views=("file",), floor=0.001).table.height == 2


def test_time_is_that_of_the_slowest_process_or_of_all() -> None:
    trace = trace_of(
        calls(
            [
                {"start": 0, "seconds": 0.5, "process": 0, "file": 0},
                {"start": 0, "seconds": 0.3, "process": 1, "file": 0},
                {"start": 0, "seconds": 0.1, "process": 1, "file": 1},
            ]
        )
    )
    kept = {"views": ("file",), "threshold": 0.0, "floor": 0.0}
    slowest = found(trace, across="max", **kept)
    summed = found(trace, across="sum", **kept)

    assert slowest.table["at_stake"].to_list() == pytest.approx([0.5, 0.1])
    assert summed.table["at_stake"].to_list() == pytest.approx([0.8, 0.1])
    assert slowest.totals["io_time"] == pytest.approx(0.5)
    assert summed.totals["io_time"] == pytest.approx(0.9)
    assert slowest.table["time"].to_list() == summed.table["time"].to_list()


@pytest.mark.parametrize(
    "views",
    [("process", "file", "time"), ("host", "directory", "phase"), ("function", "size"),
     ("pattern", "extension", "depth"), ("layer", "operation", "rank"), ("target", "mount"),
     ("application", "filesystem")],
)  # fmt: skip
@pytest.mark.parametrize("combine", ["drill", "cross"])
def test_time_bytes_and_calls_are_conserved_in_every_view(
    job: Trace, views: tuple[str, ...], combine: str
) -> None:
    chosen = Settings(views=views, combine=combine, floor=0.0, threshold=0.0)  # type: ignore[arg-type]
    rows = io_rows(main_view(job, chosen, LocalEngine()), job, chosen).rows

    for view in classify_views(rows, chosen, ranks=1):
        if combine == "cross" or len(view.summary.view) == 1:
            records = summed_records(rows.cells, by=view.summary.view)
            assert records.height == view.summary.records
            assert records["seconds"].sum() == pytest.approx(
                int(rows.main["nanoseconds"].sum()) / 1e9
            )
            assert records["bytes"].sum() == rows.main["bytes"].sum()
            assert records["count"].sum() == pytest.approx(rows.main["count"].sum())
            assert view.kept["time"].sum() == pytest.approx(
                int(rows.main["nanoseconds"].sum()) / 1e9
            )


def test_layers_are_counted_once_unless_asked_otherwise(job: Trace) -> None:
    deepest = found(job).totals["bytes"]
    posix = found(job, layer="posix").totals["bytes"]
    stdio = found(job, layer="stdio").totals["bytes"]
    every = found(job, layer="all").totals["bytes"]
    mpiio = found(job, layer="mpiio").totals["bytes"]

    assert deepest == posix + stdio  # type: ignore[operator]
    assert every == deepest + mpiio  # type: ignore[operator]


@settings(max_examples=8, deadline=None)
@given(cuts=st.lists(st.integers(0, 60_000), max_size=4))
def test_where_an_ordered_trace_is_cut_changes_no_answer(job: Trace, cuts: list[int]) -> None:
    events = job.events()[::5].sort("start", maintain_order=True)

    same_answer(job, [events], cut(events, cuts))


@settings(max_examples=8, deadline=None)
@given(cuts=st.lists(st.integers(0, 60_000), max_size=4), seed=st.integers(0, 2**16))
def test_shuffled_pieces_change_no_answer_but_what_is_random(
    job: Trace, cuts: list[int], seed: int
) -> None:
    events = job.events()[::5]
    shuffled = events[np.random.default_rng(seed).permutation(events.height)]

    same_answer(job, [events], cut(shuffled, cuts), without=ORDER_FIELDS)


def cut(events: pl.DataFrame, cuts: list[int]) -> list[pl.DataFrame]:
    edges = [0, *(min(cut, events.height) for cut in sorted(cuts)), events.height]
    return [events[a:b] for a, b in pairwise(edges)]


def same_answer(
    job: Trace, some: list[pl.DataFrame], others: list[pl.DataFrame], *, without: str = "^$"
) -> None:
    paths = job.files["path"].to_list()
    one, other = (found(trace_of(*pieces, paths=paths)) for pieces in (some, others))
    left_out = pl.selectors.matches(without) | pl.selectors.by_name("number", "id")

    assert [(v.view, v.records, v.bottlenecks) for v in one.views] == [
        (v.view, v.records, v.bottlenecks) for v in other.views
    ]
    assert_frame_equal(
        one.table.drop(left_out),
        other.table.drop(left_out),
        check_row_order=False,
        rel_tol=1e-6,
        abs_tol=1e-9,
    )


def test_renaming_files_and_processes_changes_no_number(job: Trace) -> None:
    events = job.events()[::5]
    files, processes = job.files.height, job.processes.height
    renamed = events.with_columns(
        file=(files - 1 - pl.col("file").cast(pl.Int64)).cast(pl.UInt32),
        process=(processes - 1 - pl.col("process").cast(pl.Int64)).cast(pl.UInt32),
    )
    numbers = ["severity", "at_stake", "count", "size", "metadata_time", "sharers", "files"]

    one = found(trace_of(events)).table.sort("view", *numbers).select("view", *numbers)
    other = found(trace_of(renamed)).table.sort("view", *numbers).select("view", *numbers)

    assert_frame_equal(one, other, rel_tol=1e-9)


@pytest.mark.parametrize(
    "trace",
    [trace_of(), trace_of(calls([{"seconds": 0.0}])), trace_of(calls([{"seconds": 1.0}]))],
    ids=["no events", "a call without time", "one call"],
)
def test_almost_nothing_is_answered(trace: Trace) -> None:
    nothing = found(trace)

    assert nothing.table.height == 0
    assert all(view.bottlenecks == 0 for view in nothing.views)


def test_a_huge_write_that_takes_no_time_explains_no_more_than_days() -> None:
    slow = [{"start": n, "seconds": 3.0, "bytes": 1, "file": n, "process": n} for n in range(4)]
    huge = {"seconds": 0.0, "bytes": 2**50, "file": 4, "process": 4}

    answer = found(trace_of(calls([*slow, huge])), method="excess", floor=0.0)

    assert answer.totals["bytes"] == 2**50 + 4
    assert answer.table.height == 0
