"""A job judged by what its site knows: other jobs' rates, and its own earlier runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from ioprism.characteristics.totals import characterise
from ioprism.diagnosis.achieved_rates import achieved_rates
from ioprism.diagnosis.judge import Judgement
from ioprism.diagnosis.limits import Limits
from ioprism.diagnosis.rows import Flags
from ioprism.diagnosis.site_knowledge import rebook, scale
from ioprism.engine.base import Engine
from ioprism.model.history import AchievedRate, HistoryDecision
from ioprism.model.trace import Trace
from ioprism.model.verdict import (
    CallGroup,
    Cause,
    Contrast,
    Possible,
    Saving,
    Verdict,
    core_hours,
)
from ioprism.site.job_rows import run_facts
from ioprism.site.own_runs import own_history
from ioprism.site.store import open_site
from ioprism.site.twins import OthersRates, TwinSaving
from ioprism.units import format_counted, format_rate, format_seconds

# Causes whose fix lets the same bytes move at a higher rate; others save bytes, calls or waiting.
RATE_CAUSES = frozenset({
    "small-requests", "few-targets", "few-aggregators", "hot-target", "random-access",
    "misalignment", "shared-file-contention", "serial-io", "data-imbalance",
})  # fmt: skip
CONFIDENCE = 0.9  # in a cause that the log allows and all comparable jobs confirm


@dataclass(frozen=True, slots=True, eq=False)
class SiteHistory:
    """The tables of a site store that one job is judged by."""

    jobs: pl.DataFrame
    rates: pl.DataFrame

    def judge(self, judgement: Judgement, trace: Trace, engine: Engine) -> Judgement:
        """Return the judgement with what other jobs reached, and the run's own history."""
        verdict, observed = judgement.verdict, judgement.observed
        facts = run_facts(trace, verdict, characterise(trace, engine))
        known = self.without_run(facts)
        rows = [] if observed is None else achieved_rates(observed, trace.job.mounts)
        decided = CauseDecisions(verdict, OthersRates(known.rates), rows, trace.population.ranks)
        whole = decided.run()
        history = own_history(facts, rows, known.jobs, known.rates)
        texts = tuple(decision.text for decision in decided.decisions)
        history = replace(
            history,
            lines=(*history.lines, *texts),
            reached=tuple(decided.others.reached(rows)),
            decisions=tuple(decided.decisions),
        )
        return _with_claims(replace(judgement, verdict=replace(whole, history=history)))

    def without_run(self, facts: Mapping[str, Any]) -> SiteHistory:
        """Leave out this run itself: the same program, length, ranks and bytes."""
        same = pl.lit(True)
        for name in ("application", "start", "runtime", "ranks", "bytes_read", "bytes_written"):
            same &= pl.col(name).eq_missing(pl.lit(facts[name]))
        others = self.jobs.filter(~same)
        left = self.jobs.height - others.height
        rates = self.rates.join(others.select("job"), on="job", how="semi") if left else self.rates
        return SiteHistory(others, rates)


def open_history(folder: Path) -> SiteHistory:
    """Open a site store to judge jobs by it.

    Raises:
        BrokenTraceError: the folder is not a site store, or a damaged one.
    """
    store = open_site(folder)
    return SiteHistory(store.table("jobs"), store.table("rates"))


