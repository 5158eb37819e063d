"""A job judged by what its site knows: other jobs' rates, and its own earlier runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ioprism.characteristics.totals import characterise
from ioprism.diagnosis.limits import Limits
from ioprism.diagnosis.observed import achieved_rates
from ioprism.diagnosis.rows import Flags, Floats
from ioprism.diagnosis.site_knowledge import rebook, scale
from ioprism.diagnosis.steps import Judgement
from ioprism.diagnosis.wording import texts
from ioprism.engine.base import Engine
from ioprism.model.arrays import MAD_TO_DEVIATION
from ioprism.model.trace import MIB, Trace
from ioprism.model.verdict import (
    AchievedRate,
    CallGroup,
    Cause,
    Contrast,
    History,
    HistoryDecision,
    MetricHistory,
    Possible,
    Saving,
    Verdict,
    core_hours,
)
from ioprism.site import limits
from ioprism.site.events import HABITS, find_change
from ioprism.site.job_rows import run_facts
from ioprism.site.store import open_site
from ioprism.site.twins import OthersRates, TwinSaving
from ioprism.text import printable
from ioprism.units import format_amount, format_bytes, format_counted, format_rate, format_seconds

MAX_POINTS = 200  # earlier runs that a chart shows: the latest

METRICS = (  # column, name in a sentence, unit
    ("runtime", "run time", "s"),
    ("io_stall", "I/O stall time", "s"),
    ("rate", "rate of reads and writes", "B/s"),
    ("request_bytes", "request size", "B"),
    ("operations", "number of reads and writes", "count"),
    ("metadata", "number of metadata calls", "count"),
    ("files", "number of files", "count"),
    ("stripe_count", "stripe count", "count"),
    ("collective", "share of collective calls", "share"),
)
SLOWNESS = ("runtime", "io_stall")


def own_history(
    facts: Mapping[str, Any], rows: Sequence[AchievedRate], jobs: pl.DataFrame, rates: pl.DataFrame
) -> History:
    """Compare a run with the earlier ones of its program at similar scale.

    `facts` are those of the run in the table `jobs`, `rows` the ways in which it moves data;
    `jobs` and `rates` are of all other jobs of the site.
    """
    earlier = earlier_runs(facts, jobs)
    since = float(earlier["start"][0]) if earlier.height else None
    program = None if facts["application"] is None else printable(str(facts["application"]))
    if earlier.height < limits.MIN_RUNS:
        return History(program, earlier.height, since)
    metrics = {
        column: _metric(name, unit, float(facts[column]), earlier.drop_nulls(column), column)
        for column, name, unit in METRICS
        if facts[column] is not None and earlier[column].count() >= limits.MIN_RUNS
    }
    lines = [*_slowness(metrics, earlier), *_habits(facts, rows, metrics, earlier, rates)]
    return History(program, earlier.height, since, tuple(lines), tuple(metrics.values()))


def earlier_runs(facts: Mapping[str, Any], jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the earlier runs of the same program with similar ranks and bytes, oldest first."""
    if facts["application"] is None or facts["start"] is None:
        return jobs.clear()
    moved = facts["bytes_read"] + facts["bytes_written"]
    total = pl.col("bytes_read") + pl.col("bytes_written")
    return jobs.filter(
        (pl.col("application") == facts["application"])
        & (pl.col("start") < facts["start"])
        & _near(pl.col("ranks"), facts["ranks"])
        & _near(total, moved)
    ).sort("start")


def _near(column: pl.Expr, value: float) -> pl.Expr:
    return column.is_between(value / limits.SIMILAR_SCALE, value * limits.SIMILAR_SCALE)


def _metric(
    name: str, unit: str, value: float, earlier: pl.DataFrame, column: str
) -> MetricHistory:
    numbers = earlier[column].cast(pl.Float64).to_numpy()
    low, middle, high = (
        float(x) for x in np.quantile(numbers, (limits.TENTH, 0.5, 1 - limits.TENTH))
    )
    latest = earlier.select("start", pl.col(column).cast(pl.Float64)).tail(MAX_POINTS)
    return MetricHistory(
        name=name,
        unit=unit,
        value=value,
        median=middle,
        lower_tenth=low,
        upper_tenth=high,
        above=int((numbers < value).sum()),
        unusual=_is_unusual(value, numbers, is_share=unit == "share"),
        earlier=tuple(latest.iter_rows()),
    )


