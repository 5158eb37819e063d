"""From a trace to its report: the order of the analyses, and only the order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from ioprism.analyses.bottlenecks.result import Bottlenecks
from ioprism.analyses.breakdown import by_file, by_rank
from ioprism.analyses.characterise import characterise
from ioprism.analyses.evidence import Evidence, evidence_of_trace
from ioprism.analyses.periodicity.detect import rhythm
from ioprism.analyses.periodicity.results import Rhythm
from ioprism.analyses.periodicity.sampling import sample
from ioprism.analyses.phases import Phases, phases
from ioprism.engine.base import Engine
from ioprism.engine.local import LocalEngine
from ioprism.engine.memory import in_memory
from ioprism.errors import AnalysisError
from ioprism.model.finding import Finding
from ioprism.model.trace import Trace
from ioprism.readers.aside import written_aside
from ioprism.reports.document import Document
from ioprism.reports.ranking import ranked
from ioprism.reports.sheets import Sheet, sheets
from ioprism.reports.to_notebook import Figure, display, figures, summary
from ioprism.rules.bottlenecks.analyse import analyse as find_bottlenecks
from ioprism.rules.registry import judge
from ioprism.settings import Thresholds
from ioprism.views.bandwidth import bandwidth
from ioprism.views.timeline import MOST_MARKS, timeline

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """What a report looks at."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    views: tuple[str, ...] = ("process", "file", "time")
    top: int = 50  # bottlenecks of each view
    most_marks: int = MOST_MARKS  # on the page; more calls are drawn as runs


@dataclass(frozen=True, slots=True, eq=False)
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

    def to_json(self) -> str:
        """Return one JSON document."""
        from ioprism.reports import to_json
        from ioprism.reports.to_json import report as form

        return to_json.document(self.document.trace, form.body(self.document))

    def to_html(self, path: str | Path | None = None, *, replace: bool = True) -> str:
        """Return the page, and write it where `path` says."""
        from ioprism.reports.to_html import report as form

        text = form.page(self.document)
        if path is not None:
            with written_aside(Path(path), replace=replace) as aside:
                aside.write_text(text, encoding="utf-8")
        return text

    def show(self) -> None:
        """Tell the story in the terminal, or in a notebook's cell."""
        from ioprism.reports.to_terminal import report as form

        if not display(self):
            form.show(self.document, form.plain_console())

    def _repr_html_(self) -> str:
        return summary(self.document)


def analyse(
    trace: Trace, *, settings: ReportSettings | None = None, engine: Engine | None = None
) -> Report:
    """Run every analysis that the trace has enough detail for."""
    chosen, engine = settings or ReportSettings(), engine or LocalEngine()
    held = in_memory(trace)
    notes: list[str] = []
    evidence = evidence_of_trace(held, engine, chosen.thresholds)
    insights = judge(evidence)
    rhythmic, direction = _rhythm(held, engine)
    bottlenecks = _attempt(lambda: _bottlenecks(held, engine, chosen), notes)
    document = Document(
        trace=held,
        characteristics=characterise(held, engine),
        findings=ranked(
            insights.findings,
            bottlenecks,
            rhythmic,
            direction=direction,
            floor=_negligible(trace, chosen.thresholds),
        ),
        not_checked=insights.not_checked,
        phases=_attempt(lambda: _phases(held, engine, evidence), []),
        bottlenecks=bottlenecks,
        rhythm=rhythmic,
        rhythm_of=direction,
        timeline=timeline(held, engine, most=chosen.most_marks),
        by_file=by_file(held, engine),
        by_rank=by_rank(held, engine),
        notes=tuple(notes),
    )
    return Report(document)


def _rhythm(trace: Trace, engine: Engine) -> tuple[Rhythm | None, str]:
    """The rhythm of all I/O, or of one direction where only that has one."""
    found: dict[str, Rhythm] = {}
    for direction in ("both", "write", "read"):
        answer = _attempt(partial(_rhythm_of, trace, engine, direction), [])
        if answer is not None and answer.period is not None:
            return answer, direction
        if answer is not None:
            found[direction] = answer
    return next(((answer, name) for name, answer in found.items()), (None, "both"))


def _rhythm_of(trace: Trace, engine: Engine, direction: str) -> Rhythm:
    return rhythm(sample(bandwidth(trace, engine, direction=direction)))


def _negligible(trace: Trace, limits: Thresholds) -> float:
    share = limits.negligible_share * (trace.job.runtime or 0.0)
    return max(share, limits.negligible_seconds)


def _bottlenecks(trace: Trace, engine: Engine, chosen: ReportSettings) -> Bottlenecks | None:
    if not trace.partitions:
        return None
    return find_bottlenecks(trace, engine, top=chosen.top, views=chosen.views)


def _phases(trace: Trace, engine: Engine, evidence: Evidence) -> Phases:
    return phases(trace, engine) if evidence.phases is None else Phases(evidence.phases)


def _attempt(question: Callable[[], Result], notes: list[str]) -> Result | None:
    """Ask; a question that the trace cannot answer leaves a note instead."""
    try:
        return question()
    except AnalysisError as error:
        notes.append(str(error).partition("\n")[0])
        return None