class CauseDecisions:
    """Goes through the causes of a verdict, and notes what others' rates decide about each."""

    def __init__(
        self, verdict: Verdict, others: OthersRates, rows: Sequence[AchievedRate], ranks: int | None
    ) -> None:
        self.verdict, self.others, self.rows, self.ranks = verdict, others, rows, ranks
        self.decisions: list[HistoryDecision] = []
        limits = Limits()
        self.least = max(limits.min_share * verdict.runtime, limits.min_seconds)
        self.noise = limits.run_noise
        self.stall = verdict.io_stall.seconds
        # Ranks also wait inside libraries and for each other: seconds per second of requests.
        self.waiting = max(1.0, self.stall / max(1e-9, sum(row.seconds for row in rows)))

    def run(self) -> Verdict:
        """Return the verdict with causes proven, bounded or ruled out."""
        if not self.rows:
            return self.verdict
        verdict = self._below_best_rate(self.verdict)
        causes = [one for cause in verdict.causes if (one := self._bound(cause)) is not None]
        possible = []
        for undecided in verdict.possible:
            decided = self._decide(undecided, taken=sum(c.saving.seconds for c in causes))
            if isinstance(decided, Cause):
                causes.append(decided)
            elif decided is not None:
                possible.append(decided)
        causes.sort(key=lambda cause: -cause.saving.seconds)
        possible.sort(key=lambda one: -one.upper)
        return rebook(replace(verdict, possible=tuple(possible)), tuple(causes), "transfer")

    def _below_best_rate(self, verdict: Verdict) -> Verdict:
        """Cut savings that need a rate which no comparable job has reached."""
        allowed = self.others.room(self.rows, self.ranks or 1)
        if allowed is None:
            return verdict
        room, jobs = allowed
        saved = sum(c.saving.seconds for c in verdict.causes if c.code in RATE_CAUSES)
        factor = min(1.0, room / saved) if saved > 0 else 1.0
        scaled = (scale(c, factor) if c.code in RATE_CAUSES else c for c in verdict.causes)
        causes = tuple(c for c in scaled if c.saving.seconds > self.least or not c.saving.high)
        possible = tuple(
            replace(one, upper=min(one.upper, room)) if one.code in RATE_CAUSES else one
            for one in verdict.possible
        )
        kept = tuple(one for one in possible if one.upper > self.least)
        left = _codes(causes) | _codes(kept)
        for code in _codes(verdict.causes) | _codes(verdict.possible):
            if code not in left:
                self._rule_out(code, jobs, _best_rate(code, jobs))
        return rebook(replace(verdict, possible=kept), causes, "transfer")

    def _bound(self, cause: Cause) -> Cause | None:
        """Return a cause of the log with the saving that others' rates allow."""
        if cause.code == "small-requests":
            twin = self._larger_requests(cause.facts)
            twin = None if twin is None else twin.scale(self.waiting)
            if twin is not None and twin.high <= self.least:
                self._rule_out(cause.code, twin.jobs, _no_faster(twin))
                return None
            if twin is not None and cause.saving.seconds > twin.high:
                self._note(cause.code, "bounded", twin.jobs, twin.seconds, _faster(twin))
                return self._with_saving(cause, twin)
        if cause.code == "few-targets":
            allowed = self.others.more_targets(self.rows)
            if allowed is not None and self._is_noise(allowed[0]):
                self._rule_out(cause.code, allowed[1], _same_rate(allowed[1]))
                return None
        return cause

    def _decide(self, one: Possible, *, taken: float) -> Cause | Possible | None:
        """Return a possible cause as a cause, with a bound, or None where it is ruled out."""
        facts = one.culprit.get("facts", {})
        if one.code == "small-requests":
            twin = self._larger_requests(facts)
            if twin is None:
                room = self.others.room(self.rows, self.ranks or 1, facts.get("direction"))
                return one if room is None else self._up_to(one, room[0])
            if twin.low > self.least:
                self._note(one.code, "cause", twin.jobs, twin.seconds, _faster(twin))
                return self._cause(one, twin, self.stall - taken)
            if twin.is_noise:
                self._rule_out(one.code, twin.jobs, _no_faster(twin))
                return None
            return self._up_to(one, twin.high)
        if one.code == "few-targets":
            allowed = self.others.more_targets(self.rows)
            if allowed is None:
                return one
            if self._is_noise(allowed[0]):
                self._rule_out(one.code, allowed[1], _same_rate(allowed[1]))
                return None
            return self._up_to(one, allowed[0])
        return one

    def _larger_requests(self, facts: Mapping[str, Any]) -> TwinSaving | None:
        direction = facts.get("direction")
        return None if direction is None else self.others.larger_requests(self.rows, direction)

    def _is_noise(self, seconds: float) -> bool:
        """Whether a saving is less than what runs of one program differ by."""
        return seconds <= max(self.least, self.noise * self.stall)

    def _up_to(self, one: Possible, seconds: float) -> Possible | None:
        upper = min(one.upper, seconds)
        return replace(one, upper=upper) if upper > self.least else None

    def _rule_out(self, code: str, jobs: int, text: str) -> None:
        self._note(code, "ruled-out", jobs, 0.0, text)

    def _note(self, code: str, decision: str, jobs: int, seconds: float, text: str) -> None:
        self.decisions.append(HistoryDecision(code, decision, jobs, seconds, text))

    def _with_saving(self, cause: Cause, twin: TwinSaving) -> Cause:
        runtime = self.verdict.runtime
        share = twin.seconds / runtime if runtime > 0 else 0.0
        saving = Saving(twin.seconds, min(cause.saving.low, twin.low), twin.high, share)
        return replace(cause, saving=saving, core_hours=core_hours(twin.seconds, self.ranks))

    def _cause(self, one: Possible, twin: TwinSaving, left: float) -> Cause:
        """Return a possible cause as one, with the saving that its twins show."""
        facts = dict(one.culprit.get("facts", {}))
        culprit = {key: value for key, value in one.culprit.items() if key != "facts"}
        direction = facts["direction"]
        mine = max((r for r in self.rows if r.operation == direction), key=lambda r: r.seconds)
        seconds = min(twin.seconds, left)
        runtime = self.verdict.runtime
        return Cause(
            code=one.code,
            culprit=culprit,
            saving=Saving(
                seconds,
                min(twin.low, seconds),
                min(twin.high, left),
                seconds / runtime if runtime > 0 else 0.0,
            ),
            confidence=CONFIDENCE,
            contrast=Contrast(
                one.code,
                CallGroup(mine.requests, mine.bytes, rate=twin.rate),
                CallGroup(twin.jobs, rate=twin.others),
            ),
            core_hours=core_hours(seconds, self.ranks),
            facts=facts,
        )


