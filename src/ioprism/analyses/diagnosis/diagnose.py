"""From a trace to what holds the job up: the order of the steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from ioprism.analyses.diagnosis import (
    layers,
    overheads,
    requests,
    slow_parts,
    slow_sessions,
    uneven_load,
)
from ioprism.analyses.diagnosis.attribution import WORTH, attributed, ledger
from ioprism.analyses.diagnosis.calls import Floats
from ioprism.analyses.diagnosis.counters_only import diagnose_counters
from ioprism.analyses.diagnosis.not_checked import not_checked
from ioprism.analyses.diagnosis.observations import observe
from ioprism.analyses.diagnosis.process_control import without_process_control
from ioprism.analyses.diagnosis.result import Diagnosis, HeldUp, Opportunity
from ioprism.analyses.diagnosis.situation import Candidate, Situation, situation
from ioprism.analyses.diagnosis.stages import stages
from ioprism.analyses.diagnosis.training import find as find_no_prefetch
from ioprism.analyses.diagnosis.training import training
from ioprism.engine.base import Engine
from ioprism.engine.local import LocalEngine
from ioprism.model.trace import Trace
from ioprism.plugins import declared, load

# Slower parts of the system first: what they cost is told by peers that do the same work. Then
# work that is spread badly, what libraries do, calls that move no data, and requests.
FAMILIES = (uneven_load, layers, overheads, requests)
GROUP = "ioprism.causes"  # plug-ins' families come before ours: they know a site or program
WELL_ABOVE = 1.15  # times another saving: not the same


def diagnose(trace: Trace, engine: Engine | None = None) -> Diagnosis:
    """Return what holds the job up, largest saving first."""
    if not trace.partitions:
        return diagnose_counters(trace)
    trace = without_process_control(trace)
    run = training(trace)
    seen = observe(trace if run is None else run.uncovered(trace), engine or LocalEngine())
    if not seen.has_calls:
        return diagnose_counters(trace)
    at = situation(seen)
    if run is not None:
        found = of_situation(at, first=find_no_prefetch(at, run), how="uncovered")
        missing = tuple(one for one in found.not_checked if one.code != "no-prefetch")
        return replace(found, stages=stages(run.stages), not_checked=missing)
    return of_situation(at, how="phases" if seen.waits else "ranks")


def of_situation(
    at: Situation, *, first: Iterable[Candidate] = (), how: str = "phases"
) -> Diagnosis:
    """Find the causes in a prepared situation."""
    # A sample stands for the whole run: as if the run were as much shorter as its I/O.
    runtime = at.seen.runtime * at.seen.share
    held = float(at.held.sum())
    share = held / runtime if runtime > 0 else 0.0
    held_up = HeldUp(held, share, how)
    if share < WORTH:
        whole = Diagnosis(runtime, held_up, ledger=ledger((), held, held))
        return whole if at.seen.share == 1 else whole.scaled(1 / at.seen.share)
    families = (*map(load, declared(GROUP)), *FAMILIES)
    others = [one for family in families for one in family.find(at)]
    busy_target = any(one.code == "hot-target" for one in others)
    slow = [one for one in _slow(at) if not (busy_target and one.code == "slow-rank")]
    candidates = [*first, *slow, *others]
    found = attributed(candidates, at.held, runtime)
    left = float(found.left.sum())
    whole = Diagnosis(
        runtime,
        held_up,
        causes=found.causes,
        ledger=ledger(found.causes, left, float(_transfer(at).sum())),
        opportunities=_opportunities(left, runtime - held, runtime),
        not_checked=not_checked(at.seen),
    )
    return whole if at.seen.share == 1 else whole.scaled(1 / at.seen.share)


def _slow(at: Situation) -> Iterator[Candidate]:
    """Parts whose single calls are slower, or whose calls are together.

    Where both name the same part, the sum tells more if syncs and closes wait for it as well.
    """
    single = list(slow_parts.find(at))
    summed = {_name(one): one for one in slow_sessions.find(at)}
    for one in single:
        other = summed.get(_name(one))
        yield other if other and other.saving > WELL_ABOVE * one.saving else one
    if all(not one.code.startswith("slow-") for one in single):
        yield from summed.values()


def _name(candidate: Candidate) -> str:
    return f"{candidate.code} {sorted(candidate.culprit.items())}"


def _transfer(at: Situation) -> Floats:
    """Seconds that each phase lasts at the rate the trace itself reaches."""
    chain = at.busiest_rank(np.where(at.calls.moves_data, at.queues.lone, 0.0))
    work = at.busiest_target(at.queues.held)
    return np.maximum(chain, work) + at.waiting


def _opportunities(left: float, computing: float, runtime: float) -> tuple[Opportunity, ...]:
    """I/O that goes well could be hidden behind computing, as far as that lasts."""
    hidden = min(left, max(0.0, computing))
    return (Opportunity("hide-io", hidden),) if hidden > WORTH * runtime else ()
