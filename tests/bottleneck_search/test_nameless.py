"""Counters say of some calls neither when they were nor whose: they are part of no record."""

from __future__ import annotations

from pathlib import Path

import ioprism

DATA = Path(__file__).parents[1] / "data" / "darshan"


def test_no_bottleneck_is_nameless() -> None:
    found = ioprism.bottlenecks(ioprism.read(DATA / "n_hdf5_collective_write.darshan"))

    assert not [name for one in found.bottlenecks for name in one.record.values() if name is None]


def test_ranks_are_compared_with_ranks_only() -> None:
    trace = ioprism.read(DATA / "n_hdf5_collective_write.darshan")
    views = {view.view: view.records for view in ioprism.bottlenecks(trace).views}

    assert views["process",] == trace.job.ranks
