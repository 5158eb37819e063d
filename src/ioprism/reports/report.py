"""A job's story as one object that knows every form it can take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ioprism.errors import EndingError
from ioprism.model.verdict import Finding
from ioprism.plugins import declared, load
from ioprism.report_steps import Document
from ioprism.reports.figures import COLUMN_WIDTH, StaticFigure, draw_figure
from ioprism.reports.sheets import Sheet, sheets
from ioprism.reports.to_notebook import Figure, display, figures, summary
from ioprism.storage.atomic import atomic_write_text

GROUP = "ioprism.reports"  # a plug-in's name is the ending of the files that it writes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Report:
    """A job's story, in every form."""

    document: Document

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all analyses, worst first."""
        return self.document.findings

    @property
    def tables(self) -> dict[str, Sheet]:
        """The tables by title; each shows itself in a notebook."""
        return {sheet.title: sheet for sheet in sheets(self.document)}

    @property
    def figures(self) -> dict[str, Figure]:
        """The pictures by name; each shows itself in a notebook."""
        return figures(self.document)

    def figure(self, name: str, *, width: float = COLUMN_WIDTH) -> StaticFigure:
        """Draw a figure for a paper; `save` writes it as SVG, PNG or PDF.

        Args:
            name: timeline, bandwidth, phases, targets, heatmap, sizes or ledger.
            width: in inches.

        Raises:
            UsageError: there is no such figure.
            MissingPackageError: matplotlib is not installed.
            FigureUnavailableError: the trace lacks what the figure shows.
        """
        return draw_figure("report", name, self.document, width=width)

    def to_json(self) -> str:
        """Return one JSON document."""
        from ioprism.reports import to_json

        return to_json.document(self.document.trace, self.document.to_dict())

    def to_html(self, path: str | Path | None = None, *, replace: bool = True) -> str:
        """Return the page, and write it where `path` says."""
        from ioprism.reports.to_html import report as form

        text = form.page(self.document)
        if path is not None:
            atomic_write_text(Path(path), text, replace=replace)
        return text

    def write(self, path: str | Path, *, replace: bool = True) -> None:
        """Write the form that the ending of the name asks for: the page, or a plug-in's.

        Raises:
            EndingError: no form has this ending.
        """
        ending = Path(path).suffix.lower()
        form = next((load(one) for one in declared(GROUP) if f".{one.name}" == ending), None)
        if form is None:
            if ending and ending not in (known := report_endings()):
                raise EndingError(Path(path), what="reports", known=known)
            self.to_html(path, replace=replace)
        else:
            atomic_write_text(Path(path), form(self.document), replace=replace)

    def show(self) -> None:
        """Tell the story in the terminal, or in a notebook's cell."""
        from ioprism.reports.to_terminal.report import plain_console, show_report

        if not display(self):
            show_report(self.document, plain_console())

    def __repr__(self) -> str:
        return f"<Report: {self.document.verdict.line}>"

    def _repr_html_(self) -> str:
        return summary(self.document)


def report_endings() -> tuple[str, ...]:
    """Return the endings of the files that reports can be written to."""
    return (".html", ".htm", *(f".{plugin.name}" for plugin in declared(GROUP)))
