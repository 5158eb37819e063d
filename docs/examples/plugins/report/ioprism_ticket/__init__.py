"""`ioprism report TRACE -o ticket.md`: what a user should know, to paste into a ticket."""

from __future__ import annotations

from collections.abc import Iterator

from ioprism.report_steps import Document
from ioprism.units import format_bytes, format_seconds


def ticket(document: Document) -> str:
    """Return the story of a job as Markdown."""
    return "\n".join([*_head(document), *_causes(document), *_findings(document), ""])


def _head(document: Document) -> Iterator[str]:
    job, moved = document.trace.job, document.characteristics.by_operation
    sizes = {name: format_bytes(moved[name].bytes) for name in ("read", "write")}
    yield f"# I/O of {job.executable or document.trace.paths[0].name}\n"
    yield f"{job.ranks or 1} ranks, {format_seconds(job.runtime or 0.0)};"
    yield f"{sizes['read']} read, {sizes['write']} written.\n"


def _causes(document: Document) -> Iterator[str]:
    for cause in document.verdict.causes:
        yield f"- **{cause.title}**: {format_seconds(cause.saving.seconds)} could be saved."
        yield from (f"  - {advice.text}" for advice in cause.advice)


def _findings(document: Document) -> Iterator[str]:
    for finding in document.serious:
        yield f"- {finding.title} (`{finding.code}`)"
