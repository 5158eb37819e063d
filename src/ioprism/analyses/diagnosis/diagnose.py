"""From a trace to what holds the job up: the order of the steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
from ioprism.analyses.diagnosis.attribution import Candidate, attributed, ledger
from ioprism.analyses.diagnosis.calls import Floats
from ioprism.analyses.diagnosis.contrasts import contrast_of
from ioprism.analyses.diagnosis.counters.diagnose import diagnose_counters
from ioprism.analyses.diagnosis.first_reads import first_read_seconds
from ioprism.analyses.diagnosis.not_checked import not_checked
from ioprism.analyses.diagnosis.observations import observe
from ioprism.analyses.diagnosis.process_control import without_process_control
from ioprism.analyses.diagnosis.program_files import program_seconds
from ioprism.analyses.diagnosis.result import Cause, Diagnosis, HeldUp, Opportunity, Saving
from ioprism.analyses.diagnosis.sampling import FIRST_LOOK
from ioprism.analyses.diagnosis.significance import WORTH
from ioprism.analyses.diagnosis.situation import Situation, situation
from ioprism.analyses.diagnosis.stages import stages
from ioprism.analyses.diagnosis.training import find as find_no_prefetch
from ioprism.analyses.diagnosis.training import training
from ioprism.analyses.evidence import evidence_of_counters
from ioprism.engine.ahead import LookingAhead
from ioprism.engine.base import Engine
from ioprism.engine.local import LocalEngine
from ioprism.model.trace import Trace

# Slower parts of the system first: what they cost is told by peers that do the same work. Then
# work that is spread badly, what libraries do, calls that move no data, and requests.
FAMILIES = (uneven_load, layers, overheads, requests)
MOST_UNTRACED = 0.5  # of the calls that counters count: with more, counters tell more
WELL_ABOVE = 1.15  # times another saving: not the same


Finder = Callable[[Situation], Iterable[Candidate]]  # what a plug-in declares


def diagnose(
    trace: Trace, engine: Engine | None = None, *, more: Sequence[Finder] = ()
) -> Diagnosis:
    """Return what holds the job up, largest saving first.

    Args:
        trace: the job.
        engine: what collects the calls.
        more: further causes to look for, in traces with single calls.
    """
    if not trace.partitions:
        return diagnose_counters(evidence_of_counters(trace))
    trace = without_process_control(trace)
    ahead = LookingAhead(engine or LocalEngine(), trace, FIRST_LOOK)
    run = training(trace, ahead)
    seen = observe(trace if run is None else run.uncovered(trace), ahead)
    if not seen.has_calls or seen.untraced > MOST_UNTRACED:
        return diagnose_counters(evidence_of_counters(trace))
    at = situation(seen)
    if run is not None:
        found = of_situation(at, first=find_no_prefetch(at, run), how="uncovered", more=more)
        missing = tuple(one for one in found.not_checked if one.code != "no-prefetch")
        return replace(found, stages=stages(run.stages), not_checked=missing)
    how = "alone" if seen.ranks == 1 else "phases" if seen.waits else "ranks"
    return of_situation(at, how=how, more=more)


def of_situation(
    at: Situation,
    *,
    first: Iterable[Candidate] = (),
    how: str = "phases",
    more: Sequence[Finder] = (),
) -> Diagnosis:
    """Find the causes in a prepared situation."""
    # A sample stands for the whole run: as if the run were as much shorter as its I/O.
    runtime = at.seen.runtime * at.seen.share
    held = float(at.held.sum())
    share = held / runtime if runtime > 0 else 0.0
    held_up = HeldUp(held, share, how)
    if share < WORTH:
        causes = tuple(_uneven_computing(at))
        whole = Diagnosis(runtime, held_up, causes, ledger=ledger((), held, held))
        return whole if at.seen.share == 1 else whole.scaled(1 / at.seen.share)
    # Whoever adds a cause knows the site or the program: it explains before our general ones do.
    finders = (*more, *(family.find for family in FAMILIES))
    others = [one for find in finders for one in find(at)]
    busy_target = any(one.code == "hot-target" for one in others)
    slow = [one for one in _slow(at) if not (busy_target and one.code == "slow-rank")]
    candidates = [*first, *slow, *others]
    found = attributed(candidates, at.held, runtime)
    left = sum(found.left)
    transfer, library = float(_transfer(at).sum()), float(at.library.sum())
    whole = Diagnosis(
        runtime,
        held_up,
        causes=(*found.causes, *_uneven_computing(at)),
        ledger=ledger(
            found.causes, left, transfer, library, first_read_seconds(at), program_seconds(at)
        ),
        opportunities=_opportunities(left, runtime - held, runtime),
        not_checked=not_checked(at),
    )
    return whole if at.seen.share == 1 else whole.scaled(1 / at.seen.share)


def _uneven_computing(at: Situation) -> Iterator[Cause]:
    """Who keeps others waiting without any I/O: said, so that nobody looks for it there."""
    if at.late is None:
        return
    theirs = np.isin(at.calls.rank, at.late.ranks)
    yield Cause(
        "compute-imbalance",
        {"ranks": [int(at.seen.rank_numbers[rank]) for rank in at.late.ranks]},
        Saving(0.0, 0.0, 0.0, 0.0),
        1 - at.late.p_value,
        contrast_of(at, theirs, ~theirs, "compute-imbalance"),
        {"waited": at.late.waited, "meetings": at.late.meetings},
    )


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
    """Seconds that each phase lasts at the rate the trace itself reaches, outside libraries."""
    chain = at.busiest_rank(np.where(at.calls.moves_data, at.queues.lone, 0.0))
    work = at.busiest_target(at.queues.held)
    return np.maximum(chain, work) + np.maximum(0.0, at.waiting - at.library)


def _opportunities(left: float, computing: float, runtime: float) -> tuple[Opportunity, ...]:
    """I/O that goes well could be hidden behind computing, as far as that lasts."""
    hidden = min(left, max(0.0, computing))
    return (Opportunity("hide-io", hidden),) if hidden > WORTH * runtime else ()
