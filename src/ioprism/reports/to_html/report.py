"""The page of `ioprism report`: the story, the pictures on one time axis, the tables."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from ioprism.model.layers import HEIGHT, LAYERS, TITLES
from ioprism.model.quantities import label, quantity
from ioprism.model.schema import OPERATIONS
from ioprism.model.trace import Trace
from ioprism.model.verdict import Finding
from ioprism.periodicity.results import Periodicity
from ioprism.phase_detection.find import Phases
from ioprism.report_steps import Document
from ioprism.reports.highlight import cause_concern, concern
from ioprism.reports.sheets import sheets
from ioprism.reports.to_html.page import shell_page
from ioprism.reports.to_html.period import curve, spectrum
from ioprism.reports.wording import first_advice, job_facts
from ioprism.text import printable
from ioprism.units import format_seconds
from ioprism.views.picture.packed import pack
from ioprism.views.picture.timeline import Timeline

MOST_NAMES = 50_000
MOST_PHASES = 2000  # of a layer; of more, the longest are drawn


def page(document: Document, *, only: str | None = None) -> str:
    """Return the page with all marks in it, or with one picture by itself."""
    return framed(data(document) | ({"only": only} if only else {}))


def framed(content: Mapping[str, Any], *, connect: bool = False) -> str:
    """Return the page that draws this content; `connect` lets it ask its own server."""
    return shell_page("workbench", title="The I/O of a job", data=content, connect=connect)


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
    return {
        "source": [printable(path.name) for path in trace.paths],
        "ranks": rank_count(trace, shown),
        "layers": list(LAYERS),
        "titles": TITLES,
        "heights": HEIGHT,
        "hosts": hosts(trace),
        "threads": threads(trace),
        "sizes": _sizes(document),
        "operations": list(OPERATIONS),
        "files": file_names(trace, shown),
        "stripes": stripes(trace, shown),
        "phases": _phases(document.phases),
        "timeline": about(shown) if explore else embedded(shown),
        "time": [min(0.0, shown.start), max(shown.end, trace.job.runtime or 0.0)],
        "explore": explore,
    }


def about(shown: Timeline) -> dict[str, Any]:
    """Return what a picture says of itself, without its marks."""
    return {
        "start": shown.start,
        "end": shown.end,
        "calls": shown.calls,
        "width": shown.width,
        "source": shown.source,
        "count": shown.marks.height,
    }


def embedded(shown: Timeline) -> dict[str, Any]:
    """Return a picture's marks as text."""
    packed = pack(shown)
    text = base64.b64encode(packed.deflate()).decode("ascii")
    return {**about(shown), **packed.header(), "data": text}


def rank_count(trace: Trace, shown: Timeline) -> int:
    """Return how many ranks a picture has rows for."""
    ranks = shown.marks["rank"].to_numpy()
    return max(trace.job.ranks or 1, int(ranks.max()) + 1 if len(ranks) else 1)


def _with_marks(trace: Trace, shown: Timeline | None) -> pl.DataFrame:
    """The files that have marks; all files where marks are not known yet."""
    if shown is None:
        return trace.files
    return trace.files.join(shown.marks.select("file").unique(), on="file", how="semi")


def file_names(trace: Trace, shown: Timeline | None) -> dict[str, str]:
    """Return the names of the files that have marks, by number."""
    named = _with_marks(trace, shown).select("file", "path")
    return {str(n): printable(path) for n, path in named.head(MOST_NAMES).iter_rows()}


def stripes(trace: Trace, shown: Timeline | None) -> dict[str, list[Any]]:
    """Return stripe size and storage targets of the files that have marks."""
    known = _with_marks(trace, shown).filter(
        (pl.col("stripe_size") > 0) & (pl.col("targets").list.len() > 0)
    )
    rows = known.select("file", "stripe_size", "targets").head(MOST_NAMES).iter_rows()
    return {str(file): [size, list(targets)] for file, size, targets in rows}


def hosts(trace: Trace) -> dict[str, Any]:
    """Return the names of hosts, and for each rank which of them it runs on; -1: unknown."""
    known = trace.processes.filter(pl.col("host").is_not_null() & (pl.col("rank") >= 0))
    of_rank = known.group_by("rank").agg(pl.col("host").first()).sort("rank")
    names = of_rank["host"].unique(maintain_order=True).to_list()
    number = {name: place for place, name in enumerate(names)}
    last = of_rank["rank"].max() if of_rank.height else -1
    numbers = [-1] * (int(last) + 1 if isinstance(last, int) else 0)
    for rank, name in of_rank.iter_rows():
        numbers[rank] = number[name]
    return {"names": [printable(name) for name in names], "of": numbers}


def threads(trace: Trace) -> dict[str, str]:
    """Return the names of processes where ranks have several, by number."""
    rows = trace.processes.select("process", "rank", "pid", "tid")
    if rows.height <= rows["rank"].n_unique():
        return {}
    numbered = rows.with_columns(number=pl.col("process").rank("ordinal").over("rank"))
    return {
        str(row["process"]): f"thread {row['number']} ({row['tid'] or row['pid']})"
        for row in numbered.head(MOST_NAMES).iter_rows(named=True)
    }


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
    return {**plain, "opportunities": hidden, "calm": verdict.line.partition(". ")[2]}


def _sizes(document: Document) -> dict[str, list[int]]:
    """How many requests of each size class the whole run has, by direction."""
    sizes = document.characteristics.request_sizes
    return {
        direction: [size.count for size in sizes.get(direction, ())]
        for direction in ("read", "write")
    }


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
