"""From counters to what holds the job up: one record per file and rank, with wider intervals."""

from __future__ import annotations

import re

from ioprism.analyses.diagnosis.attribution import attributed, ledger
from ioprism.analyses.diagnosis.counters import load, requests, slow_times
from ioprism.analyses.diagnosis.counters.counted import Counted
from ioprism.analyses.diagnosis.counters.heat import HeatPhases, heat_phases
from ioprism.analyses.diagnosis.counters.records import counter_records
from ioprism.analyses.diagnosis.not_checked import (
    not_checked_above_storage,
    not_checked_in_counters,
)
from ioprism.analyses.diagnosis.result import Diagnosis, HeldUp
from ioprism.analyses.diagnosis.significance import WORTH
from ioprism.analyses.evidence import Evidence
from ioprism.analyses.slowest_rank import slowest_rank
from ioprism.model.usage import OF_PROGRAMS, OF_SYSTEM

HEAT_LAYERS = ("posix", "stdio")  # that touch storage, the first that moved bytes counts
FAMILIES = (slow_times, load, requests)
_of_system, _of_programs = re.compile(OF_SYSTEM).match, re.compile(OF_PROGRAMS).search


def diagnose_counters(evidence: Evidence) -> Diagnosis:
    """Return what counters tell of what holds the job up."""
    runtime = evidence.runtime or evidence.last_moment
    records = counter_records(evidence)
    total = sum(one.seconds for one in records)
    if not total:
        return _without_causes(evidence, runtime)
    ranks = max(evidence.job.ranks or 1, max(one.rank for one in records) + 1)
    heat = _heat(evidence, ranks)
    found = Counted(evidence, records, ranks)
    seconds, inside, unknown = found.slowest_rank(runtime)
    held = min(runtime, seconds * (1.0 if heat is None else heat.waiting_ratio))
    how = HeldUp(held, _share(held, runtime), "counters" if heat is None else "heatmap")
    missing = not_checked_in_counters(
        layouts={tuple(names) for one in records if (names := one.striping.targets)},
        heat=heat is not None,
    )
    if how.share < WORTH:
        return Diagnosis(runtime, how, ledger=ledger((), held, held), not_checked=missing)
    at = Counted(evidence, records, ranks, held, heat)
    candidates = [one for family in FAMILIES for one in family.find(at)]
    kept = attributed(candidates, [held], runtime)
    left = sum(kept.left)
    library = min(left, inside)
    paths = ((one.seconds, at.path(one.file)) for one in records)
    loading = sum(own for own, path in paths if _of_system(path) or _of_programs(path))
    return Diagnosis(
        runtime,
        how,
        kept.causes,
        ledger(
            kept.causes,
            left,
            max(0.0, left - library - unknown),
            library,
            programs=held * loading / total,
        ),
        not_checked=missing,
    )


def _heat(evidence: Evidence, ranks: int) -> HeatPhases | None:
    phases = (heat_phases(evidence.heat.get(layer, ()), ranks) for layer in HEAT_LAYERS)
    return next((found for found in phases if found is not None), None)


def _without_causes(evidence: Evidence, runtime: float) -> Diagnosis:
    """Where no record names its file, or all are of MPI-IO, only how long I/O takes is known."""
    slowest = slowest_rank(evidence)
    held = 0.0 if slowest is None else slowest.seconds
    if not held:
        return Diagnosis(runtime, HeldUp(0.0, 0.0, "nothing"))
    how = HeldUp(held, _share(held, runtime), "counters")
    missing = not_checked_above_storage()
    return Diagnosis(runtime, how, ledger=ledger((), held, 0.0), not_checked=missing)


def _share(seconds: float, runtime: float) -> float:
    return seconds / runtime if runtime > 0 else 0.0
