"""Few events are kept in memory; views that several questions share are computed once."""

from __future__ import annotations

import pytest
from polars.testing import assert_frame_equal

import ioprism
from ioprism import LocalEngine, MemoryPartition, View
from ioprism.engine.base import SharedViews, in_memory
from ioprism.views.intervals import BusyIntervals
from ioprism.views.timeline import Span
from ioprism.views.totals import Totals
from tests.conftest import TEST_DATA
from tests.counted_passes import Counted

LOG = TEST_DATA / "darshan" / "g_straggler_rank2.darshan"


def test_views_asked_for_again_cost_no_pass() -> None:
    trace, counted = ioprism.read(LOG), Counted()
    by_rank = Totals(("rank", "layer", "operation"))
    engine = SharedViews(counted, trace, (BusyIntervals(), Span()))

    first = engine.run(trace, by_rank)
    again = engine.run(trace, Span(), BusyIntervals())
    mixed = engine.run(trace, Span(), by_rank)

    assert counted.passes == [3, 1]
    asked: tuple[View, ...] = (by_rank, Span(), BusyIntervals(), Span(), by_rank)
    for table, view in zip((*first, *again, *mixed), asked, strict=True):
        assert_frame_equal(table, LocalEngine().run(trace, view)[0], check_row_order=False)


def test_views_planned_later_share_the_next_pass() -> None:
    trace, counted = ioprism.read(LOG), Counted()
    engine = SharedViews(counted, trace, (Span(),))

    engine.run(trace, Span())
    engine.plan(BusyIntervals())
    engine.run(trace, Span())
    engine.run(trace, Totals(("rank", "layer", "operation")))
    engine.run(trace, BusyIntervals())

    assert counted.passes == [1, 2]


@pytest.mark.parametrize(
    ("log", "diagnosing", "reporting"), [("g_straggler_rank2", 2, 2), ("e_mpiio_collective", 1, 3)]
)
def test_a_diagnosis_reads_the_events_twice_and_a_report_three_times_at_most(
    log: str, diagnosing: int, reporting: int
) -> None:
    trace = ioprism.read(TEST_DATA / "darshan" / f"{log}.darshan")
    diagnosis, report = Counted(), Counted()

    ioprism.diagnose(trace, engine=diagnosis)
    ioprism.analyse(trace, engine=report)

    assert len(diagnosis.passes) <= diagnosing
    assert len(report.passes) <= reporting


def test_another_trace_is_computed_as_ever() -> None:
    trace, other = ioprism.read(LOG), ioprism.read(LOG)
    engine = SharedViews(LocalEngine(), trace, (Span(),))

    (span,) = engine.run(other, Span())

    assert_frame_equal(span, LocalEngine().run(other, Span())[0])


def test_few_events_are_held_and_many_are_not() -> None:
    trace = ioprism.read(LOG)
    batches_done: list[int] = []
    held = in_memory(trace, progress=batches_done.append)

    assert in_memory(trace, most=10) is trace
    assert all(isinstance(piece, MemoryPartition) for piece in held.partitions)
    assert batches_done
    assert_frame_equal(held.events(), trace.events())
    assert_frame_equal(held.files, trace.files)
