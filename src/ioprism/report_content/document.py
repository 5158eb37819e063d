"""Everything that was found out about a job, ready for every form of report."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ioprism.bottleneck_search.result import Bottlenecks
from ioprism.characteristics.totals import Characteristics
from ioprism.diagnosis.slowest_rank import SlowestRank
from ioprism.model.trace import Trace
from ioprism.model.verdict import SERIOUS, Finding, NotChecked, Verdict
from ioprism.periodicity.results import Rhythm
from ioprism.phase_detection.find import Phases
from ioprism.views.picture.timeline import Timeline


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
    rhythm: Rhythm | None
    timeline: Timeline
    by_file: pl.DataFrame  # see analyses/breakdown.py
    by_rank: pl.DataFrame
    by_target: pl.DataFrame  # see analyses/storage_path.py
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
