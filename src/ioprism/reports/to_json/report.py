"""The JSON of `ioprism report`: what all other commands say, in one document."""

from __future__ import annotations

from typing import Any

from ioprism.report_steps import Document
from ioprism.reports.wording import io_share


def body(document: Document) -> dict[str, Any]:
    """Return what every analysis says, each under its own name."""
    judged = document.verdict.to_dict()
    shown = document.timeline
    return {
        "verdict": {**judged["verdict"], "io_share": io_share(document.characteristics)},
        **document.characteristics.to_dict(),
        "diagnosis": judged,
        "findings": [finding.to_dict() for finding in document.findings],
        "not_checked": [{"code": n.code, "needs": n.needs} for n in document.not_checked],
        "phases": None if document.phases is None else document.phases.to_dict(),
        "bottlenecks": None if document.bottlenecks is None else document.bottlenecks.to_dict(),
        "period": None if document.periodicity is None else document.periodicity.to_dict(),
        "timeline": {
            "start": shown.start,
            "end": shown.end,
            "calls": shown.calls,
            "marks": shown.marks.height,
            "whole": shown.whole,
            "source": shown.source,
        },
    }
