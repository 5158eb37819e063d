"""The page of `ioprism report`: the story, the pictures on one time axis, the tables."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ioprism.model.result import label, quantity
from ioprism.model.verdict import Finding
from ioprism.periodicity.results import Periodicity
from ioprism.phase_detection.find import Phases
from ioprism.report_steps import Document
from ioprism.reports.highlight import cause_concern, concern
from ioprism.reports.sheets import first_advice, job_facts, sheets
from ioprism.reports.to_html.period import curve, spectrum
from ioprism.reports.to_html.picture import about, file_names, job_page, owners, stripes, tracks
from ioprism.text import printable
from ioprism.units import format_seconds
from ioprism.views.tiles import pack
from ioprism.views.timeline import Timeline

MOST_PHASES = 2000  # of a layer; of more, the longest are drawn


def page(document: Document, *, only: str | None = None) -> str:
    """Return the page with all marks in it, or with one picture by itself."""
    return job_page(data(document) | ({"only": only} if only else {}))


def data(document: Document, *, explore: bool = False) -> dict[str, Any]:
    """Return what the page shows; with `explore`, marks are asked for instead of embedded."""
    return {
        **picture(document, explore=explore),
        "warnings": [printable(text) for text in document.warnings],
        "verdict": {"line": document.verdict.line, "first": first_advice(document.verdict)},
        "facts": [list(fact) for fact in job_facts(document)],
        "diagnosis": _diagnosis(document),
        "findings": _findings(document),
        "rhythm": _periodicity(document.periodicity),
        "tables": [sheet.to_dict() for sheet in sheets(document)],
    }


def picture(document: Document, *, explore: bool = False) -> dict[str, Any]:
    """Return what tracks of a job are drawn from."""
    trace, shown = document.trace, document.timeline
    ranks = shown.marks["rank"].to_numpy()
    sizes = document.characteristics.request_sizes
    return {
        **tracks(
            trace,
            ranks=max(trace.job.ranks or 1, int(ranks.max()) + 1 if len(ranks) else 1),
            start=shown.start,
            end=shown.end,
        ),
        **owners(trace),
        "sizes": {way: [size.count for size in sizes.get(way, ())] for way in ("read", "write")},
        "files": file_names(trace, shown),
        "stripes": stripes(trace, shown),
        "phases": _phases(document.phases),
        "timeline": about(shown) if explore else embedded(shown),
        "explore": explore,
    }


def embedded(shown: Timeline) -> dict[str, Any]:
    """Return a picture's marks as text."""
    packed = pack(shown)
    text = base64.b64encode(packed.deflate()).decode("ascii")
    return {**about(shown), **packed.header(), "data": text}


def _findings(document: Document) -> list[dict[str, Any]]:
    paths = document.trace.files.select("path", "file")
    numbers = {str(path): int(number) for path, number in paths.iter_rows()}
    return [
        {
            "id": identifier,
            "code": finding.code,
            "level": finding.severity.value,
            "title": printable(finding.title),
            "seconds": finding.seconds_at_stake,
            "cause": finding.cause,
            "evidence": _evidence(finding),
            "advice": [{"text": r.text, "snippet": r.snippet} for r in finding.recommendations],
            "details": _details(finding),
            "show": concern(finding, document.timeline, numbers),
        }
        for identifier, finding in zip(
            _identifiers(document.findings), document.findings, strict=True
        )
    ]


def _identifiers(findings: Sequence[Finding]) -> list[str]:
    """Name findings by their codes, so that a link to one still holds after a new run."""
    seen: Counter[str] = Counter()
    names = []
    for finding in findings:
        seen[finding.code] += 1
        number = seen[finding.code]
        names.append(finding.code if number == 1 else f"{finding.code}-{number}")
    return names


def _evidence(finding: Finding) -> list[list[str]]:
    seen = [[label(key), quantity(key, value)] for key, value in finding.evidence.items()]
    limits = [
        [f"limit: {label(key)}", quantity(key, value)]
        for key, value in finding.threshold.items()
        if not key.startswith("negligible")
    ]
    return seen + limits


def _details(finding: Finding) -> dict[str, Any]:
    rows = list(finding.details)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if finding.code.startswith("bottleneck-"):
        columns = ["why"]
    return {
        "columns": [label(key) for key in columns],
        "rows": [[quantity(key, row.get(key)) for key in columns] for row in rows],
    }


def _diagnosis(document: Document) -> dict[str, Any] | None:
    verdict = document.verdict
    if verdict.io_stall.basis == "nothing":
        return None
    plain = verdict.to_dict()
    for number, (cause, entry) in enumerate(zip(verdict.causes, plain["causes"], strict=True)):
        entry["id"] = f"cause-{number + 1}-{cause.code}"
        entry["title"] = printable(cause.title)
        entry["show"] = cause_concern(cause, document.timeline, document.trace)
        entry["contrast"]["names"] = list(cause.facts.get("groups", ("concerned", "others")))
        entry["contrast"]["what"] = None
        entry["culprit"] = {key: printable(str(value)) for key, value in cause.culprit.items()}
    hidden = [
        f"Up to {format_seconds(one.seconds)} of healthy I/O could overlap with computation."
        for one in verdict.opportunities
    ]
    for entry in plain["possible"]:
        entry["title"] = printable(entry["title"])
        entry["culprit"] = {key: printable(str(value)) for key, value in entry["culprit"].items()}
    return {**plain, "opportunities": hidden}


def _phases(phases: Phases | None) -> dict[str, Any]:
    if phases is None:
        return {}
    layers = phases.to_dict()["layers"]
    for layer in layers.values():
        longest = sorted(layer["phases"], key=lambda phase: phase["start"] - phase["end"])
        layer["phases"] = sorted(longest[:MOST_PHASES], key=lambda phase: float(phase["start"]))
    return dict(layers)


def _periodicity(period: Periodicity | None) -> dict[str, Any] | None:
    if period is None:
        return None
    signal, answer = period.signal, period.period
    return {
        "of": period.direction,
        "signal": curve(signal),
        "period": None if answer is None else answer.to_dict(),
        "starts": [start for start, _ in answer.phases[:MOST_PHASES]] if answer else [],
        "next": None if period.next_phase is None else asdict(period.next_phase),
        "spectrum": spectrum(signal),
    }
