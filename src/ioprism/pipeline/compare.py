"""Two runs side by side: what a change did."""

from __future__ import annotations

from dataclasses import replace

from ioprism.analyses.compare import Comparison
from ioprism.analyses.compare import compare as compare_runs
from ioprism.pipeline.document import Document


def compared(before: Document, after: Document) -> Comparison:
    """Compare the numbers and the findings of two jobs."""
    comparison = compare_runs(
        (before.characteristics, before.findings), (after.characteristics, after.findings)
    )
    return replace(comparison, promised=_promised(before), delivered=_delivered(before, after))


def _promised(before: Document) -> float | None:
    """What removing the first cause was said to save: people change one thing at a time."""
    return sum(cause.saving.seconds for cause in before.verdict.causes[:1])


def _delivered(before: Document, after: Document) -> float | None:
    old, new = before.trace.job.runtime, after.trace.job.runtime
    return None if old is None or new is None else old - new
