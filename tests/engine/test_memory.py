"""Few events are kept in memory, many are not."""

from __future__ import annotations

from polars.testing import assert_frame_equal

import ioprism
from ioprism import MemoryPartition
from ioprism.engine.prepared import in_memory
from tests.conftest import ROOT


def test_few_events_are_held_and_many_are_not() -> None:
    trace = ioprism.read(ROOT / "tests/data/darshan/g_straggler_rank2.darshan")
    heard: list[int] = []
    held = in_memory(trace, progress=heard.append)

    assert in_memory(trace, most=10) is trace
    assert all(isinstance(piece, MemoryPartition) for piece in held.partitions)
    assert heard
    assert_frame_equal(held.events(), trace.events())
    assert_frame_equal(held.files, trace.files)
