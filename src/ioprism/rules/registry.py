"""All rules, and what they find in a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ioprism.analyses.evidence import Evidence
from ioprism.model.finding import Finding, Severity
from ioprism.model.result import Result
from ioprism.rules import (
    collective,
    file_balance,
    interfaces,
    libraries,
    metadata,
    ranks,
    requests,
    storage,
    time,
    wording,
)
from ioprism.rules.rule import Hit, Rule, Unknown

if TYPE_CHECKING:  # a small log is judged without a table library
    import polars as pl

FAMILIES = (
    requests, metadata, ranks, file_balance, collective, libraries, interfaces, time, storage,
)  # fmt: skip
RULES: tuple[Rule, ...] = tuple(rule for family in FAMILIES for rule in family.RULES)

LEVELS = tuple(Severity)  # worst first


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A rule that the trace has too little detail for."""

    code: str
    needs: str


@dataclass(frozen=True, slots=True, repr=False)
class Insights(Result):
    """What was found in a job, worst first, and what could not be checked."""

    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...] = ()

    def at_least(self, level: Severity) -> tuple[Finding, ...]:
        """The findings of this level and worse ones."""
        reach = LEVELS.index(level)
        return tuple(f for f in self.findings if LEVELS.index(f.severity) <= reach)

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism insights --json` says."""
        return {
            "findings": [finding.to_dict() for finding in self.findings],
            "not_checked": [{"code": n.code, "needs": n.needs} for n in self.not_checked],
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row per finding."""
        import polars as pl

        rows = [
            (f.code, f.severity.value, f.interface, f.title, f.seconds_at_stake, list(f.aliases))
            for f in self.findings
        ]
        schema = pl.Schema(
            {
                "code": pl.String(),
                "level": pl.String(),
                "interface": pl.String(),
                "title": pl.String(),
                "seconds_at_stake": pl.Float64(),
                "aliases": pl.List(pl.String()),
            }
        )
        return pl.DataFrame(rows, schema=schema, orient="row")

    def summary(self) -> str:
        """Return the answer in one line."""
        serious = self.at_least(Severity.WARN)
        first = f"; first: {serious[0].title}" if serious else ""
        return f"{len(self.findings)} findings, {len(serious)} that cost time{first}"


def judge(evidence: Evidence, rules: Iterable[Rule] = RULES) -> Insights:
    """Ask every rule; findings are ranked by level, then by the seconds at stake."""
    findings: list[Finding] = []
    unchecked: list[NotChecked] = []
    for rule in rules:
        answer = rule.check(evidence)
        if isinstance(answer, Unknown):
            unchecked.append(NotChecked(rule.code, answer.needs))
        elif answer is not None:
            findings.append(finding_of(rule, answer, evidence))
    findings.sort(key=lambda f: (LEVELS.index(f.severity), -(f.seconds_at_stake or 0.0), f.code))
    return Insights(tuple(findings), tuple(unchecked))


def finding_of(rule: Rule, hit: Hit, evidence: Evidence) -> Finding:
    """Say what a rule has found."""
    limits = {name: float(getattr(evidence.thresholds, name)) for name in rule.thresholds}
    numbers = {**limits, **hit.evidence}
    level = _level(rule, hit, evidence)
    return Finding(
        rule.code,
        level,
        hit.subject,
        dict(hit.evidence),
        _with_floor(limits, rule, hit, evidence),
        hit.seconds,
        hit.interface or rule.interface,
        rule.aliases,
        wording.title(rule.advice, numbers, direction=rule.direction, words=hit.words),
        tuple(hit.details),
        wording.recommendations(rule.advice, evidence, hit.files, direction=rule.direction),
    )


def _level(rule: Rule, hit: Hit, evidence: Evidence) -> Severity:
    """Nothing is high, or a warning, when next to no time is at stake."""
    serious = rule.level in (Severity.HIGH, Severity.WARN)
    if serious and hit.seconds is not None and evidence.negligible(hit.seconds):
        return Severity.INFO
    return rule.level


def _with_floor(
    limits: Mapping[str, float], rule: Rule, hit: Hit, evidence: Evidence
) -> dict[str, float]:
    if rule.level not in (Severity.HIGH, Severity.WARN) or hit.seconds is None:
        return dict(limits)
    floor = {
        name: float(getattr(evidence.thresholds, name))
        for name in ("negligible_share", "negligible_seconds")
    }
    return {**limits, **floor}
