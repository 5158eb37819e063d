"""The page of `ioprism compare`: two runs aligned by phase, what was promised and delivered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ioprism.comparison.changes import Comparison
from ioprism.comparison.repetitions import Difference, align_runs
from ioprism.comparison.steps import Side, stall_of
from ioprism.model.result import pick
from ioprism.model.verdict import Finding
from ioprism.report_steps import Document
from ioprism.reports.to_html.page import shell_page
from ioprism.reports.to_html.report import picture
from ioprism.reports.to_terminal.compare import details, metric_row, telling, verdict
from ioprism.text import printable
from ioprism.units import format_seconds

JUDGEMENTS = {True: "better", False: "worse", None: ""}


def page(comparison: Comparison, before: Side, after: Side) -> str:
    """Return the page; of several runs on a side, the one of median length is drawn."""
    return shell_page(
        "compare",
        title="What a change did to a job's I/O",
        data=_data(comparison, before, after),
    )


def _data(comparison: Comparison, before: Side, after: Side) -> dict[str, Any]:
    drawn = [_run("before", before), _run("after", after)]
    old, new = ((float(one["time"][0]), float(one["time"][1])) for one in drawn)
    segments = align_runs(before.typical.phases, after.typical.phases, (old, new))
    return {
        "verdict": verdict(comparison),
        "details": details(comparison),
        "warnings": [f"Not comparable: {printable(text)}" for text in comparison.warnings],
        "run_time": _difference(comparison.runtime),
        "io_stall": _difference(comparison.stall),
        "promise": None if comparison.promise is None else asdict(comparison.promise),
        "causes": [
            {
                **pick(cause, "code", "before", "low", "high", "after", "removed"),
                "title": printable(cause.title),
            }
            for cause in comparison.causes
        ],
        "metrics": [[*metric_row(m), JUDGEMENTS[m.better]] for m in telling(comparison)],
        "gone": [_line(finding) for finding in comparison.gone],
        "new": [_line(finding) for finding in comparison.new],
        "kept": [_line(pair.after, pair.before) for pair in comparison.kept],
        "segments": [pick(one, "kind", "before", "after") for one in segments],
        "runs": drawn,
    }


def _difference(change: Difference | None) -> dict[str, Any] | None:
    if change is None:
        return None
    return pick(change, "before", "after", "saved", "low", "high")


def _line(finding: Finding, before: Finding | None = None) -> dict[str, Any]:
    stake = format_seconds(finding.seconds_at_stake) if finding.seconds_at_stake else ""
    if before is not None and before.seconds_at_stake and stake:
        stake = f"{format_seconds(before.seconds_at_stake)} → {stake}"
    return {"level": finding.severity.value, "title": printable(finding.title), "stake": stake}


def _run(name: str, side: Side) -> dict[str, Any]:
    """One side: the picture of its typical run, and the times of all its runs."""
    typical = side.typical
    own = tuple(one.trace.job.runtime for one in side.documents)
    seconds: Sequence[float | None] = side.seconds or own
    return {
        **picture(typical),
        "name": name,
        "warnings": [printable(text) for text in typical.warnings],
        "all": [
            {"source": _source(one), "seconds": length, "stall": stall_of(one)}
            for one, length in zip(side.documents, seconds, strict=True)
        ],
    }


def _source(document: Document) -> str:
    return ", ".join(printable(path.name) for path in document.trace.paths)
