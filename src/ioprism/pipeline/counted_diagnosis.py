"""From what counters tell of a job to its diagnosis in words, without a table library."""

from __future__ import annotations

from dataclasses import replace

from ioprism.analyses.diagnosis.counters.diagnose import diagnose_counters
from ioprism.analyses.diagnosis.result import Diagnosis, LedgerLine
from ioprism.analyses.evidence import Evidence, evidence_of_log
from ioprism.analyses.slowest_rank import SlowestRank, slowest_rank
from ioprism.formats.darshan.plain import PlainLog
from ioprism.rules.causes.circumstances import Surroundings
from ioprism.rules.causes.wording import worded
from ioprism.rules.registry import Insights, judge
from ioprism.settings import Thresholds


def diagnose_log(log: PlainLog) -> Diagnosis:
    """Return what holds the job of a log up that holds counters alone."""
    return diagnosed_counters(evidence_of_log(log, Thresholds()))


def diagnosed_counters(evidence: Evidence, insights: Insights | None = None) -> Diagnosis:
    """Find the causes and word them; findings become their symptoms."""
    slowest = slowest_rank(evidence) if insights is None else insights.slowest
    diagnosis = with_untraced(diagnose_counters(evidence), slowest)
    if not diagnosis.causes:
        return diagnosis
    around = Surroundings(evidence.job, evidence.files, evidence.modules)
    findings = (insights or judge(evidence)).findings
    return worded(diagnosis, around, [finding.code for finding in findings])


def with_untraced(found: Diagnosis, slowest: SlowestRank | None) -> Diagnosis:
    """Hold the job up for as long as its slowest rank is in I/O, by the counters, at least.

    Extended tracing has reads and writes only, and counters of MPI-IO leave out what the rank
    does besides; what counters have beyond that is told by itself.
    """
    seconds = 0.0 if slowest is None else min(slowest.seconds, found.runtime)
    beyond = seconds - found.held_up.seconds
    if beyond <= 0 or found.held_up.how in ("uncovered", "nothing"):
        return found
    held_up = replace(found.held_up, seconds=seconds, share=seconds / found.runtime)
    return replace(found, held_up=held_up, ledger=(*found.ledger, LedgerLine("untraced", beyond)))
