"""Sentences about a job for people: the verdict, and what one wants to know first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ioprism.records import dataclass
from ioprism.reports.to_terminal.diagnose import MOSTLY, answer, held_up_line, is_mostly
from ioprism.text import printable
from ioprism.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:  # they load table libraries, which the text of small answers does without
    from ioprism.analyses.characterise import Characteristics
    from ioprism.analyses.diagnosis.result import Diagnosis
    from ioprism.analyses.slowest_rank import SlowestRank
    from ioprism.model.finding import Finding
    from ioprism.pipeline.document import Document

NEXT_TO_NOTHING = 0.0005  # of the run time


@dataclass(frozen=True, slots=True)
class Verdict:
    """The job in a line, and what to do first."""

    line: str
    first: str | None


def verdict(document: Document) -> Verdict:
    """Say how much of the time goes to I/O, what costs most, and what to do about it."""
    characteristics = document.characteristics
    if not characteristics.total.operations and not characteristics.io_time:
        if document.rhythm is not None and document.findings:
            return Verdict(document.findings[0].title + ".", None)
        return Verdict("No I/O was recorded.", None)
    if document.diagnosis is not None and document.diagnosis.held_up.how != "nothing":
        return _diagnosed(document.diagnosis, document.serious, _most_time(characteristics))
    opening = held_up(document.slowest, characteristics.job.runtime) or _in_calls(characteristics)
    serious = document.serious
    if not serious:
        return Verdict(f"{opening}; nothing costs noticeable time.", None)
    advice = next((r.text for f in serious for r in f.recommendations), None)
    costly = printable(serious[0].title)
    return Verdict(f"{opening}. What costs most: {_lower(costly)}.", advice)


def held_up(slowest: SlowestRank | None, runtime: float | None) -> str | None:
    """Say how long I/O holds the job up, by the rank that is longest in it."""
    if slowest is None or not runtime:
        return None
    if slowest.seconds < NEXT_TO_NOTHING * runtime:
        return "I/O holds the job up for almost none of its run time"
    who = "" if slowest.rank is None else f" (rank {slowest.rank}, the slowest)"
    return (
        f"I/O holds the job up for {format_seconds(slowest.seconds)} of "
        f"{format_seconds(runtime)}{who}"
    )


def _in_calls(characteristics: Characteristics) -> str:
    return f"{format_seconds(characteristics.io_time)} in I/O calls over all ranks"


def _most_time(characteristics: Characteristics) -> str:
    """What most of the time in calls is spent on."""
    amounts = characteristics.by_operation
    whole = sum(amount.time for amount in amounts.values())
    name = max(amounts, key=lambda one: amounts[one].time)
    if whole <= 0:
        return ""
    most = amounts[name]
    verb = {"read": "reading", "write": "writing"}.get(name)
    what = f"{verb} {format_bytes(most.bytes)}" if verb else "opens, syncs and other metadata calls"
    return f"{most.time / whole:.0%} of the time in calls goes into {what}"


def _diagnosed(diagnosis: Diagnosis, serious: Sequence[Finding], spent: str) -> Verdict:
    first = first_unexplained(diagnosis, serious)
    advice = (
        first.recommendations if first else diagnosis.causes[0].advice if diagnosis.causes else ()
    )
    line = opening_line(diagnosis, serious, spent=spent)
    return Verdict(line, advice[0].text if advice else None)


def first_unexplained(diagnosis: Diagnosis, serious: Sequence[Finding]) -> Finding | None:
    """The finding that costs most, where the diagnosis names no cause.

    What a finding of a rule costs is an upper bound; what a part takes more than peers with the
    same calls is measured, and comes first where it is most of the time.
    """
    if diagnosis.causes:
        return None
    known = [finding for finding in serious if finding.seconds_at_stake]
    measured = (finding for finding in known if finding.code.startswith("bottleneck-"))
    most = MOSTLY * diagnosis.held_up.seconds
    first = next((one for one in measured if (one.seconds_at_stake or 0.0) >= most), None)
    return first or next(iter(known), None)


def opening_line(diagnosis: Diagnosis, serious: Sequence[Finding], *, spent: str = "") -> str:
    """How long I/O holds the job up, then the first cause or, without one, the first finding."""
    first = first_unexplained(diagnosis, serious)
    if first is None or any(is_mostly(diagnosis, what) for what in ("first-reads", "programs")):
        return answer(diagnosis, spent=spent)
    about = "about " if first.evidence.get("estimated") else ""
    stake = f"{about}{format_seconds(first.seconds_at_stake)}"
    return f"{held_up_line(diagnosis)} At most {stake} of it: {_lower(printable(first.title))}."


def _lower(title: str) -> str:
    return title[:1].lower() + title[1:] if title[1:2].islower() or title[1:2] == " " else title


def io_share(characteristics: Characteristics) -> float | None:
    """The part of all ranks' run time that they spend in I/O calls, at most 1."""
    job = characteristics.job
    if not job.runtime:
        return None
    return min(
        1.0, characteristics.io_time / (job.runtime * (job.ranks or characteristics.processes or 1))
    )


def job_facts(document: Document) -> list[tuple[str, str]]:
    """What one wants to know of any job first."""
    characteristics = document.characteristics
    job, read, write = (
        characteristics.job,
        characteristics.by_operation["read"],
        characteristics.by_operation["write"],
    )
    hosts = (
        f" on {format_count(characteristics.hosts)} hosts"
        if characteristics.hosts and characteristics.hosts > 1
        else ""
    )
    rows = [
        ("program", printable(job.executable) if job.executable else "unknown"),
        ("ran for", format_seconds(job.runtime)),
        ("ranks", f"{format_count(job.ranks)}{hosts}"),
        ("files", format_count(characteristics.files)),
        ("read", format_bytes(read.bytes)),
        ("written", format_bytes(write.bytes)),
        ("in I/O calls", f"{format_seconds(characteristics.io_time)} over all ranks"),
    ]
    rows += [("started", started)] if (started := moment(job.start_time)) else []
    known = job.job_id not in (None, "0")  # 0: no batch system gave one
    return [*rows, ("job number", printable(str(job.job_id)))] if known else rows


def moment(seconds: float | None) -> str | None:
    """A point in time as a date, or None."""
    if not seconds:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return None
