"""Few events are kept in memory; views that several questions share are computed once."""

from __future__ import annotations

from polars.testing import assert_frame_equal

import ioprism
from ioprism import LocalEngine, MemoryPartition, View
from ioprism.engine.prepared import SharedViews, in_memory
from ioprism.views.calls.totals import Totals
from ioprism.views.picture.timeline import Span
from ioprism.views.time.intervals import BusyIntervals
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
