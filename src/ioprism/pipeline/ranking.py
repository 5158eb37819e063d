"""The findings of all analyses in one list, worst first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ioprism.analyses.bottlenecks.result import Bottleneck, Bottlenecks
from ioprism.analyses.periodicity.results import Rhythm
from ioprism.model.finding import Finding, Severity, Subject
from ioprism.text import printable
from ioprism.units import format_bytes, format_seconds

MOST_BOTTLENECKS = 5
COSTLY = 0.05  # of the run time above peers: a bottleneck that is more than worth knowing
MIN_SHARE = 0.1  # of the job's I/O time; what takes less is in the table alone
LEVELS = tuple(Severity)


def ranked(
    findings: Iterable[Finding],
    bottlenecks: Bottlenecks | None,
    rhythm: Rhythm | None,
    *,
    direction: str = "both",
    floor: float = 0.0,
) -> tuple[Finding, ...]:
    """Join what rules, bottlenecks and rhythm say; by level, then by the seconds at stake.

    Args:
        findings: what the rules say.
        bottlenecks: all of them; the gravest become findings.
        rhythm: of the bandwidth.
        direction: whose bandwidth it is: read, write or both.
        floor: seconds; what takes less is worth a note at most.
    """
    every = [*findings, *_of_bottlenecks(bottlenecks, floor), *_of_rhythm(rhythm, direction)]
    return tuple(
        sorted(every, key=lambda f: (LEVELS.index(f.severity), -(f.seconds_at_stake or 0.0)))
    )


def _of_bottlenecks(bottlenecks: Bottlenecks | None, floor: float) -> Iterator[Finding]:
    """The costliest bottlenecks, as findings."""
    for bottleneck in bottlenecks.bottlenecks[:MOST_BOTTLENECKS] if bottlenecks is not None else ():
        if bottleneck.time_share >= MIN_SHARE:
            yield _of_bottleneck(bottleneck, floor)


def _of_bottleneck(bottleneck: Bottleneck, floor: float) -> Finding:
    reasons = dict.fromkeys(reason.message for reason in bottleneck.reasons)
    record = dict(bottleneck.record)
    return Finding(
        code=f"bottleneck-{'-'.join(bottleneck.view)}",
        severity=Severity.WARN if bottleneck.excess_seconds >= floor else Severity.INFO,
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


def _of_rhythm(rhythm: Rhythm | None, direction: str) -> Iterator[Finding]:
    if rhythm is None or rhythm.period is None:
        return
    period, burst, following = rhythm.period, rhythm.burst, rhythm.next_phase
    amount = f", {format_bytes(burst.bytes)} each time" if burst else ""
    what = {"read": "reading", "write": "writing"}.get(direction, "I/O")
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
