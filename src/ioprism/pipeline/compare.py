"""Two runs side by side: what a change did."""

from __future__ import annotations

from ioprism.analyses.compare import Comparison
from ioprism.analyses.compare import compare as compare_runs
from ioprism.pipeline.document import Document


def compared(before: Document, after: Document) -> Comparison:
    """Compare the numbers and the findings of two jobs."""
    return compare_runs(
        (before.characteristics, before.findings), (after.characteristics, after.findings)
    )
