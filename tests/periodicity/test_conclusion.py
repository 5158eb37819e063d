"""The last live answer for a job is the one of its whole trace."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.period_families import PERIODIC, Stream, draw
from benchmarks.periodicity_families import batches
from ioprism.live.state import pack, unpack
from ioprism.periodicity.results import Period
from ioprism.periodicity.stream_buffers import READ, WRITE
from ioprism.periodicity.tracker import Tracker
from tests.periodicity.family_answers import FAMILIES, answer_of


def concluded(stream: Stream, *, following: bool = False) -> Period | None:
    tracker = Tracker()
    for pieces in batches(stream):
        tracker.add(stream.start[pieces], stream.end[pieces], stream.amount[pieces])
        if following:
            tracker.predict()
    answer = tracker.conclude()
    return None if answer is None else answer.period


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_the_last_live_answer_is_the_offline_one(name: str) -> None:
    stream = draw(FAMILIES[name], 1)
    # What was announced before does not change it: a tenth of the families is followed, too.
    offline, live = answer_of(name, 1), concluded(stream, following=name in sorted(FAMILIES)[::10])
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
        unpack(pack(tracker), Tracker).conclude(),
    )

    assert before is not None and again is not None
    assert before.period is not None and again.period is not None
    assert again.period.seconds == before.period.seconds


def job_of_many_requests() -> Tracker:
    """A large read, and a write of 500 requests every ten seconds, 400 times."""
    starts = np.sort(np.concatenate([10.0 * np.arange(400) + 1e-3 * n for n in range(50)]))
    tracker = Tracker()
    tracker.add(np.array([0.0]), np.array([900.0]), np.array([1e13]), np.array([READ], np.int8))
    for part in np.array_split(starts, 7):
        sizes, codes = np.full(len(part), 1e6), np.full(len(part), WRITE, np.int8)
        tracker.add(part, part + 1e-3, sizes, codes)
    return tracker


def test_a_job_of_very_many_requests_keeps_its_directions_and_its_whole_length() -> None:
    tracker = job_of_many_requests()
    again = unpack(pack(tracker), Tracker)

    assert not tracker.history.complete
    for one in (tracker, again):
        answer = one.conclude()
        assert answer is not None and answer.period is not None
        assert answer.direction == "write"
        assert answer.period.seconds == pytest.approx(10.0, rel=1e-4)
        assert answer.period.repetitions == 399
