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
UNTOLD = ("None", "nan")  # the time of calls that counters know without their times
GRAVE = ("critical", "very high", "high")


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


def _of_bottlenecks(found: Bottlenecks | None, floor: float) -> Iterator[Finding]:
    """The gravest bottlenecks that a rule explains, one for each record."""
    if found is None:
        return
    grave = [
        b for b in found.bottlenecks if b.label in GRAVE and b.reasons and b.job_share >= MIN_SHARE
    ]
    grave.sort(key=lambda b: (-b.time, len(b.view)))
    told: set[float] = set()
    for bottleneck in grave:
        # Views nest: the same seconds seen as file and as file and time are told once.
        if round(bottleneck.time, 6) not in told and len(told) < MOST_BOTTLENECKS:
            told.add(round(bottleneck.time, 6))
            yield _of_bottleneck(bottleneck, floor)


def _of_bottleneck(found: Bottleneck, floor: float) -> Finding:
    where = ", ".join(_named(key, value) for key, value in found.record.items())
    reasons = dict.fromkeys(reason.message for reason in found.reasons)
    record = dict(found.record)
    costly = found.label in GRAVE[:2] and found.time >= floor
    return Finding(
        code=f"bottleneck-{'-'.join(found.view)}",
        severity=Severity.WARN if costly else Severity.INFO,
        subject=Subject("record", where),
        evidence={
            "time_share": found.job_share,
            "operations_share": found.operations_share,
            "operations": found.operations,
            "bytes": float(found.bytes),
        },
        seconds_at_stake=found.time,
        title=f"Bottleneck at {where}: {found.job_share:.0%} of the I/O time for "
        f"{found.operations_share:.0%} of the calls",
        details=tuple({**record, "why": reason} for reason in reasons),
    )


def _named(key: str, value: object) -> str:
    if key == "time" and isinstance(value, int | float):
        return f"second {value:g}"
    text = printable(str(value))
    return text if key == "process" else f"{key} {text}"


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
