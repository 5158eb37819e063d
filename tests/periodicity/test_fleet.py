"""Phases of all jobs lie on one axis, and those that meet are found."""

from __future__ import annotations

import pytest

from ioprism import Period
from ioprism.periodicity.looks import PhaseAhead, overlaps, phases_ahead
from ioprism.periodicity.results import ExpectedPhase


def period(seconds: float) -> Period:
    return Period(seconds, 1 / seconds, 1.0, 0.0, ((0.0, 100.0),), 1.0, 0.0, 0.0, "phases", 5)


def ahead(job: str, start: float, end: float) -> PhaseAhead:
    return PhaseAhead(job, start, end, 1e9, 0.9)


def test_phases_ahead_are_told_from_now_and_get_less_sure() -> None:
    expected = ExpectedPhase(120.0, 124.0, 4e9, 0.9)

    found = phases_ahead("a", expected, period(10.0), elapsed=115.0, horizon=26.0)

    assert [phase.start for phase in found] == [5.0, 15.0, 25.0]
    assert found[2].confidence == pytest.approx(0.9**3)


def test_a_job_that_was_silent_has_its_next_phase_ahead_not_behind() -> None:
    expected = ExpectedPhase(120.0, 124.0, 4e9, 0.9)

    found = phases_ahead("a", expected, period(10.0), elapsed=138.0, horizon=10.0)

    assert found[0].start == pytest.approx(2.0)


def test_jobs_that_meet_are_told_with_what_they_want_together() -> None:
    found = overlaps([ahead("a", 0.0, 4.0), ahead("b", 2.0, 6.0), ahead("c", 9.0, 10.0)])

    assert [(one.start, one.end, one.jobs) for one in found] == [(2.0, 4.0, ("a", "b"))]
    assert found[0].rate == pytest.approx(5e8)


def test_phases_of_one_job_never_meet_themselves() -> None:
    assert overlaps([ahead("a", 0.0, 4.0), ahead("a", 2.0, 6.0)]) == []
