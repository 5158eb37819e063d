"""The last live answer for a job is the one of its whole trace."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.periodicity_families import answer, batches
from benchmarks.rhythm_families import WITH_RHYTHM, WITHOUT_RHYTHM, Stream, draw
from ioprism.periodicity.online.history import MOST_REQUESTS, READ, WRITE
from ioprism.periodicity.online.tracker import Settings, Tracker
from ioprism.periodicity.results import Period

FAMILIES = {**WITH_RHYTHM, **WITHOUT_RHYTHM}


def concluded(stream: Stream) -> Period | None:
    tracker = Tracker()
    for pieces in batches(stream):
        tracker.add(stream.start[pieces], stream.end[pieces], stream.amount[pieces])
        tracker.predict()
    told = tracker.conclude()
    return None if told is None else told.period


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
    told = tracker.conclude()

    assert told is not None and told.final
    assert told.direction == "write"
    assert told.period is not None
    assert told.period.seconds == pytest.approx(10.0, rel=0.01)


def test_a_saved_tracker_concludes_as_it_would_have() -> None:
    stream = draw(WITH_RHYTHM["clocked"], 2)
    tracker = Tracker()
    tracker.add(stream.start, stream.end, stream.amount)
    before, again = tracker.conclude(), Tracker.restored(tracker.state(), Settings()).conclude()

    assert before is not None and again is not None
    assert before.period is not None and again.period is not None
    assert again.period.seconds == before.period.seconds


def test_a_job_with_too_many_requests_is_judged_by_its_bins() -> None:
    starts = np.sort(np.concatenate([10.0 * np.arange(40) + 1e-3 * n for n in range(500)]))
    tracker = Tracker()
    tracker.add(starts, starts + 1e-3, np.full(len(starts), 1e6))
    told = tracker.conclude()

    assert len(starts) > MOST_REQUESTS and not tracker.history.complete
    assert told is not None and told.period is not None
    assert told.period.seconds == pytest.approx(10.0, rel=0.01)
