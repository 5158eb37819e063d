"""The page of `ioprism compare`: two runs on the same axes, and what became of the findings."""

from __future__ import annotations

from typing import Any

from ioprism.comparison.changes import Comparison
from ioprism.model.layers import HEIGHT, LAYERS, TITLES
from ioprism.model.schema import OPERATIONS
from ioprism.model.verdict import Finding
from ioprism.report_steps import Document
from ioprism.reports.comparing import details, metric_row, telling, verdict
from ioprism.reports.to_html.page import asset
from ioprism.reports.to_html.page import page as frame
from ioprism.reports.to_html.report import embedded, rank_count
from ioprism.text import printable
from ioprism.units import format_seconds

STYLES = ("plots.css", "report.css")
SCRIPTS = ("charts.js", "plots.js", "report-marks.js", "report-paint.js", "report-raster.js",
           "report-state.js", "report-frame.js", "report-timeline.js", "report-series.js",
           "report-findings.js", "compare.js")  # fmt: skip


def page(comparison: Comparison, before: Document, after: Document) -> str:
    """Return the page."""
    return frame(
        title="What a change did to a job's I/O",
        body=asset("compare.html"),
        styles=STYLES,
        scripts=SCRIPTS,
        data=_data(comparison, before, after),
    )


def _data(comparison: Comparison, before: Document, after: Document) -> dict[str, Any]:
    return {
        "verdict": verdict(comparison),
        "details": details(comparison),
        "warnings": [f"Not comparable: {printable(text)}" for text in comparison.warnings],
        "layers": list(LAYERS),
        "titles": TITLES,
        "heights": HEIGHT,
        "operations": list(OPERATIONS),
        "files": {},
        "stripes": {},
        "timeline": {"source": "calls"},
        "metrics": [[*metric_row(m), _judgement(m.better)] for m in telling(comparison)],
        "gone": [_line(finding) for finding in comparison.gone],
        "new": [_line(finding) for finding in comparison.new],
        "kept": [_line(pair.after, pair.before) for pair in comparison.kept],
        "runs": [_run("before", before), _run("after", after)],
    }


def _judgement(better: bool | None) -> str:
    return {True: "better", False: "worse", None: ""}[better]


def _line(finding: Finding, before: Finding | None = None) -> dict[str, Any]:
    stake = format_seconds(finding.seconds_at_stake) if finding.seconds_at_stake else ""
    if before is not None and before.seconds_at_stake and stake:
        stake = f"{format_seconds(before.seconds_at_stake)} → {stake}"
    return {"level": finding.severity.value, "title": printable(finding.title), "stake": stake}


def _run(name: str, document: Document) -> dict[str, Any]:
    shown, trace = document.timeline, document.trace
    return {
        "name": name,
        "source": [printable(path.name) for path in trace.paths],
        "ranks": rank_count(trace, shown),
        "end": max(shown.end, trace.job.runtime or 0.0),
        "timeline": embedded(shown),
        "warnings": [printable(text) for text in document.warnings],
    }
