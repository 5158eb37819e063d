"""A report inside a notebook: a short story, and the whole page in a frame of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from ioprism.report_steps import Document
from ioprism.reports.sheets import first_advice, job_facts
from ioprism.units import format_seconds

LARGEST = 6_000_000  # characters of a page that a notebook is asked to hold
MOST_FINDINGS = 12
HEIGHT = 760  # pixels of the whole page
FIGURE_HEIGHT = 460
PICTURES = {
    "timeline": "Calls: rank over time",
    "bandwidth": "Bandwidth",
    "phases": "Phases",
    "heat": "Bytes by rank",
    "concurrency": "Calls at the same time",
    "targets": "Storage targets",
    "space": "Where in the file",
    "sizes": "Request sizes",
    "rhythm": "Periodicity",
}


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """One picture of a report, which shows itself in a notebook."""

    document: Document
    name: str  # a key of PICTURES

    @property
    def title(self) -> str:
        """What it shows."""
        return PICTURES[self.name]

    def to_html(self) -> str:
        """Return a page with this picture alone."""
        from ioprism.reports.to_html.report import page

        return page(self.document, only=self.name)

    def _repr_html_(self) -> str:
        framed = _in_frame(self.document, self.title, FIGURE_HEIGHT, self.to_html)
        return framed or f"<p>{escape(self.title)}: too large for a notebook.</p>"


def figures(document: Document) -> dict[str, Figure]:
    """Return the pictures that the trace has enough detail for, by name."""
    from ioprism.reports.to_html.picture import stripes

    shown = document.timeline
    has_marks = shown.marks.height > 0
    has_calls = has_marks and shown.source == "calls"
    drawn = {
        "concurrency": has_calls,
        "sizes": has_marks and shown.source != "heat map",
        "phases": bool(document.phases and document.phases.layers),
        "targets": bool(stripes(document.trace, shown)),
        "rhythm": document.periodicity is not None,
    }
    return {name: Figure(document, name) for name in PICTURES if drawn.get(name, has_marks)}


def summary(document: Document) -> str:
    """Return the story as HTML, and below it the page, if it is not too large."""
    from ioprism.reports.to_html.report import page

    framed = _in_frame(document, "ioprism report", HEIGHT, lambda: page(document))
    return story(document) + (framed or "<p>Write the pictures to a file: report.to_html(path)</p>")


def _in_frame(document: Document, title: str, height: int, page: Callable[[], str]) -> str:
    """The page in a frame; nothing if it is too large for a notebook."""
    text = page() if document.timeline.marks.height < LARGEST // 6 else ""
    if not text or len(text) > LARGEST:
        return ""
    # A frame without an origin of its own: the page's script cannot reach the notebook.
    return (
        f'<iframe sandbox="allow-scripts allow-downloads" '
        f'style="width:100%;height:{height}px;border:1px solid #ccc" title="{escape(title)}" '
        f'srcdoc="{escape(text, quote=True)}"></iframe>'
    )


def story(document: Document) -> str:
    """Return verdict, facts and findings as plain HTML; everything in it is escaped."""
    advice = first_advice(document.verdict)
    facts = "".join(
        f"<tr><th>{escape(key)}</th><td>{escape(text)}</td></tr>"
        for key, text in job_facts(document)
    )
    rows = "".join(
        f"<tr><td>{escape(f.severity.value)}</td><td>{escape(f.title)}</td>"
        f"<td>{escape(format_seconds(f.seconds_at_stake)) if f.seconds_at_stake else ''}</td></tr>"
        for f in document.findings[:MOST_FINDINGS]
    )
    first = f"<p>{escape(advice)}</p>" if advice else ""
    return (
        f"<h3>{escape(document.verdict.line)}</h3>{first}<table>{facts}</table>"
        f"<table><thead><tr><th>level</th><th>finding</th><th>at stake</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def display(report: object) -> bool:
    """Show a report in the notebook that runs this, and say whether there is one."""
    import sys

    shell = sys.modules.get("IPython")
    if shell is None or shell.get_ipython() is None:
        return False
    from importlib import import_module

    import_module("IPython.display").display(report)
    return True
