"""Sentences about a job for people: what to do first, and the facts that come first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ioprism.text import printable
from ioprism.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:  # they load table libraries, which the text of small answers does without
    from ioprism.model.verdict import Verdict
    from ioprism.report_steps import Document


def first_advice(verdict: Verdict) -> str | None:
    """What to do first: the first advice on the main cause, or what would decide."""
    for cause in verdict.causes:
        if cause.advice:
            return cause.advice[0].text
    return verdict.possible[0].decide.command if verdict.possible else None


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
