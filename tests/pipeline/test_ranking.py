"""Findings stand under the causes that explain them, and none costs more than I/O holds up."""

from __future__ import annotations

from pathlib import Path

import pytest

import ioprism
from ioprism import (
    CallGroup,
    Cause,
    Contrast,
    Verdict,
    Finding,
    StallTime,
    Saving,
    Severity,
    Subject,
    Thresholds,
)
from ioprism.pipeline.ranking import explained
from ioprism.reports.wording import first_unexplained, verdict

DATA = Path(__file__).parents[1] / "data" / "darshan"


def finding(code: str, seconds: float | None, level: Severity = Severity.HIGH) -> Finding:
    return Finding(code, level, Subject("job"), seconds_at_stake=seconds)


def diagnosis(*causes: Cause, io_stall: float = 10.0) -> Verdict:
    return Verdict(20.0, StallTime(io_stall, io_stall / 20.0, "phases"), causes)


def cause(code: str, saving: float, *symptoms: str, **culprit: object) -> Cause:
    saved = Saving(saving, saving, saving, saving / 20.0)
    return Cause(code, culprit, saved, 0.9, Contrast(code, CallGroup(1)), symptoms=symptoms)


def test_symptoms_of_the_cause_that_saves_most_come_first() -> None:
    found = [finding("small-writes", 9.0), finding("stragglers", 5.0), finding("other", 9.5)]
    causes = cause("slow-rank", 6.0, "stragglers"), cause("small-requests", 1.0, "small-writes")

    told = explained(found, diagnosis(*causes), Thresholds())

    assert [one.code for one in told] == ["stragglers", "small-writes", "other"]
    assert [one.cause for one in told] == ["slow-rank", "small-requests", None]


def test_nothing_costs_more_than_i_o_holds_the_job_up() -> None:
    told = explained([finding("rank-0-heavy", 15.0)], diagnosis(), Thresholds())

    assert told[0].seconds_at_stake == 10.0


def test_what_costs_next_to_nothing_is_a_note() -> None:
    (told,) = explained([finding("rank-0-heavy", 15.0)], diagnosis(io_stall=0.1), Thresholds())

    assert told.severity is Severity.INFO


def test_the_bottleneck_that_a_cause_names_stands_under_it() -> None:
    slow = Finding("bottleneck-process", Severity.WARN, Subject("record"), seconds_at_stake=3.0,
                   details=({"process": "rank 2 on node1"},))  # fmt: skip
    other = Finding("bottleneck-process", Severity.WARN, Subject("record"), seconds_at_stake=3.0,
                    details=({"process": "rank 21 on node1"},))  # fmt: skip
    found = diagnosis(cause("slow-rank", 6.0, ranks=[2]))

    assert [one.cause for one in explained([other, slow], found, Thresholds())] == [
        "slow-rank",
        None,
    ]


@pytest.mark.parametrize("name", ["c_rank0_all_io", "g_straggler_rank2"])
def test_no_finding_of_a_log_is_above_its_held_up_time(name: str) -> None:
    insights = ioprism.insights(ioprism.read(DATA / f"{name}.darshan"))

    assert insights.diagnosis is not None
    assert all(
        (one.seconds_at_stake or 0.0) <= insights.diagnosis.io_stall.seconds
        for one in insights.findings
    )


def test_a_slow_rank_and_the_small_writes_that_slow_it_have_one_cause() -> None:
    insights = ioprism.insights(ioprism.read(DATA / "g_straggler_rank2.darshan"))

    assert insights.diagnosis is not None
    assert insights.diagnosis.causes[0].culprit["ranks"] == [2]
    serious = [one for one in insights.findings if one.severity in (Severity.HIGH, Severity.WARN)]
    assert {one.code for one in serious[:2]} == {"small-writes", "stragglers"}
    assert {one.cause for one in serious} == {"small-requests"}


def test_calls_that_only_counters_show_hold_the_job_up_too() -> None:
    """Rank 0 is 0.213 s in I/O by its own clock; extended tracing leaves out its syncs."""
    insights = ioprism.insights(ioprism.read(DATA / "c_rank0_all_io.darshan"))

    assert insights.diagnosis is not None
    assert insights.diagnosis.io_stall.seconds == pytest.approx(0.2138, rel=0.01)
    ledger = sum(line.seconds for line in insights.diagnosis.ledger)
    assert ledger == pytest.approx(insights.diagnosis.io_stall.seconds)


def record(name: str, seconds: float) -> Finding:
    return Finding("bottleneck-process", Severity.WARN, Subject("record"), title=name,
                   seconds_at_stake=seconds)  # fmt: skip


def test_what_is_measured_against_peers_opens_the_story_where_it_is_most_of_the_time() -> None:
    small = finding("small-writes", 9.0)

    assert first_unexplained(diagnosis(), [small, record("rank 3", 6.0)]) == record("rank 3", 6.0)
    assert first_unexplained(diagnosis(), [small, record("rank 3", 2.0)]) == small
    assert first_unexplained(diagnosis(cause("slow-rank", 5.0)), [small]) is None


def test_without_a_cause_the_story_says_what_the_time_is_spent_on() -> None:
    report = ioprism.report(ioprism.read(DATA / "a_ckpt_fpp_period5s.darshan"))

    line = verdict(report.document).line

    assert line.endswith(
        "No cause was found; 100% of the time in calls goes into writing 1.50 GiB."
    )
