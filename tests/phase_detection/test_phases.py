"""Phases are found where bursts are, also where the peers' threshold merges or drops them."""

from __future__ import annotations

import numpy as np
import pytest
from polars.testing import assert_frame_equal

import ioprism
from benchmarks.synthetic import Burst, Requests, Straggler, Workload, synthesise
from ioprism import (
    LocalEngine,
    NotEnoughDetailError,
    Phases,
    PhaseSettings,
    Trace,
    UsageError,
    read,
)
from ioprism.model.trace import LazyTables
from ioprism.phase_detection import phase_borders
from ioprism.phase_detection.find import phases
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"


def borders(*intervals: tuple[float, float], **settings: float) -> list[tuple[float, float]]:
    start, end = np.array(intervals).T
    _, (first, last) = phase_borders(start, end, PhaseSettings(**settings))
    return list(zip(first.tolist(), last.tolist(), strict=True))


def test_a_last_lone_burst_is_a_phase_of_its_own() -> None:
    assert borders((0, 1), (1.1, 2), (2.1, 3), (10, 11)) == [(0, 3), (10, 11)]


def test_one_interval_is_one_phase() -> None:
    assert borders((3, 4)) == [(3, 4)]


def test_equal_bursts_stay_separate() -> None:
    bursts = [(10.0 * n, 10.0 * n + 1) for n in range(12)]

    assert borders(*bursts) == bursts


@pytest.mark.parametrize("seed", range(5))
def test_nearly_equal_bursts_stay_separate(seed: int) -> None:
    chance = np.random.default_rng(seed)
    starts = np.cumsum(chance.normal(10, 0.5, 12))
    bursts = [(float(s), float(s) + 1) for s in starts]

    assert borders(*bursts) == bursts


def test_short_pauses_of_one_stream_are_no_borders() -> None:
    calls = [(n, n + 0.9) for n in range(50)]

    assert borders(*calls) == [(0, 49.9)]


@pytest.mark.parametrize("pieces", [2, 3, 10, 100])
def test_bursts_of_pieces_are_phases_however_many_pieces_they_have(pieces: int) -> None:
    calls = [
        (10.0 * burst + 0.01 * n, 10.0 * burst + 0.01 * n + 0.005)
        for burst in range(12)
        for n in range(pieces)
    ]

    assert len(borders(*calls)) == 12


def test_the_gap_can_be_chosen() -> None:
    assert borders((0, 1), (2, 3), (7, 8), gap=3.0) == [(0, 3), (7, 8)]
    assert len(borders((0, 1), (2, 3), (7, 8), gap=0.5)) == 3


def found(trace: Trace) -> Phases:
    return phases(trace, LocalEngine())


def workload(**options: object) -> Workload:
    burst = Burst(
        "/scratch/out.{rank}", "write", Requests(8, 2**20), length=1.0, period=10.0, repetitions=6,
        gap_jitter=0.02,
    )  # fmt: skip
    return Workload(ranks=4, bursts=(burst,), **options)  # type: ignore[arg-type]


def test_synthetic_bursts_are_found_with_their_slow_rank_and_their_bytes() -> None:
    made = synthesise(workload(stragglers=(Straggler(2, 3.0),)))
    layer = found(made.trace).layers["posix"]
    repetition = made.truth.repetitions[0]

    assert len(layer.phases) == 6
    assert sum(phase.bytes for phase in layer.phases) == repetition.bytes
    for phase, start, end in zip(layer.phases, repetition.starts, repetition.ends, strict=True):
        assert phase.start == pytest.approx(start, abs=0.05)
        assert phase.end == pytest.approx(end, abs=0.2)
        assert phase.slowest.rank == 2
        assert phase.slowest.time > 2 * phase.typical
        assert phase.kind == "write"


@pytest.mark.parametrize("rows", [7, 50, 10**6])
def test_phases_do_not_depend_on_the_partitioning(rows: int) -> None:
    whole = found(synthesise(workload()).trace)
    cut = found(synthesise(workload(), partition_rows=rows).trace)

    assert_frame_equal(cut.to_frame(), whole.to_frame())


def test_a_real_checkpointing_job_has_twelve_phases() -> None:
    answer = ioprism.phases(ioprism.read(DATA / "a_ckpt_fpp_period5s.darshan"))

    assert len(answer.layers["posix"].phases) == 12
    assert answer.to_frame().height == 12


def test_every_phase_of_the_straggler_waits_for_rank_2() -> None:
    layer = found(read(DATA / "g_straggler_rank2.darshan")).layers["posix"]
    slowest = [phase.slowest.rank for phase in layer.phases]

    assert slowest.count(2) >= 0.9 * len(slowest)


def test_heat_maps_show_phases_where_there_are_no_calls() -> None:
    trace = read(DATA / "a_ckpt_fpp_period5s.darshan")
    blind = Trace(
        trace.format, trace.paths, trace.job, (), trace.counters,
        load_files=trace.load_files, load_processes=trace.load_processes,
    )  # fmt: skip
    layer = found(blind).layers["posix"]

    assert len(layer.phases) == 12
    assert layer.resolution == pytest.approx(0.4, rel=1)
    assert sum(phase.bytes for phase in layer.phases) == pytest.approx(1_610_612_736)
    assert {phase.operations for phase in layer.phases} == {None}  # a heat map counts bytes only


def test_a_trace_without_calls_says_what_to_record() -> None:
    trace = read(DATA / "a_ckpt_fpp_period5s.darshan")
    blind = Trace(
        trace.format, trace.paths, trace.job, (), LazyTables({}),
        load_files=trace.load_files, load_processes=trace.load_processes,
    )  # fmt: skip

    with pytest.raises(NotEnoughDetailError, match="DXT_ENABLE_IO_TRACE=1"):
        found(blind)


def test_a_layer_that_is_not_there_is_refused_with_those_that_are() -> None:
    trace = read(DATA / "a_ckpt_fpp_period5s.darshan")

    with pytest.raises(UsageError, match="it has posix"):
        phases(trace, LocalEngine(), layer="mpiio")
