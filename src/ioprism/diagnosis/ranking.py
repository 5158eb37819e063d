"""The findings of all analyses in one list, worst first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ioprism.diagnosis.limits import MINOR
from ioprism.model.verdict import SERIOUS, Finding, Severity, Subject, Verdict
from ioprism.settings import Thresholds
from ioprism.text import printable
from ioprism.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from ioprism.bottleneck_search.result import Bottleneck, Bottlenecks
    from ioprism.periodicity.results import Periodicity

MOST_BOTTLENECKS = 5
COSTLY = 0.05  # of the run time above peers: a bottleneck that is more than worth knowing
LEVELS = tuple(Severity)


def rank_findings(
    findings: Iterable[Finding], verdict: Verdict, thresholds: Thresholds
) -> tuple[Finding, ...]:
    """Sort findings: those of causes first, the cause that saves most leading.

    No finding costs more than I/O stalls the job, and what then costs next to nothing is worth
    a note at most.
    """
    if verdict.io_stall.basis == "nothing":
        return tuple(sorted(findings, key=_importance))
    order = {code: place for place, code in enumerate(_codes(verdict))}
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


def _codes(verdict: Verdict) -> list[str]:
    return list(dict.fromkeys(cause.code for cause in verdict.causes))


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
    """Join what rules, bottlenecks and periodicity say.

    Args:
        findings: what the rules say.
        bottlenecks: all of them; the gravest become findings.
        periodicity: of the bandwidth.
        floor: seconds; what takes less is worth a note at most.
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
