"""The findings of all analyses in one list, worst first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ioprism.analyses.bottlenecks.result import Bottleneck, Bottlenecks
from ioprism.analyses.periodicity.results import Rhythm
from ioprism.model.finding import Finding, Severity, Subject
from ioprism.text import printable
from ioprism.units import format_bytes, format_seconds

MOST_BOTTLENECKS = 5
MIN_SHARE = 0.1  # of the job's I/O time; what takes less is in the table alone
LEVELS = tuple(Severity)
GRAVE = ("critical", "very high", "high")


def ranked(
    findings: Iterable[Finding], bottlenecks: Bottlenecks | None, rhythm: Rhythm | None
) -> tuple[Finding, ...]:
    """Join what rules, bottlenecks and rhythm say; by level, then by the seconds at stake."""
    every = [*findings, *_of_bottlenecks(bottlenecks), *_of_rhythm(rhythm)]
    return tuple(
        sorted(every, key=lambda f: (LEVELS.index(f.severity), -(f.seconds_at_stake or 0.0)))
    )


def _of_bottlenecks(found: Bottlenecks | None) -> Iterator[Finding]:
    """The gravest bottlenecks that a rule explains, one for each record."""
    if found is None:
        return
    grave = [
        b
        for b in found.bottlenecks
        if b.label in GRAVE and b.reasons and b.job_share >= MIN_SHARE
    ]
    grave.sort(key=lambda b: (-b.time, len(b.view)))
    told: set[float] = set()
    for bottleneck in grave:
        # Views nest: the same seconds seen as file and as file and time are told once.
        if round(bottleneck.time, 6) not in told and len(told) < MOST_BOTTLENECKS:
            told.add(round(bottleneck.time, 6))
            yield _of_bottleneck(bottleneck)


def _of_bottleneck(found: Bottleneck) -> Finding:
    where = ", ".join(f"{key} {printable(str(value))}" for key, value in found.record.items())
    reasons = "; ".join(dict.fromkeys(reason.message for reason in found.reasons[:3]))
    return Finding(
        code=f"bottleneck-{'-'.join(found.view)}",
        severity=Severity.WARN if found.label in GRAVE[:2] else Severity.INFO,
        subject=Subject("record", where),
        evidence={
            "time_share": found.job_share,
            "operations_share": found.operations_share,
            "operations": found.operations,
            "bytes": float(found.bytes),
        },
        seconds_at_stake=found.time,
        title=f"Bottleneck: {where}: {found.job_share:.0%} of the I/O time for "
        f"{found.operations_share:.0%} of the calls; {reasons}",
        details=({**found.record},),
    )


def _of_rhythm(rhythm: Rhythm | None) -> Iterator[Finding]:
    if rhythm is None or rhythm.period is None:
        return
    period, burst, following = rhythm.period, rhythm.burst, rhythm.next_phase
    amount = f", {format_bytes(burst.bytes)} each time" if burst else ""
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
        title=f"The I/O repeats every {format_seconds(period.seconds)}{amount}",
    )
