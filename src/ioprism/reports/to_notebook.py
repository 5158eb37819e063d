"""A report inside a notebook: a short story, and the whole page in a frame of its own."""

from __future__ import annotations

from html import escape

from ioprism.reports.document import Document
from ioprism.reports.wording import job_facts, verdict
from ioprism.units import format_seconds

LARGEST = 6_000_000  # characters of a page that a notebook is asked to hold
MOST_FINDINGS = 12


def summary(document: Document) -> str:
    """Return the story as HTML, and below it the page, if it is not too large."""
    from ioprism.reports.to_html.report import page

    text = page(document) if document.timeline.marks.height < LARGEST // 6 else ""
    if not text or len(text) > LARGEST:
        return f"{story(document)}<p>Write the pictures to a file: report.to_html(path)</p>"
    # A frame without an origin of its own: the page's script cannot reach the notebook.
    return (
        f'{story(document)}<iframe sandbox="allow-scripts allow-downloads" '
        f'style="width:100%;height:760px;border:1px solid #ccc" title="ioprism report" '
        f'srcdoc="{escape(text, quote=True)}"></iframe>'
    )


def story(document: Document) -> str:
    """Return verdict, facts and findings as plain HTML; everything in it is escaped."""
    said = verdict(document)
    facts = "".join(
        f"<tr><th>{escape(key)}</th><td>{escape(text)}</td></tr>"
        for key, text in job_facts(document)
    )
    rows = "".join(
        f"<tr><td>{escape(f.severity.value)}</td><td>{escape(f.title)}</td>"
        f"<td>{escape(format_seconds(f.seconds_at_stake)) if f.seconds_at_stake else ''}</td></tr>"
        for f in document.findings[:MOST_FINDINGS]
    )
    first = f"<p>{escape(said.first)}</p>" if said.first else ""
    return (
        f"<h3>{escape(said.line)}</h3>{first}<table>{facts}</table>"
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
