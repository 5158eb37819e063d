"""From a trace to what holds the job up: the order of the steps."""

from __future__ import annotations

import numpy as np

from ioprism.analyses.diagnosis import layers, overheads, requests, slow_parts, uneven_load
from ioprism.analyses.diagnosis.attribution import WORTH, attributed, ledger
from ioprism.analyses.diagnosis.counters_only import diagnose_counters
from ioprism.analyses.diagnosis.not_checked import not_checked
from ioprism.analyses.diagnosis.observations import observe
from ioprism.analyses.diagnosis.result import Diagnosis, HeldUp, Opportunity
from ioprism.analyses.diagnosis.situation import Situation, situation
from ioprism.engine.base import Engine
from ioprism.model.trace import Trace

# Slower parts of the system first: what they cost is told by peers that do the same work. Then
# work that is spread badly, what libraries do, calls that move no data, and requests.
FAMILIES = (slow_parts, uneven_load, layers, overheads, requests)


def diagnose(trace: Trace, engine: Engine) -> Diagnosis:
    """Return what holds the job up, largest saving first."""
    if not trace.partitions:
        return diagnose_counters(trace)
    seen = observe(trace, engine)
    if not seen.has_calls:
        return diagnose_counters(trace)
    return of_situation(situation(seen))


def of_situation(at: Situation) -> Diagnosis:
    """Find the causes in a prepared situation."""
    # A sample stands for the whole run: as if the run were as much shorter as its I/O.
    runtime = at.seen.runtime * at.seen.share
    held = float(at.held.sum())
    share = held / runtime if runtime > 0 else 0.0
    how = HeldUp(held, share, "phases")
    if share < WORTH:
        whole = Diagnosis(runtime, how, ledger=ledger((), held, held))
        return whole if at.seen.share == 1 else whole.scaled(1 / at.seen.share)
    candidates = [candidate for family in FAMILIES for candidate in family.find(at)]
    found = attributed(candidates, at.held, runtime)
    left = float(found.left.sum())
    whole = Diagnosis(
        runtime,
        how,
        causes=found.causes,
        ledger=ledger(found.causes, left, float(_transfer(at).sum())),
        opportunities=_opportunities(left, runtime - held, runtime),
        not_checked=not_checked(at.seen),
    )
    return whole if at.seen.share == 1 else whole.scaled(1 / at.seen.share)


def _transfer(at: Situation) -> np.ndarray:  # type: ignore[type-arg]
    """Seconds that each phase lasts at the rate the trace itself reaches."""
    chain = at.by_rank(np.where(at.calls.moves_data, at.queues.lone, 0.0)).max(axis=1)
    work = np.zeros(at.phases)
    if len(at.pieces.targets):
        work = at.by_target(at.queues.held).max(axis=1)
    return np.maximum(chain, work) + at.waiting


def _opportunities(left: float, computing: float, runtime: float) -> tuple[Opportunity, ...]:
    """I/O that goes well could be hidden behind computing, as far as that lasts."""
    hidden = min(left, max(0.0, computing))
    return (Opportunity("hide-io", hidden),) if hidden > WORTH * runtime else ()
