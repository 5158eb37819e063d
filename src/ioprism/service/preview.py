"""The page before its story is there: the job's facts and the whole picture."""

from __future__ import annotations

from typing import Any

from ioprism.model.layers import HEIGHT, LAYERS, TITLES
from ioprism.model.schema import OPERATIONS
from ioprism.model.trace import Trace
from ioprism.reports.to_html.report import about, file_names, stripes
from ioprism.text import printable
from ioprism.units import format_count, format_seconds
from ioprism.views.picture.tiles import Tiles

NO_PARTS: dict[str, object] = {"title": "", "note": "", "rows": []}


def preview(trace: Trace, tiles: Tiles) -> dict[str, Any]:
    """Return what the page shows at once; findings, phases and tables come later."""
    shown = tiles.whole()
    job = trace.job
    facts = [
        ["program", printable(job.executable) if job.executable else "unknown"],
        ["ran for", format_seconds(job.runtime)],
        ["ranks", format_count(tiles.ranks)],
        ["calls", format_count(tiles.count)],
    ]
    return {
        "source": [printable(path.name) for path in trace.paths],
        "warnings": [printable(text) for text in trace.completeness.warnings],
        "verdict": {
            "line": "Analysing the calls…",
            "first": "The picture is ready; the findings follow.",
        },
        "facts": facts,
        "ranks": tiles.ranks,
        "layers": list(LAYERS),
        "titles": TITLES,
        "heights": HEIGHT,
        "operations": list(OPERATIONS),
        "files": file_names(trace, None),
        "stripes": stripes(trace, None),
        "diagnosis": None,
        "parts": {"targets": NO_PARTS, "hosts": NO_PARTS},
        "findings": [],
        "phases": {},
        "rhythm": None,
        "tables": [],
        "timeline": about(shown),
        "time": [min(0.0, tiles.start), max(tiles.end, job.runtime or 0.0)],
        "explore": True,
    }