def _is_unusual(value: float, numbers: Floats, *, is_share: bool) -> bool:
    """Whether a number is far from the earlier ones, and beyond most of them."""
    beyond = max(float((numbers < value).mean()), float((numbers > value).mean()))
    if beyond < limits.SURPASSED:
        return False
    if is_share:
        here, there, least = value, numbers, limits.CHANGED_SHARE
    else:
        here, there, least = (
            math.log1p(max(0.0, value)),
            np.log1p(numbers),
            math.log(limits.CHANGED),
        )
    middle = float(np.median(there))
    spread = MAD_TO_DEVIATION * float(np.median(np.abs(there - middle)))
    return abs(here - middle) > max(least, limits.DEVIATIONS * spread)


def _slowness(metrics: Mapping[str, MetricHistory], earlier: pl.DataFrame) -> Iterator[str]:
    """Say whether the run, or its I/O, takes unusually long or short."""
    for column in SLOWNESS:
        metric = metrics.get(column)
        if metric is None or not metric.unusual:
            continue
        longer = metric.value > metric.median
        count = metric.above if longer else earlier.height - metric.above
        runs = format_counted(earlier.height, "earlier run")
        usual = format_seconds(metric.median)
        yield (
            f"{'Slower' if longer else 'Faster'} than {count:,} of its {runs} since "
            f"{_day(earlier['start'][0])}: {metric.name} {format_seconds(metric.value)}, "
            f"usually {usual}."
        )
        return  # a longer stall makes the run longer: one sentence says both


def _habits(
    facts: Mapping[str, Any],
    rows: Sequence[AchievedRate],
    metrics: Mapping[str, MetricHistory],
    earlier: pl.DataFrame,
    rates: pl.DataFrame,
) -> Iterator[str]:
    """Say what the program does otherwise than before, in this run or since a date."""
    new = list(_new_sizes(rows, earlier, rates))
    yield from new
    for column, is_share in HABITS:
        metric = metrics.get(column)
        if metric is None or (new and column in ("request_bytes", "operations")):
            continue
        changed = _changed_since(facts, earlier, column, is_share=is_share)
        if changed is not None:
            yield changed
        elif metric.unusual:
            yield (
                f"New in this run: {metric.name} {format_amount(metric.value, metric.unit)}, "
                f"usually {format_amount(metric.median, metric.unit)}."
            )


def _new_sizes(
    rows: Sequence[AchievedRate], earlier: pl.DataFrame, rates: pl.DataFrame
) -> Iterator[str]:
    """Request sizes that no earlier run had in this operation."""
    before = rates.join(earlier.select("job"), on="job", how="semi").with_columns(
        size=pl.col("bytes") / pl.col("requests")
    )
    for operation in ("read", "write"):
        past = before.filter((pl.col("operation") == operation) & (pl.col("bytes") >= MIB))
        mine = [row for row in rows if row.operation == operation and row.bytes >= MIB]
        if past["job"].n_unique() < limits.MIN_RUNS:
            continue
        known, requests = past["size"].to_numpy(), sum(row.requests for row in mine)
        seconds = sum(row.seconds for row in mine)
        for row in mine:
            main = row.requests >= limits.TENTH * requests or row.seconds >= limits.TENTH * seconds
            ratio = np.maximum(known / row.request_bytes, row.request_bytes / known)
            if main and float(ratio.min()) >= limits.LARGER:
                yield (
                    f"{operation.capitalize()}s of {format_bytes(row.request_bytes)} are new: "
                    f"earlier runs {'wrote' if operation == 'write' else 'read'} "
                    f"{format_bytes(float(np.median(known)))} at a time."
                )


def _changed_since(
    facts: Mapping[str, Any], earlier: pl.DataFrame, column: str, *, is_share: bool
) -> str | None:
    """Say that a number changed for good some runs ago, this run being one of the later ones."""
    names = ["start", column, "ranks", "bytes_read", "bytes_written"]
    this = pl.DataFrame({name: [facts[name]] for name in names}, schema_overrides={
        name: earlier.schema[name] for name in names})  # fmt: skip
    series = pl.concat([earlier.select(names), this])
    alike = np.zeros(series.height, np.int64)  # they are of similar scale already
    change = find_change(series, column, alike, is_share=is_share, tried=len(HABITS))
    if change is None:
        return None
    title, unit = next((name, unit) for key, name, unit in METRICS if key == column)
    before, after = (
        format_amount(float(part[column].drop_nulls().median() or 0.0), unit)  # type: ignore[arg-type]
        for part in (series[: change.place], series[change.place :])
    )
    runs = format_counted(series.height - change.place, "run")
    day = _day(series["start"][change.place])
    return f"Since {day} ({runs}), {title} is {after}; before, it was {before}."


def _day(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment.day} {moment:%B %Y}"


