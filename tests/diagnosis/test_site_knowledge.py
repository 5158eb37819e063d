"""A site's ceiling and its servers' load sharpen a verdict without breaking its sums."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ioprism import CallGroup, Cause, Contrast, LedgerLine, Saving, StallTime, Verdict
from ioprism.diagnosis.site_knowledge import check_against_servers, limit_to_rate


def found(*codes: str) -> Verdict:
    causes = tuple(
        Cause(code, {}, Saving(4.0, 3.5, 4.5, 0.04), 0.8, Contrast(code, CallGroup(1)))
        for code in codes
    )
    lines = [*(LedgerLine(code, 4.0) for code in codes), LedgerLine("transfer", 1.0)]
    stall = 4.0 * len(codes) + 1.0
    return Verdict(
        "cause", 100.0, StallTime(stall, stall / 100, None, "phases"), causes=causes,
        ledger=tuple(lines),
    )  # fmt: skip


def total(verdict: Verdict) -> float:
    return sum(line.seconds for line in verdict.ledger)


def test_savings_leave_the_seconds_that_the_bytes_need_at_best() -> None:
    limited = limit_to_rate(found("small-requests", "metadata"), 5.0)

    assert sum(cause.saving.seconds for cause in limited.causes) == pytest.approx(4.0)
    assert total(limited) == pytest.approx(limited.io_stall.seconds)


def test_a_ceiling_that_is_far_away_changes_nothing() -> None:
    before = found("metadata")

    assert limit_to_rate(before, 0.5) == before


def test_uneven_computing_which_costs_no_held_up_time_leaves_the_ledger_whole() -> None:
    nothing = Saving(0.0, 0.0, 0.0, 0.0)
    late = Cause("compute-imbalance", {}, nothing, 0.9, Contrast("", CallGroup(1)))
    before = found("interference", "metadata")
    before = replace(before, causes=(*before.causes, late))

    for after in (check_against_servers(before, {0: 0.5}), limit_to_rate(before, 5.0)):
        assert late in after.causes
        assert "compute-imbalance" not in {line.what for line in after.ledger}
        assert total(after) == pytest.approx(after.io_stall.seconds)


@pytest.mark.parametrize(("load", "kept"), [(2.0, True), (0.5, False)])
def test_interference_is_confirmed_or_taken_back_by_servers(load: float, kept: bool) -> None:
    judged = check_against_servers(found("interference"), {0: load})

    assert bool(judged.causes) == kept
    assert total(judged) == pytest.approx(judged.io_stall.seconds)
    if kept:
        assert judged.causes[0].confidence > 0.9
