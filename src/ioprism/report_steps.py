"""From a trace to its report: the order of the analyses, and only the order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import polars as pl

from ioprism.bottleneck_search.result import Bottlenecks
from ioprism.bottleneck_search.steps import analyse as find_bottlenecks
from ioprism.characteristics.breakdown import by_file, by_host, by_rank, by_target
from ioprism.characteristics.totals import Characteristics, characterise
from ioprism.diagnosis.evidence import Evidence, evidence_of_trace
from ioprism.diagnosis.rank_balance import SlowestRank
from ioprism.diagnosis.ranking import COSTLY, rank_all, rank_findings
from ioprism.diagnosis.sampling import FIRST_LOOK
from ioprism.diagnosis.steps import DiagnosisOptions, judge_job
from ioprism.engine.base import Engine
from ioprism.engine.local import LocalEngine
from ioprism.engine.prepared import SharedViews, in_memory
from ioprism.errors import AnalysisError
from ioprism.model.trace import Trace
from ioprism.model.verdict import SERIOUS, Finding, NotChecked, Verdict
from ioprism.periodicity.of_job import PeriodSettings, job_periodicity
from ioprism.periodicity.results import Periodicity
from ioprism.phase_detection.find import Phases, phases
from ioprism.settings import Thresholds
from ioprism.views.calls.totals import Totals
from ioprism.views.picture.timeline import MOST_MARKS, Span, Timeline, timeline
from ioprism.views.time.bandwidth_changes import Extent


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
    by_file: pl.DataFrame  # see characteristics/breakdown.py
    by_rank: pl.DataFrame
    by_target: pl.DataFrame  # see characteristics/breakdown.py
    by_host: pl.DataFrame
    system_targets: int | None = None  # that the file system has, where the trace says so
    slowest: SlowestRank | None = None  # the rank that is longest in I/O calls
    notes: tuple[str, ...] = ()  # analyses that could not answer, and why

    @property
    def serious(self) -> tuple[Finding, ...]:
        """The findings that cost time."""
        return tuple(f for f in self.findings if f.severity in SERIOUS)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is missing from the trace or from the answer."""
        return (*self.trace.completeness.warnings, *self.notes)


Result = TypeVar("Result")

# Asked for by several of the analyses, with nothing known before.
SEVERAL_TIMES = (
    *FIRST_LOOK,
    Extent(),
    Span(),
    Totals(("file", "layer", "operation")),
    Totals(("rank", "layer", "operation")),
)


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
    engine = SharedViews(engine or LocalEngine(), held, SEVERAL_TIMES if held.partitions else ())
    notes: list[str] = []
    evidence = evidence_of_trace(held, engine, chosen.thresholds)
    insights = judge_job(evidence, held, engine, options=chosen.diagnosis)
    periodicity = _attempt(lambda: job_periodicity(held, engine, PeriodSettings()).whole, [])
    bottlenecks = _attempt(lambda: _bottlenecks(held, engine, chosen), notes)
    findings = rank_all(
        insights.findings,
        bottlenecks,
        periodicity,
        floor=max(_negligible(trace, chosen.thresholds), COSTLY * (trace.job.runtime or 0.0)),
    )
    return Document(
        trace=held,
        characteristics=characterise(held, engine),
        findings=rank_findings(findings, insights.verdict, chosen.thresholds),
        not_checked=insights.not_checked,
        slowest=insights.slowest,
        phases=_attempt(lambda: _phases(held, engine, evidence), []),
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