# Causes whose fix lets the same bytes move at a higher rate; others save bytes, calls or waiting.
RATE_CAUSES = frozenset({
    "small-requests", "few-targets", "few-aggregators", "hot-target", "random-access",
    "misalignment", "shared-file-contention", "serial-io", "data-imbalance",
})  # fmt: skip


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
        judging = Limits()
        self.least = max(judging.min_share * verdict.runtime, judging.min_seconds)
        self.noise = judging.run_noise
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
                comparable = format_counted(jobs, "comparable job")
                text = f"None of {comparable} moved as many bytes faster on this file system."
                self._rule_out(code, jobs, text)
        return rebook(replace(verdict, possible=kept), causes, "transfer")

    def _bound(self, cause: Cause) -> Cause | None:
        """Return a cause of the log with the saving that others' rates allow."""
        twin = self._larger_requests(cause.code, cause.facts)
        if twin is not None:
            twin = twin.scale(self.waiting)
            if twin.high <= self.least:
                self._rule_out(cause.code, twin.jobs, _rates_reached(twin))
                return None
            if cause.saving.seconds > twin.high:
                self._note(cause.code, "bounded", twin.jobs, twin.seconds, _faster(twin))
                low = min(cause.saving.low, twin.low)
                return replace(
                    cause,
                    saving=self._saving(twin.seconds, low, twin.high),
                    core_hours=core_hours(twin.seconds, self.ranks),
                )
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
            twin = self._larger_requests(one.code, facts)
            if twin is None:
                room = self.others.room(self.rows, self.ranks or 1, facts.get("direction"))
                return one if room is None else self._up_to(one, room[0])
            if twin.low > self.least:
                self._note(one.code, "cause", twin.jobs, twin.seconds, _faster(twin))
                return self._cause(one, twin, self.stall - taken)
            if twin.is_noise:
                self._rule_out(one.code, twin.jobs, _rates_reached(twin))
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

    def _larger_requests(self, code: str, facts: Mapping[str, Any]) -> TwinSaving | None:
        direction = facts.get("direction") if code == "small-requests" else None
        return None if direction is None else self.others.larger_requests(self.rows, direction)

    def _is_noise(self, seconds: float) -> bool:
        """Whether a saving is less than what runs of one program differ by."""
        return seconds <= max(self.least, self.noise * self.stall)

    def _up_to(self, one: Possible, seconds: float) -> Possible | None:
        upper = min(one.upper, seconds)
        return replace(one, upper=upper) if upper > self.least else None

    def _rule_out(self, code: str, jobs: int, text: str) -> None:
        noun = texts(code)["noun"]
        self._note(code, "ruled-out", jobs, 0.0, f"Ruled out as a cause: {noun}. {text}")

    def _note(self, code: str, decision: str, jobs: int, seconds: float, text: str) -> None:
        self.decisions.append(HistoryDecision(code, decision, jobs, seconds, text))

    def _saving(self, seconds: float, low: float, high: float) -> Saving:
        runtime = self.verdict.runtime
        return Saving(seconds, low, high, seconds / runtime if runtime > 0 else 0.0)

    def _cause(self, one: Possible, twin: TwinSaving, left: float) -> Cause:
        """Return a possible cause as one, with the saving that its twins show."""
        facts = dict(one.culprit.get("facts", {}))
        culprit = {key: value for key, value in one.culprit.items() if key != "facts"}
        direction = facts["direction"]
        mine = max((r for r in self.rows if r.operation == direction), key=lambda r: r.seconds)
        seconds = min(twin.seconds, left)
        return Cause(
            code=one.code,
            culprit=culprit,
            saving=self._saving(seconds, min(twin.low, seconds), min(twin.high, left)),
            confidence=limits.CONFIDENCE,
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
    kept = tuple(cause for cause in judgement.verdict.causes if cause.code in claims)
    claimed = tuple(claims[cause.code] for cause in kept)
    return replace(judgement, attribution=replace(attribution, causes=kept, claimed=claimed))


def _rates_reached(twin: TwinSaving) -> str:
    jobs = format_counted(twin.jobs, "comparable job")
    return (
        f"{jobs} with large requests reached {format_rate(twin.others)} on this file system, "
        f"this run {format_rate(twin.rate)}."
    )


def _faster(twin: TwinSaving) -> str:
    saved = format_seconds(twin.seconds)
    return f"{_rates_reached(twin)[:-1]}: larger requests would save {saved}."


def _same_rate(jobs: int) -> str:
    return f"{format_counted(jobs, 'comparable job')} on more targets reached the same rate."
