"""Two runs side by side: what a change did."""

from __future__ import annotations

from dataclasses import replace

from ioprism.analyses.compare import Comparison
from ioprism.analyses.compare import compare as compare_runs
from ioprism.analyses.diagnosis.diagnose import diagnose
from ioprism.analyses.diagnosis.result import Diagnosis
from ioprism.pipeline.document import Document


def compared(before: Document, after: Document) -> Comparison:
    """Compare the numbers, the findings and the diagnoses of two jobs."""
    found = compare_runs(
        (before.characteristics, before.findings), (after.characteristics, after.findings)
    )
    old, new = diagnose(before.trace), diagnose(after.trace)
    return replace(found, promised=promised(old, new), delivered=old.runtime - new.runtime)


def promised(before: Diagnosis, after: Diagnosis) -> float:
    """Seconds that the diagnosis of BEFORE promised for what AFTER no longer has, or has less of.

    Causes are the same by their code.
    """
    left: dict[str, float] = {}
    for cause in after.causes:
        left[cause.code] = left.get(cause.code, 0.0) + cause.saving.seconds
    return sum(max(0.0, c.saving.seconds - left.get(c.code, 0.0)) for c in before.causes)
