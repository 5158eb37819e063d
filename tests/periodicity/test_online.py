"""The period of a running job: found, kept, changed, lost; and noise left alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from ioprism.live.state import pack, unpack
from ioprism.model.arrays import FloatArray
from ioprism.periodicity.looks import look_at, share_of_look
from ioprism.periodicity.tracker import Prediction, Tracker

RANKS = 4


def bursts(
    starts: Sequence[float] | FloatArray, *, length: float, jitter: float = 0.01, seed: int = 1
) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
    """One batch a burst: every rank writes for about so many seconds."""
    rng = np.random.default_rng(seed)
    batches = []
    for start in starts:
        begin = start + rng.uniform(0.0, jitter * length, RANKS)
        batches.append((begin, begin + length, np.full(RANKS, 1e8)))
    return batches


def followed(
    batches: Sequence[tuple[FloatArray, FloatArray, FloatArray]], tracker: Tracker | None = None
) -> list[Prediction]:
    tracker = tracker or Tracker()
    said = []
    for batch in batches:
        tracker.add(*batch)
        prediction = tracker.predict()
        assert prediction is not None
        said.append(prediction)
    return said


def every(period: float, *, count: int, first: float = 5.0) -> FloatArray:
    return first + period * np.arange(count, dtype=np.float64)


@pytest.mark.parametrize("period", [0.2, 20.0, 3600.0])
def test_after_five_periods_the_period_is_right_and_stays(period: float) -> None:
    said = followed(bursts(every(period, count=40), length=period / 5))

    for prediction in said[5:]:
        assert prediction.period is not None
        assert prediction.period.seconds == pytest.approx(period, rel=0.03)


def test_the_next_phase_begins_when_predicted() -> None:
    rng = np.random.default_rng(3)
    starts = np.cumsum(20.0 + rng.normal(0.0, 0.6, 30))
    said = followed(bursts(starts, length=4.0))
    pairs = zip(said[5:-1], starts[6:], strict=True)
    errors = [
        abs(one.next_phase.start - truth) / 20.0
        for one, truth in pairs
        if one.next_phase is not None
    ]

    assert len(errors) >= 20
    assert np.median(errors) < 0.1


def test_the_next_phase_tells_its_length_its_bytes_and_how_sure_it_is() -> None:
    phase = followed(bursts(every(20.0, count=12), length=4.0))[-1].next_phase

    assert phase is not None
    assert phase.end - phase.start == pytest.approx(4.0, abs=0.3)
    assert phase.bytes == pytest.approx(RANKS * 1e8, rel=0.05)
    assert phase.confidence > 0.95


def test_the_confidence_falls_where_phases_are_late() -> None:
    rng = np.random.default_rng(5)
    starts = np.cumsum(20.0 + rng.normal(0.0, 3.0, 60))
    phase = followed(bursts(starts, length=4.0))[-1].next_phase

    assert phase is not None
    assert 0.2 < phase.confidence < 0.8  # 0.50 is the share within a tenth of the period


def test_a_change_of_periodicity_is_announced_within_four_of_its_periods() -> None:
    slow = every(20.0, count=10)
    fast = every(4.0, count=25, first=slow[-1] + 20.0)
    again = every(20.0, count=8, first=fast[-1] + 4.0)
    said = followed(bursts(np.concatenate([slow, fast, again]), length=1.5))
    changes = [one for one in said if one.change is not None and one.change.after is not None]

    assert [round(one.change.after or 0) for one in changes if one.change] == [20, 4, 20]
    assert changes[1].time <= fast[0] + 4 * 4.0
    assert changes[2].time <= again[0] + 4 * 20.0


def test_the_end_of_a_periodicity_is_announced() -> None:
    rng = np.random.default_rng(2)
    regular = every(10.0, count=12)
    wild = regular[-1] + np.cumsum(rng.exponential(25.0, 12) + 4.0)
    said = followed(bursts(np.concatenate([regular, wild]), length=2.0))

    assert any(one.change is not None and one.change.after is None for one in said)
    assert said[-1].next_phase is None or said[-1].period is not None


def test_after_enough_equal_answers_only_the_last_periods_count() -> None:
    last = followed(bursts(every(10.0, count=60), length=2.0))[-1]

    assert last.window[1] - last.window[0] < 20 * 10.0
    assert last.probabilities[0].probability > 0.9


def random_bursts(rng: np.random.Generator) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
    starts = np.cumsum(rng.exponential(20.0, 30))
    return [
        (np.array([start]), np.array([start + rng.uniform(1, 9)]), rng.uniform(1e8, 1e9, 1))
        for start in starts
    ]


def noise(rng: np.random.Generator) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
    return [
        (np.array([float(i), i + 1.0]), np.array([i + 1.0, i + 2.0]), rng.exponential(1e8, 2))
        for i in range(0, 300, 2)
    ]


@pytest.mark.parametrize("make", [random_bursts, noise], ids=["bursts", "noise"])
def test_where_there_is_no_periodicity_none_is_announced(
    make: Callable[[np.random.Generator], list[tuple[FloatArray, FloatArray, FloatArray]]],
) -> None:
    jobs = [followed(make(np.random.default_rng(seed))) for seed in range(10)]
    fooled = sum(any(one.change is not None for one in said) for said in jobs)

    assert fooled <= 1  # 1 % of the jobs over all their looks; two of ten are 0.4 % likely


def test_late_duplicate_and_reordered_batches_do_no_harm() -> None:
    batches = bursts(every(10.0, count=20), length=2.0)
    order = [1, 0, 2, 3, 5, 4, *range(6, 20)]
    last = followed([batches[i] for i in order])[-1]

    assert last.period is not None
    assert last.period.seconds == pytest.approx(10.0, rel=0.01)


def test_a_restored_tracker_goes_on_as_if_nothing_had_happened() -> None:
    batches = bursts(every(10.0, count=20), length=2.0)
    tracker = Tracker()
    followed(batches[:10], tracker)
    copy = unpack(pack(tracker), Tracker)
    straight, resumed = followed(batches[10:], tracker)[-1], followed(batches[10:], copy)[-1]

    assert resumed.period == straight.period
    assert resumed.next_phase == straight.next_phase


def test_an_empty_tracker_says_nothing() -> None:
    assert Tracker().predict() is None


def test_without_time_for_an_analysis_the_last_answer_moves_on() -> None:
    tracker = Tracker()
    last = followed(bursts(every(10.0, count=10), length=2.0), tracker)[-1]
    tracker.add(np.array([125.0]), np.array([126.0]), np.array([1.0]))
    cheap = tracker.predict(analyse=False)

    assert cheap is not None and cheap.next_phase is not None and last.period is not None
    assert tracker.due
    assert cheap.period == last.period
    assert cheap.next_phase.start > 126.0


def test_all_looks_together_use_no_more_than_the_false_alarm_level() -> None:
    looks = [look_at(phases) for phases in range(2000)]

    assert looks[:8] == [0, 0, 0, 0, 1, 2, 3, 4]
    assert looks == sorted(looks)
    assert sum(share_of_look(look) for look in range(1, 10_000)) == pytest.approx(1.0, abs=1e-3)


def test_bursts_of_many_requests_are_known_after_four_of_them() -> None:
    tracker = Tracker()
    for burst in range(4):
        chance = np.random.default_rng(burst)
        edges = 10.0 * burst + 2.0 * np.sort(np.append(chance.uniform(size=58), [0.0, 1.0]))
        tracker.add(edges[0::2], edges[1::2], np.full(30, 4e6))
    said = tracker.predict()

    assert said is not None and said.period is not None
    assert said.period.seconds == pytest.approx(10.0, rel=0.01)


def test_a_job_with_a_periodicity_needs_no_more_memory_the_longer_it_runs() -> None:
    tracker, levels = Tracker(), []
    for count in (100, 3000):
        followed(bursts(every(10.0, count=count), length=1.0), tracker)
        levels.append(len(tracker.ring.levels))

    assert levels[1] <= levels[0] + 1
    assert tracker.latest is not None and tracker.latest.period is not None
    assert tracker.latest.period.seconds == pytest.approx(10.0, rel=0.02)


def test_a_short_period_is_analysed_a_few_times_per_second_only() -> None:
    tracker, analyses = Tracker(), 0
    for start in np.arange(0.0, 10.0, 0.02).tolist():
        tracker.add(np.array([start]), np.array([start + 0.004]), np.array([1e6]))
        analyses += tracker.due
        tracker.predict()

    assert tracker.latest is not None
    assert tracker.latest.period is not None
    assert tracker.latest.period.seconds == pytest.approx(0.02, rel=0.01)
    assert analyses <= 45  # 400 by the period alone
