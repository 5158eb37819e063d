"""From a trace to its report: the order of the analyses, and only the order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ioprism.bottleneck_search.result import Bottlenecks
from ioprism.bottleneck_search.steps import analyse as find_bottlenecks
from ioprism.bottleneck_search.steps import make_settings
from ioprism.characteristics.details import by_file, by_host, by_rank, by_target
from ioprism.characteristics.totals import Characteristics, characterise
from ioprism.diagnosis.evidence import evidence_of_trace
from ioprism.diagnosis.rank_balance import SlowestRank
from ioprism.diagnosis.rules.registry import COSTLY, rank_all, rank_findings
from ioprism.diagnosis.steps import DiagnosisOptions, first_views, judge_job
from ioprism.engine.base import Engine, LocalEngine, SharedViews, View, in_memory
from ioprism.errors import AnalysisError
from ioprism.model.result import pick
from ioprism.model.trace import MemoryPartition, Trace
from ioprism.model.verdict import SERIOUS, Finding, NotChecked, Verdict
from ioprism.periodicity.of_job import PeriodSettings, job_periodicity
from ioprism.periodicity.results import Periodicity
from ioprism.phase_detection.find import Phases, phases
from ioprism.settings import Thresholds
from ioprism.views.intervals import bandwidth_view
from ioprism.views.timeline import MOST_MARKS, Span, Timeline, timeline, timeline_view
from ioprism.views.totals import Totals


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A job's story; None where the trace cannot tell."""

    trace: Trace
    verdict: Verdict
    characteristics: Characteristics
    findings: tuple[Finding, ...]  # of all analyses, worst first
    not_checked: tuple[NotChecked, ...]
    phases: Phases | None
    bottlenecks: Bottlenecks | None
    periodicity: Periodicity | None
    timeline: Timeline
    by_file: pl.DataFrame  # see characteristics/details.py
    by_rank: pl.DataFrame
    by_target: pl.DataFrame  # see characteristics/details.py
    by_host: pl.DataFrame
    system_targets: int | None = None  # that the file system has, where the trace says so
    slowest: SlowestRank | None = None  # the rank that is longest in I/O calls
    notes: tuple[str, ...] = ()  # analyses that could not answer, and why

    @property
    def serious(self) -> tuple[Finding, ...]:
        """The findings that cost time."""
        return tuple(f for f in self.findings if f.severity in SERIOUS)

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism report --json` holds: what every analysis says, under its name."""
        judged = self.verdict.to_dict()
        shown = self.timeline
        return {
            "verdict": {**judged["verdict"], "io_share": self.characteristics.io_share},
            **self.characteristics.to_dict(),
            "diagnosis": judged,
            "findings": [finding.to_dict() for finding in self.findings],
            **pick(self, "not_checked"),
            "phases": None if self.phases is None else self.phases.to_dict(),
            "bottlenecks": None if self.bottlenecks is None else self.bottlenecks.to_dict(),
            "period": None if self.periodicity is None else self.periodicity.to_dict(),
            "timeline": {
                **pick(shown, "start", "end", "calls"),
                "marks": shown.marks.height,
                **pick(shown, "whole", "source"),
            },
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is missing from the trace or from the answer."""
        return (*self.trace.completeness.warnings, *self.notes)


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """What a report looks at."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    views: tuple[str, ...] = ()  # perspectives on bottlenecks; empty: the default ones
    top: int = 50  # bottlenecks of each view
    most_marks: int = MOST_MARKS  # on the page; more calls are drawn as runs
    diagnosis: DiagnosisOptions = field(default_factory=DiagnosisOptions)  # what the site knows


def document_of(
    trace: Trace, *, settings: ReportSettings | None = None, engine: Engine | None = None
) -> Document:
    """Run every analysis that the trace has enough detail for."""
    chosen = settings or ReportSettings()
    held = in_memory(trace)
    engine = plan_views(held, engine or LocalEngine(), chosen)
    notes: list[str] = []
    evidence = evidence_of_trace(held, engine, chosen.thresholds)
    insights = judge_job(evidence, held, engine, options=chosen.diagnosis)
    periodicity: Periodicity | None = None
    with _note_failure([]):
        periodicity = job_periodicity(held, engine, PeriodSettings()).whole
    bottlenecks: Bottlenecks | None = None
    if held.partitions:
        with _note_failure(notes):
            bottlenecks = find_bottlenecks(held, engine, top=chosen.top, views=chosen.views)
    phases_of_job: Phases | None = None
    with _note_failure([]):
        phases_of_job = phases(held, engine) if evidence.phases is None else Phases(evidence.phases)
    findings = rank_all(
        insights.findings,
        bottlenecks,
        periodicity,
        floor=max(
            max(chosen.thresholds.negligible_share, COSTLY) * (trace.job.runtime or 0.0),
            chosen.thresholds.negligible_seconds,
        ),
    )
    return Document(
        trace=held,
        characteristics=characterise(held, engine),
        findings=rank_findings(findings, insights.verdict, chosen.thresholds),
        not_checked=insights.not_checked,
        slowest=insights.slowest,
        phases=phases_of_job,
        bottlenecks=bottlenecks,
        periodicity=periodicity,
        timeline=timeline(held, engine, most=chosen.most_marks),
        by_file=by_file(held, engine),
        by_rank=by_rank(held, engine),
        by_target=by_target(held, engine),
        verdict=insights.verdict,
        by_host=by_host(held, engine),
        system_targets=held.file_facts.system_targets,
        notes=tuple(notes),
    )


def plan_views(trace: Trace, engine: Engine, chosen: ReportSettings) -> SharedViews:
    """Plan two passes: views with nothing known before, and those that need to know when I/O is.

    Phases belong to the second pass, and start it. Bottlenecks of a trace that is not in memory
    may not fit either: they have a pass of their own, which may fail alone.
    """
    if not trace.partitions:
        return SharedViews(engine, trace)
    first: list[View] = [
        *first_views(trace, chosen.thresholds),
        Span(),
        Totals(("file", "layer", "operation")),
        Totals(("rank", "layer", "operation")),
    ]
    if isinstance(trace.partitions[0], MemoryPartition):
        first.append(make_settings().main_view)
    planned = SharedViews(engine, trace, tuple(first))
    (span,) = planned.run(trace, Span())
    if span["calls"].item():
        planned.plan(timeline_view(span, most=chosen.most_marks))
    bandwidth = bandwidth_view(trace, planned, direction="both", by=("operation",))
    if bandwidth is not None:
        planned.plan(bandwidth)
    return planned


@contextmanager
def _note_failure(notes: list[str]) -> Iterator[None]:
    """Let a question that the trace cannot answer leave a note instead."""
    try:
        yield
    except AnalysisError as error:
        notes.append(str(error).partition("\n")[0])
