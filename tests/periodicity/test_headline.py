"""The answer is the period that explains most, and small I/O does not hide large bursts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ioprism import period
from ioprism.engine.base import LocalEngine
from ioprism.formats.registry import read_trace
from ioprism.model.arrays import Signal
from ioprism.periodicity.detect import Options, detect
from ioprism.periodicity.of_job import PeriodSettings, job_periodicity
from ioprism.periodicity.of_signal import signal_periodicity
from ioprism.periodicity.sampling import sample
from ioprism.report_steps import document_of
from ioprism.views.bandwidth import steps_of_intervals
from tests.call_tables import calls, trace_of
from tests.counted_passes import Counted


def signal_of(*trains: tuple[npt.NDArray[Any], float, float]) -> Signal:
    """Requests of several kinds: their starts, length in seconds and bytes."""
    starts = np.concatenate([start for start, _, _ in trains])
    ends = np.concatenate([start + length for start, length, _ in trains])
    moved = np.concatenate([np.full(len(start), size) for start, _, size in trains])
    return sample(steps_of_intervals(starts, ends, moved))


def test_checkpoints_come_before_a_log_line_after_every_step() -> None:
    chance = np.random.default_rng(4)
    checkpoints = np.cumsum(chance.uniform(16.0, 19.0, 14))
    steps = 1.17 * np.arange(200) + 0.3

    found = detect(signal_of((checkpoints, 1.5, 2e8), (steps, 0.05, 1e4)))

    assert found is not None
    assert found.seconds == pytest.approx(17.5, rel=0.05)
    assert found.bytes_share is not None and found.bytes_share > 0.9


def test_a_period_of_few_bytes_is_listed_but_not_the_answer() -> None:
    chance = np.random.default_rng(1)
    steps = 2.0 * np.arange(40)
    random = 90.0 + np.sort(chance.uniform(0.0, 60.0, 9)) ** 1.1
    found = signal_periodicity(signal_of((steps, 0.5, 1e7), (random, 1.0, 4e9)))

    assert found.period is None and found.next_phase is None
    assert found.periods[0].period.seconds == pytest.approx(2.0, rel=0.01)
    assert "moves 1.1% of the bytes" in found.summary()


@pytest.fixture
def reads_then_periodic_writes(tmp_path: Path) -> Path:
    """One large read, then small writes every ten seconds."""
    reads = {"t_rank_s": [0.0], "t_rank_e": [9.0], "b_rank_avr": [5e9]}
    starts = [15.0 + 10.0 * number for number in range(12)]
    ends = [start + 1.0 for start in starts]
    writes = {"t_rank_s": starts, "t_rank_e": ends, "b_rank_avr": [1e8] * 12}
    path = tmp_path / "8.json"
    body = {"read_sync": {"bandwidth": reads}, "write_sync": {"bandwidth": writes}}
    path.write_text(json.dumps(body))
    return path


def test_writes_answer_where_their_period_explains_more_than_that_of_all(
    reads_then_periodic_writes: Path,
) -> None:
    trace = read_trace(reads_then_periodic_writes)

    found = job_periodicity(trace, LocalEngine(), PeriodSettings()).whole

    assert found.direction == "write"
    assert found.period is not None
    assert found.period.seconds == pytest.approx(10.0, rel=0.01)
    assert float(found.signal.values.max()) == pytest.approx(1e8)  # what is drawn is writes
    assert found.summary() == "The writes repeat every 10.00 s (confidence 100%)"


def test_report_answers_as_period_does(reads_then_periodic_writes: Path) -> None:
    trace = read_trace(reads_then_periodic_writes)

    in_report = document_of(trace).periodicity

    assert in_report is not None
    assert in_report.summary() == period(trace).summary()


def test_the_last_burst_counts_if_others_are_as_large() -> None:
    starts = np.array([5.6, 127.6, 232.6, 343.4, 448.9, 560.6, 666.9])
    usual = np.array([True, True, True, False, True, True, False])
    large = (starts[~usual], 1.2, 2.2e8)

    answer = signal_periodicity(signal_of((starts[usual], 0.6, 1.4e8), large))

    assert answer.period is not None
    assert len(answer.period.phases) == 7
    assert answer.next_phase is not None and answer.next_phase.start > 700.0


def test_what_comes_in_every_period_is_explained_by_it() -> None:
    writes, reads = 10.0 * np.arange(12), 10.0 * np.arange(12) + 5.0

    answer = signal_periodicity(signal_of((writes, 3.0, 8e9), (reads, 1.0, 8e9)))

    assert answer.period is not None and answer.burst is not None
    assert answer.period.seconds == pytest.approx(10.0, rel=0.01)
    assert answer.period.bytes_share is not None and answer.period.bytes_share > 0.9
    assert answer.burst.bytes == pytest.approx(16e9, rel=0.1)


@pytest.mark.parametrize("growth", [1.05, 0.95])
def test_distances_that_keep_growing_or_shrinking_have_no_mean(growth: float) -> None:
    starts = np.cumsum(10.0 * growth ** np.arange(30))

    assert detect(signal_of((starts, 0.5, 1e9))) is None


def test_a_strong_jitter_is_named_beside_the_mean() -> None:
    gaps = np.random.default_rng(78).uniform(5.0, 15.0, 12)
    answer = signal_periodicity(signal_of((np.cumsum(gaps), 1.0, 1e9)))

    assert answer.period is not None and answer.period.certainty == "maybe"
    assert "on average, ± " in answer.summary()


def test_calls_are_looked_through_once() -> None:
    kinds = ("read", "write")
    rows = [
        {"start": 5.0 * i, "seconds": 1.0, "operation": kinds[i % 2], "bytes": 10**9}
        for i in range(24)
    ]
    trace, engine = trace_of(calls(rows)), Counted()

    answer = job_periodicity(trace, engine, PeriodSettings()).whole

    assert answer.period is not None and answer.takes_turns
    assert len(engine.passes) == 2  # when calls run, and the bandwidth of both directions


def test_little_confidence_is_worded_as_a_possibility() -> None:
    times = np.arange(3000) * 0.1
    noise = np.random.default_rng(2).standard_normal(3000)
    wave = signal_periodicity(Signal(0.0, 0.1, 20.0 + np.cos(times * 2 * np.pi / 10.0) + noise))

    assert wave.period is not None and wave.period.confidence < 0.5
    assert wave.summary().startswith("The I/O possibly repeats every 10.0 s")


@pytest.mark.parametrize("method", ["dft", "harmonic", "hybrid", "autocorrelation"])
def test_phases_have_their_bytes_and_lengths_with_every_method(method: str) -> None:
    bursts = signal_of((10.0 * np.arange(12) + 3.0, 2.0, 8e9))

    found = signal_periodicity(bursts, options=Options(method))

    assert found.burst is not None
    assert found.burst.bytes == pytest.approx(8e9, rel=0.05)
    assert found.burst.width == pytest.approx(2.0, rel=0.1)
