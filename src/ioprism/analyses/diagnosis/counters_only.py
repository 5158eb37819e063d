"""The same causes from counters alone: one record per file and rank, with wider intervals."""

from __future__ import annotations

import numpy as np

from ioprism.analyses.diagnosis import counted_heat, counted_load, counted_requests
from ioprism.analyses.diagnosis.attribution import attributed, ledger
from ioprism.analyses.diagnosis.counted import Counted, slowest_rank
from ioprism.analyses.diagnosis.counter_records import counter_records, seconds_of_ranks
from ioprism.analyses.diagnosis.heat_phases import heat_phases
from ioprism.analyses.diagnosis.not_checked import not_checked_in_counters
from ioprism.analyses.diagnosis.program_files import of_programs
from ioprism.analyses.diagnosis.result import Diagnosis, HeldUp
from ioprism.analyses.diagnosis.significance import WORTH
from ioprism.model.trace import Trace


def diagnose_counters(trace: Trace) -> Diagnosis:
    """Return what counters tell of what holds the job up."""
    runtime = trace.job.runtime or _last_moment(trace)
    found = counter_records(trace)
    if found is None or not found.seconds.any():
        return _of_unnamed_files(trace, runtime)
    by_rank = found.by_rank(found.seconds)
    heat = heat_phases(trace, found.ranks)
    ratio = 1.0 if heat is None else heat.waiting_ratio
    seconds, inside, unknown = slowest_rank(trace, found, runtime)
    held = min(runtime, seconds * ratio)
    how = HeldUp(
        held, held / runtime if runtime > 0 else 0.0, "counters" if heat is None else "heatmap"
    )
    missing = not_checked_in_counters(
        layouts={names for names in found.targets if names}, heat=heat is not None
    )
    if how.share < WORTH:
        return Diagnosis(runtime, how, ledger=ledger((), held, held), not_checked=missing)
    at = Counted(found, trace, by_rank, held, heat)
    families = (counted_heat, counted_load, counted_requests)
    candidates = [one for family in families for one in family.find(at)]
    kept = attributed(candidates, np.array([held]), runtime)
    left = float(kept.left.sum())
    library = min(left, inside)
    loaded = of_programs(found.files)[found.file]
    loading = held * float(found.seconds[loaded].sum() / found.seconds.sum())
    return Diagnosis(
        runtime,
        how,
        kept.causes,
        ledger(kept.causes, left, max(0.0, left - library - unknown), library, programs=loading),
        not_checked=missing,
    )


def _of_unnamed_files(trace: Trace, runtime: float) -> Diagnosis:
    """Where no record names its file, only how long I/O takes can be told."""
    seconds = float(seconds_of_ranks(trace).max(initial=0.0))
    held = min(runtime, seconds) if runtime > 0 else seconds
    if not held:
        return Diagnosis(runtime, HeldUp(0.0, 0.0, "nothing"))
    how = HeldUp(held, held / runtime if runtime > 0 else 0.0, "counters")
    missing = not_checked_in_counters(layouts=(), heat=False)
    return Diagnosis(runtime, how, ledger=ledger((), held, 0.0), not_checked=missing)


def _last_moment(trace: Trace) -> float:
    """When the last recorded call ended: for jobs that were killed."""
    latest = [
        float(table[name].max() or 0.0)  # type: ignore[arg-type]
        for table in (trace.counters[key] for key in trace.counters if key != "HEATMAP")
        for name in table.columns
        if name.endswith("END_TIMESTAMP") and table.height
    ]
    return max(latest, default=0.0)
