"""The last live answer for a job is the one of its whole trace."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.period_families import NOT_PERIODIC, PERIODIC, Stream, draw
from benchmarks.periodicity_families import answer, batches
from ioprism.periodicity.online.stream_buffers import MAX_REQUESTS, READ, WRITE
from ioprism.periodicity.online.tracker import Tracker, TrackerSettings
from ioprism.periodicity.results import Period

FAMILIES = {**PERIODIC, **NOT_PERIODIC}


def concluded(stream: Stream) -> Period | None:
    tracker = Tracker()
    for pieces in batches(stream):
        tracker.add(stream.start[pieces], stream.end[pieces], stream.amount[pieces])
        tracker.predict()
    answer = tracker.conclude()
    return None if answer is None else answer.period


@pytest.mark.parametrize("name", sorted(FAMILIES)[::4])
def test_the_last_live_answer_is_the_offline_one(name: str) -> None:
    stream = draw(FAMILIES[name], 1)
    offline, live = answer(stream), concluded(stream)
    minor = offline is not None and (offline.bytes_share or 0.0) < 0.05

    assert (live is None) == (offline is None or minor)
    if live is not None and offline is not None:
        assert live.seconds == pytest.approx(offline.seconds, rel=1e-6)
        assert live.certainty == offline.certainty


def test_writes_answer_live_as_offline_where_they_explain_more() -> None:
    tracker = Tracker()
    one = np.array([0.0])
    tracker.add(one, one + 9.0, np.array([5e10]), np.array([READ], np.int8))
    for number in range(12):
        start = np.array([15.0 + 10.0 * number])
        tracker.add(start, start + 1.0, np.array([1e8]), np.array([WRITE], np.int8))
    answer = tracker.conclude()

    assert answer is not None and answer.final
    assert answer.direction == "write"
    assert answer.period is not None
    assert answer.period.seconds == pytest.approx(10.0, rel=0.01)


def test_a_saved_tracker_concludes_as_it_would_have() -> None:
    stream = draw(PERIODIC["clocked"], 2)
    tracker = Tracker()
    tracker.add(stream.start, stream.end, stream.amount)
    before, again = (
        tracker.conclude(),
        Tracker.from_state(tracker.state(), TrackerSettings()).conclude(),
    )

    assert before is not None and again is not None
    assert before.period is not None and again.period is not None
    assert again.period.seconds == before.period.seconds


def test_a_job_with_too_many_requests_is_judged_by_its_bins() -> None:
    starts = np.sort(np.concatenate([10.0 * np.arange(40) + 1e-3 * n for n in range(500)]))
    tracker = Tracker()
    tracker.add(starts, starts + 1e-3, np.full(len(starts), 1e6))
    answer = tracker.conclude()

    assert len(starts) > MAX_REQUESTS and not tracker.history.complete
    assert answer is not None and answer.period is not None
    assert answer.period.seconds == pytest.approx(10.0, rel=0.01)
