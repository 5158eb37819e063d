"""Findings stand below the causes whose calls they show, and none exceeds the stall time."""

from __future__ import annotations

from pathlib import Path

import pytest

import ioprism
from ioprism import (
    CallGroup,
    Cause,
    Contrast,
    Finding,
    Saving,
    Severity,
    StallTime,
    Subject,
    Thresholds,
    Verdict,
)
from ioprism.diagnosis.rules.registry import rank_findings

DATA = Path(__file__).parents[1] / "data" / "darshan"


def finding(code: str, seconds: float | None, *, of: str | None = None) -> Finding:
    return Finding(code, Severity.HIGH, Subject("job"), seconds_at_stake=seconds, cause=of)


def judged(*causes: Cause, stall: float = 10.0) -> Verdict:
    status = "cause" if causes else "none"
    return Verdict(status, 20.0, StallTime(stall, stall / 20.0, None, "phases"), causes=causes)


def cause(code: str, saving: float, **culprit: object) -> Cause:
    saved = Saving(saving, saving, saving, saving / 20.0)
    return Cause(code, culprit, saved, 0.9, Contrast(code, CallGroup(1)))


def test_findings_of_the_cause_that_saves_most_come_first() -> None:
    found = [
        finding("small-writes", 9.0, of="small-requests"),
        finding("stragglers", 5.0, of="slow-rank"),
        finding("other", 9.5),
    ]
    causes = cause("slow-rank", 6.0), cause("small-requests", 1.0)

    told = rank_findings(found, judged(*causes), Thresholds())

    assert [one.code for one in told] == ["stragglers", "small-writes", "other"]
    assert [one.cause for one in told] == ["slow-rank", "small-requests", None]


def test_nothing_costs_more_than_i_o_stalls_the_job() -> None:
    told = rank_findings([finding("rank-0-heavy", 15.0)], judged(), Thresholds())

    assert told[0].seconds_at_stake == 10.0


def test_what_costs_next_to_nothing_is_a_note() -> None:
    (told,) = rank_findings([finding("rank-0-heavy", 15.0)], judged(stall=0.1), Thresholds())

    assert told.severity is Severity.INFO


def test_the_bottleneck_that_a_cause_names_stands_under_it() -> None:
    slow = Finding("bottleneck-process", Severity.WARN, Subject("record"), seconds_at_stake=3.0,
                   details=({"process": "rank 2 on node1"},))  # fmt: skip
    other = Finding("bottleneck-process", Severity.WARN, Subject("record"), seconds_at_stake=3.0,
                    details=({"process": "rank 21 on node1"},))  # fmt: skip
    found = judged(cause("slow-rank", 6.0, ranks=[2]))

    ranked = rank_findings([other, slow], found, Thresholds())
    assert [one.cause for one in ranked] == ["slow-rank", None]


@pytest.mark.parametrize("name", ["c_rank0_all_io", "g_straggler_rank2"])
def test_no_finding_of_a_log_is_above_its_stall_time(name: str) -> None:
    insights = ioprism.insights(ioprism.read(DATA / f"{name}.darshan"))

    assert all(
        (one.seconds_at_stake or 0.0) <= insights.verdict.io_stall.seconds
        for one in insights.findings
    )


def test_a_slow_rank_and_the_small_writes_that_slow_it_have_one_cause() -> None:
    insights = ioprism.insights(ioprism.read(DATA / "g_straggler_rank2.darshan"))

    assert insights.verdict.causes[0].culprit["ranks"] == [2]
    serious = [one for one in insights.findings if one.severity in (Severity.HIGH, Severity.WARN)]
    assert {one.code for one in serious[:2]} == {"small-writes", "stragglers"}
    assert {one.cause for one in serious} == {"small-requests"}


def test_calls_that_only_counters_show_stall_the_job_too() -> None:
    """Rank 0 is 0.213 s in I/O by its own clock; extended tracing leaves out its syncs."""
    insights = ioprism.insights(ioprism.read(DATA / "c_rank0_all_io.darshan"))

    assert insights.verdict.io_stall.seconds == pytest.approx(0.2138, rel=0.01)
    ledger = sum(line.seconds for line in insights.verdict.ledger)
    assert ledger == pytest.approx(insights.verdict.io_stall.seconds)


def test_without_a_cause_the_verdict_says_so_and_names_none() -> None:
    verdict = ioprism.report(ioprism.read(DATA / "a_ckpt_fpp_period5s.darshan")).document.verdict

    assert (verdict.status, verdict.first) == ("none", None)
    assert "No cause was found" in verdict.line
