"""From what counters tell of a job to its diagnosis in words, without a table library."""

from __future__ import annotations

from dataclasses import replace

from ioprism.analyses.diagnosis.counters.diagnose import diagnose_counters
from ioprism.analyses.diagnosis.result import Diagnosis, LedgerLine
from ioprism.analyses.evidence import Evidence
from ioprism.analyses.slowest_rank import SlowestRank
from ioprism.rules.causes.circumstances import Surroundings
from ioprism.rules.causes.wording import worded
from ioprism.rules.registry import Insights


def diagnosed_counters(evidence: Evidence, insights: Insights) -> Diagnosis:
    """Find the causes and word them; findings become their symptoms."""
    diagnosis = with_untraced(diagnose_counters(evidence), insights.slowest)
    if not diagnosis.causes:
        return diagnosis
    around = Surroundings(evidence.job, evidence.files, evidence.modules)
    return worded(diagnosis, around, [finding.code for finding in insights.findings])


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
