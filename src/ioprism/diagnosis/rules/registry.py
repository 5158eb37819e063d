"""All rules, and what they find in a job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.limits import MINOR
from ioprism.diagnosis.rank_balance import SlowestRank, slowest_rank
from ioprism.diagnosis.rules import (
    collective,
    interfaces,
    metadata,
    ranks,
    requests,
    storage,
    wording,
)
from ioprism.diagnosis.rules.rule import Hit, Rule, Unknown
from ioprism.model.result import Result, pick
from ioprism.model.verdict import SERIOUS, Finding, NotChecked, Severity, Subject, Verdict
from ioprism.plugins import declared, load
from ioprism.settings import Thresholds
from ioprism.text import printable
from ioprism.units import format_bytes, format_counted, format_seconds

if TYPE_CHECKING:  # a small log is judged without a table library
    import polars as pl

    from ioprism.bottleneck_search.result import Bottleneck, Bottlenecks
    from ioprism.periodicity.results import Periodicity


FAMILIES = (
    requests, metadata, ranks, collective, interfaces, storage,
)  # fmt: skip
RULES: tuple[Rule, ...] = tuple(rule for family in FAMILIES for rule in family.RULES)
GROUP = "ioprism.rules"

LEVELS = tuple(Severity)  # worst first
JUDGEMENT = ("verdict", "io_stall", "causes", "possible", "ledger", "history")


@cache
def all_rules() -> tuple[Rule, ...]:
    """Our own rules, family by family, then those of plug-ins."""
    return (*RULES, *(rule for plugin in declared(GROUP) for rule in load(plugin)))


@dataclass(frozen=True, slots=True)
class RuleAnswers:
    """What the rules find in a job, worst first, and what they could not check."""

    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]
    slowest: SlowestRank | None  # the rank that is longest in I/O calls
    hits: Mapping[str, tuple[Rule, Hit]]  # by code


@dataclass(frozen=True, slots=True, repr=False)
class Insights(Result):
    """The verdict on a job with all findings, those on the calls of a cause first."""

    findings: tuple[Finding, ...]
    verdict: Verdict
    not_checked: tuple[NotChecked, ...] = ()
    slowest: SlowestRank | None = None  # the rank that is longest in I/O calls

    def at_least(self, level: Severity) -> tuple[Finding, ...]:
        """The findings of this level and worse ones."""
        reach = LEVELS.index(level)
        return tuple(f for f in self.findings if LEVELS.index(f.severity) <= reach)

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism insights --json` says."""
        whole = self.verdict.to_dict()
        return {
            "findings": [finding.to_dict() for finding in self.findings],
            "not_checked": [{"code": n.code, "needs": n.needs} for n in self.not_checked],
            "slowest_rank": None
            if self.slowest is None
            else {"seconds": self.slowest.seconds, "rank": self.slowest.rank},
            **{key: whole[key] for key in JUDGEMENT if key in whole},
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row per finding."""
        import polars as pl

        names = ("code", "interface", "title", "seconds_at_stake", "aliases")
        rows = [pick(f, *names) | {"level": f.severity.value} for f in self.findings]
        texts = dict.fromkeys(("code", "level", "interface", "title"), pl.String())
        numbers = {"seconds_at_stake": pl.Float64(), "aliases": pl.List(pl.String())}
        return pl.DataFrame(rows, schema=pl.Schema({**texts, **numbers}))

    def summary(self) -> str:
        """Return the answer in one line."""
        serious = self.at_least(Severity.WARN)
        first = f"; first: {serious[0].title}" if serious else ""
        return (
            f"{format_counted(len(self.findings), 'finding')}, {len(serious)} costing time{first}"
        )


Measure = Callable[[Mapping[str, tuple[Rule, Hit]]], Mapping[str, float]]


def judge(
    evidence: Evidence, rules: Iterable[Rule] | None = None, *, measure: Measure | None = None
) -> RuleAnswers:
    """Ask every rule; findings are ranked by level, then by the seconds at stake.

    Where the trace has single calls, `measure` adds up those that findings are about.
    """
    hits: dict[str, tuple[Rule, Hit]] = {}
    unchecked: list[NotChecked] = []
    for rule in all_rules() if rules is None else rules:
        answer = rule.check(evidence)
        if isinstance(answer, Unknown):
            unchecked.append(NotChecked(rule.code, answer.needs))
        elif answer is not None:
            hits[rule.code] = (rule, answer)
    measured = measure(hits) if measure is not None else {}
    findings = [
        finding_of(rule, hit, evidence, measured.get(code)) for code, (rule, hit) in hits.items()
    ]
    findings.sort(key=lambda f: (LEVELS.index(f.severity), -(f.seconds_at_stake or 0.0), f.code))
    return RuleAnswers(tuple(findings), tuple(unchecked), slowest_rank(evidence), hits)


FLOOR = ("negligible_share", "negligible_seconds")


def finding_of(rule: Rule, hit: Hit, evidence: Evidence, measured: float | None = None) -> Finding:
    """Say what a rule has found; `measured` is the time of its calls, where they are known."""
    thresholds = evidence.thresholds
    limits = {name: float(getattr(thresholds, name)) for name in rule.thresholds}
    title = wording.title(
        rule.advice, {**limits, **hit.evidence}, direction=rule.direction, words=hit.words
    )
    seconds = hit.seconds if measured is None else measured
    slowest = slowest_rank(evidence)
    if rule.level is Severity.OK:  # what is fine costs nothing
        seconds = None
    elif seconds is not None and slowest is not None:
        seconds = min(seconds, slowest.seconds)
    level = rule.level
    if level in SERIOUS and seconds is not None:
        limits |= {name: float(getattr(thresholds, name)) for name in FLOOR}
        level = Severity.INFO if evidence.negligible(seconds) else level
    estimated = hit.of_calls and measured is None and seconds
    return Finding(
        rule.code,
        level,
        hit.subject,
        {**hit.evidence, **({"estimated": 1.0} if estimated else {})},
        limits,
        seconds,
        hit.interface or rule.interface,
        rule.aliases,
        title,
        tuple(hit.details),
        wording.recommendations(rule.advice, evidence, hit.files, direction=rule.direction),
    )


MOST_BOTTLENECKS = 5
COSTLY = 0.05  # of the run time above peers: a bottleneck that is more than worth knowing


def rank_findings(
    findings: Iterable[Finding], verdict: Verdict, thresholds: Thresholds
) -> tuple[Finding, ...]:
    """Sort findings: those of causes first, the cause that saves most leading.

    No finding costs more than I/O stalls the job, and what then costs next to nothing is worth
    a note at most.
    """
    if verdict.io_stall.basis == "nothing":
        return tuple(sorted(findings, key=_importance))
    order = {cause.code: place for place, cause in reversed([*enumerate(verdict.causes)])}
    bounded = [_bound_seconds(_with_cause(f, verdict), verdict, thresholds) for f in findings]
    last = len(order)
    return tuple(
        sorted(
            bounded,
            key=lambda f: (
                f.severity not in SERIOUS,
                order.get(f.cause or "", last) if f.severity in SERIOUS else last,
                _importance(f),
            ),
        )
    )


def _importance(finding: Finding) -> tuple[int, float, int, str]:
    """Serious ones by what they cost, those that cost about the same by level; notes by level."""
    level, seconds = LEVELS.index(finding.severity), finding.seconds_at_stake or 0.0
    about = float(f"{seconds:.2g}")
    return (0 if finding.severity in SERIOUS else level), -about, level, finding.code


def _with_cause(finding: Finding, verdict: Verdict) -> Finding:
    """Put a bottleneck below the cause that names its record."""
    if finding.cause is not None or not finding.code.startswith("bottleneck-"):
        return finding
    record = finding.details[0]
    causes = (c.code for c in verdict.causes if _is_culprit(record, c.culprit))
    return replace(finding, cause=next(causes, None))


def _is_culprit(record: Mapping[str, object], culprit: Mapping[str, Any]) -> bool:
    """Whether a record of a view is the one that a cause names."""
    if any(record.get(key) == culprit[key] for key in ("file", "directory") if culprit.get(key)):
        return True
    process = str(record.get("process", ""))
    if culprit.get("host") and process.endswith(f" on {culprit['host']}"):
        return True
    return any(f"{process} ".startswith(f"rank {rank} ") for rank in culprit.get("ranks", ()))


def _bound_seconds(finding: Finding, verdict: Verdict, thresholds: Thresholds) -> Finding:
    if finding.seconds_at_stake is None:
        return finding
    seconds = min(finding.seconds_at_stake, verdict.io_stall.seconds)
    floor = max(thresholds.negligible_share * verdict.runtime, thresholds.negligible_seconds)
    minor = finding.severity in SERIOUS and seconds < floor
    level = Severity.INFO if minor else finding.severity
    return replace(finding, seconds_at_stake=seconds, severity=level)


def rank_all(
    findings: Iterable[Finding],
    bottlenecks: Bottlenecks | None,
    periodicity: Periodicity | None,
    *,
    floor: float = 0.0,
) -> tuple[Finding, ...]:
    """Join what rules, the gravest bottlenecks and the periodicity of the bandwidth say.

    A bottleneck that takes less than `floor` seconds is worth a note at most.
    """
    return (*findings, *_of_bottlenecks(bottlenecks, floor), *_of_periodicity(periodicity))


def _of_bottlenecks(bottlenecks: Bottlenecks | None, floor: float) -> Iterator[Finding]:
    """The costliest bottlenecks, as findings."""
    for bottleneck in bottlenecks.bottlenecks[:MOST_BOTTLENECKS] if bottlenecks is not None else ():
        if bottleneck.time_share >= MINOR:
            yield _of_bottleneck(bottleneck, floor)


def _of_bottleneck(bottleneck: Bottleneck, floor: float) -> Finding:
    reasons = dict.fromkeys(reason.message for reason in bottleneck.reasons)
    # Only where peers do the same calls is the time known to be lost; else it says where it is.
    costly = bottleneck.peers.get("same_work") and bottleneck.excess_seconds >= floor
    record = dict(bottleneck.record)
    return Finding(
        code=f"bottleneck-{'-'.join(bottleneck.view)}",
        severity=Severity.WARN if costly else Severity.INFO,
        subject=Subject("record", ", ".join(printable(str(name)) for name in record.values())),
        evidence={
            "time_share": bottleneck.time_share,
            "operations_share": bottleneck.operations_share,
            "operations": bottleneck.operations,
            "bytes": float(bottleneck.bytes),
        },
        seconds_at_stake=bottleneck.excess_seconds,
        title=bottleneck.title.partition(": ")[0],
        details=tuple({**record, "why": reason} for reason in reasons) or (record,),
    )


def _of_periodicity(periodicity: Periodicity | None) -> Iterator[Finding]:
    if periodicity is None or periodicity.period is None:
        return
    period, burst, following = periodicity.period, periodicity.burst, periodicity.next_phase
    amount = f", {format_bytes(burst.bytes)} each time" if burst else ""
    what = {"read": "reading", "write": "writing"}.get(periodicity.direction, "I/O")
    evidence = {
        "period": period.seconds,
        "false_alarm_probability": period.false_alarm_probability,
        "repetitions": float(period.repetitions),
    }
    if following is not None:
        evidence["next_start"] = following.start
    yield Finding(
        code="periodic-io",
        severity=Severity.INFO,
        subject=Subject("job"),
        evidence=evidence,
        title=f"The {what} repeats every {format_seconds(period.seconds)}{amount}",
    )