def _codes(entries: Iterable[Cause | Possible]) -> dict[str, None]:
    return dict.fromkeys(one.code for one in entries)


def _with_claims(judgement: Judgement) -> Judgement:
    """Let findings be folded below causes that only the history proves."""
    attribution = judgement.attribution
    if attribution is None:
        return judgement
    claims: dict[str, Flags] = dict(attribution.undecided)
    claims |= zip((c.code for c in attribution.causes), attribution.claimed, strict=True)
    kept = [cause for cause in judgement.verdict.causes if cause.code in claims]
    return replace(
        judgement,
        attribution=replace(
            attribution, causes=tuple(kept), claimed=tuple(claims[c.code] for c in kept)
        ),
    )


def _faster(twin: TwinSaving) -> str:
    jobs = format_counted(twin.jobs, "comparable job")
    return (
        f"{jobs} with large requests reached {format_rate(twin.others)} on this file system, "
        f"this run {format_rate(twin.rate)}: larger requests would save "
        f"{format_seconds(twin.seconds)}."
    )


def _no_faster(twin: TwinSaving) -> str:
    jobs = format_counted(twin.jobs, "comparable job")
    return (
        f"Small requests are ruled out as a cause: {jobs} with large requests reached "
        f"{format_rate(twin.others)} on this file system, this run {format_rate(twin.rate)}."
    )


def _best_rate(code: str, jobs: int) -> str:
    return (
        f"{code} is ruled out as a cause: none of {format_counted(jobs, 'comparable job')} "
        "moved as many bytes faster on this file system."
    )


def _same_rate(jobs: int) -> str:
    return (
        "Few storage targets are ruled out as a cause: "
        f"{format_counted(jobs, 'comparable job')} on more targets reached the same rate."
    )
