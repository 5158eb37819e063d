"""A stretch of time in which the same work takes longer for all ranks.

Code: interference.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ioprism.diagnosis.checks.sessions import session_seconds, work_classes
from ioprism.diagnosis.heat import HeatPhases
from ioprism.diagnosis.limits import MINOR, NEARLY_ALL, Limits
from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.replay import Change, Proposal, Scenario, contrast
from ioprism.diagnosis.rows import READ, Flags, Floats, Ints, medians_by, outlier_test
from ioprism.model.arrays import median
from ioprism.model.verdict import Decision

MAX_STEPS = 100  # phases, or groups of neighbouring ones, that are searched for a slow run
PERMUTATIONS = 1999  # of the phases, for the probability of a run by chance
DECIDE = Decision(
    "run the job again at another time, or give the servers' counters",
    "ioprism diagnose LOG --servers STORE",
)


def check(observed: Observed) -> Iterator[Proposal]:
    """Find neighbouring phases that took longer than all others."""
    slow = _slow_sessions(observed)
    if slow is not None:
        yield slow
    elif observed.heat is not None and not observed.per_call and len(observed.phases) == 1:
        yield from _slow_bins(observed, observed.heat)


def _slow_sessions(observed: Observed) -> Proposal | None:
    limits = observed.limits
    if not (observed.rows.rank >= 0).any() or len(observed.phases) < limits.min_phases:
        return None
    seconds = session_seconds(observed)
    phase, rank = np.nonzero(seconds > 0)
    work = work_classes(observed, phase, rank)
    log = np.log(seconds[phase, rank])
    names, middle = medians_by(work, log)
    counts = np.bincount(np.searchsorted(names, work))
    level = log - middle[np.searchsorted(names, work)]
    compared = counts[np.searchsorted(names, work)] >= limits.min_phases
    phase, rank, level = phase[compared], rank[compared], level[compared]
    present, levels = medians_by(phase, level)
    main = (
        observed.stall[present] > MINOR * median(observed.stall[present])
        if len(present)
        else present
    )
    present, levels = present[main], levels[main]
    if len(present) < limits.min_phases:
        return None
    run = best_run(levels, limits.slower)
    if run is None:
        return None
    inside = np.zeros(len(present), np.bool_)
    inside[run[0] : run[1] + 1] = True
    member = np.isin(phase, present[inside])
    p_value = _chance(levels, inside, limits)
    if p_value > limits.significance or not _everywhere(rank, level, member, limits):
        return None
    slow = np.isin(np.arange(len(observed.phases)), present[inside])
    if inside[0] and _is_cold(observed, slow):
        return None
    return _proposal(observed, slow, phase, rank, level, p_value)


def _is_cold(observed: Observed, slow: Flags) -> bool:
    """Whether the first phases mostly read: a cold cache is not interference."""
    inside = slow[observed.phase]
    reads = inside & (observed.rows.kind == READ)
    return float(observed.own[reads].sum()) > 0.5 * float(observed.own[inside].sum())


def _proposal(
    observed: Observed, slow: Flags, phase: Ints, rank: Ints, level: Floats, p_value: float
) -> Proposal:
    """Sessions of the slow phases take what they take in other phases."""
    factor = np.ones((len(observed.phases), observed.io_ranks))
    factor[phase, rank] = np.where(slow[phase], np.exp(-np.maximum(0.0, level)), 1.0)
    chain = observed.own * observed.of_sessions(factor, 1.0)
    healthy = observed.stall[~slow & (observed.stall > 0)]
    # Phases of the same work last at most as long as the others do.
    usual = median(healthy) if len(healthy) else 0.0
    waiting = np.where(slow, np.minimum(observed.waiting_after(chain), usual), observed.waiting)
    likely = Scenario(chain, waiting=waiting)
    # One slow phase may be an incident, or a cache that is full: others' I/O takes its time.
    worst = likely if slow.sum() > 1 else Scenario(observed.own)
    changed = slow[observed.phase] & observed.rows.moves_data
    peers = ~changed & observed.rows.moves_data
    return Proposal(
        "interference",
        _span(observed, slow),
        slow[observed.phase],
        Change(likely, worst, likely),
        p_value,
        contrast(observed, changed, peers, "interference"),
        DECIDE,
    )


def _span(observed: Observed, slow: Flags) -> dict[str, float]:
    """From when to when: in the middle between slow phases and their neighbours."""
    phases, places = observed.phases, np.flatnonzero(slow)
    first, last = int(places[0]), int(places[-1])
    begin = (phases.end[first - 1] + phases.start[first]) / 2 if first else 0.0
    after = phases.start[last + 1] if last + 1 < len(phases) else observed.runtime
    return {"from": float(begin), "to": float((phases.end[last] + after) / 2)}


def _everywhere(rank: Ints, level: Floats, member: Flags, limits: Limits) -> bool:
    """Whether most ranks are slower then, not only one part of the system."""
    ranks, then = medians_by(rank[member], level[member])
    others, usual = medians_by(rank[~member], level[~member])
    both, mine, theirs = np.intersect1d(ranks, others, return_indices=True)
    return len(both) > 0 and bool(
        (then[mine] > usual[theirs] + np.log(limits.slower) / 2).mean() >= limits.everywhere
    )


def _chance(levels: Floats, inside: Flags, limits: Limits) -> float:
    """The probability that phases in another order have a run that stands out as much.

    A single phase stands out in any order: it is compared with the spread of the others.
    """
    if inside.sum() == 1:
        test = outlier_test(
            float(levels[inside][0]), levels[~inside], min_spread=limits.part_spread
        )
        return min(1.0, len(levels) * test)
    above = levels - median(levels) - np.log(limits.slower)
    shuffled = np.random.default_rng(seed=1).permuted(
        np.broadcast_to(above, (PERMUTATIONS, len(above))), axis=1
    )
    most = _largest_run(above[None, :])[0]
    by_order = float((1 + (_largest_run(shuffled) >= most - 1e-12).sum()) / (1 + PERMUTATIONS))
    tried = len(levels) * (len(levels) + 1) / 2
    middle = median(levels[inside])
    by_size = tried * outlier_test(
        middle, levels[~inside], min_spread=limits.part_spread, values=int(inside.sum())
    )
    return min(1.0, 2 * min(by_order, by_size))


def _largest_run(values: Floats) -> Floats:
    """The largest sum of neighbours, row by row (Kadane's algorithm)."""
    best = running = np.zeros(len(values))
    for column in values.T:
        running = np.maximum(0.0, running + column)
        best = np.maximum(best, running)
    return best


def best_run(level: Floats, slower: float) -> tuple[int, int] | None:
    """The run of neighbours, less than half of all, that stands out most."""
    step = -(-len(level) // MAX_STEPS)
    levels = np.array([median(level[b : b + step]) for b in range(0, len(level), step)])
    best, most = None, 0.0
    for first in range(len(levels)):
        for last in range(first, min(len(levels), first + (len(levels) - 1) // 2)):
            others = np.concatenate((levels[:first], levels[last + 1 :]))
            steps = levels[first : last + 1] - np.quantile(others, NEARLY_ALL)
            if steps.min() > np.log(slower) and steps.sum() > most:
                best, most = (
                    (first * step, min((last + 1) * step, len(level)) - 1),
                    float(steps.sum()),
                )
    return best


def _slow_bins(observed: Observed, heat: HeatPhases) -> Iterator[Proposal]:
    """The same by the heat map, where counters show no phases."""
    limits, (error, least) = observed.limits, observed.limits.heat_bins
    moved, seconds = np.array([sum(phase.values()) for phase in heat.moved]), np.array(heat.seconds)
    if len(moved) < limits.min_phases:
        return
    present = np.flatnonzero(moved > MINOR * median(moved))
    if len(present) < limits.min_phases:
        return
    cost = seconds[present] / moved[present]
    run = best_run(np.log(cost), limits.slower)
    if run is None:
        return
    slow = present[run[0] : run[1] + 1]
    if run[0] == 0 and _is_cold(observed, np.ones(1, np.bool_)):
        return
    healthy = np.setdiff1d(present, slow)
    longer = seconds - moved * float(np.mean(seconds[healthy] / moved[healthy]))
    if longer[slow].min() < least * heat.width or not _everywhere_in_bins(
        heat, slow, healthy, limits
    ):
        return
    tried = len(present) * (len(present) + 1) / 2
    test = tried * outlier_test(
        median(longer[slow]),
        longer[healthy],
        min_spread=error * heat.width,
        values=len(slow),
    )
    stall = float(observed.stall.sum())
    saved = min(float(longer[slow].sum()), stall)
    first, last = int(slow[0]), int(slow[-1])
    before = heat.end[first - 1] if first else 0.0
    after = heat.start[last + 1] if last + 1 < len(heat) else heat.end[last]
    # Calls may fill little of their bins: at worst, phases are longer by their part of the bins.
    parts = (
        saved,
        saved * min(1.0, stall / sum(heat.seconds)),
        saved + error * heat.width * len(slow),
    )
    scenarios = [Scenario(observed.own * max(0.0, 1 - part / max(stall, 1e-12))) for part in parts]
    every = np.ones(len(observed.rows), np.bool_)
    yield Proposal(
        "interference",
        {"from": (before + heat.start[first]) / 2, "to": (heat.end[last] + after) / 2},
        every,
        Change(*scenarios),
        min(1.0, test),
        contrast(observed, every, None, "interference"),
        DECIDE,
    )


def _everywhere_in_bins(heat: HeatPhases, slow: Ints, healthy: Ints, limits: Limits) -> bool:
    """Whether most ranks are busy longer then."""

    def usual(rank: int, phases: Ints) -> float:
        return median(np.array([heat.busy[phase].get(rank, 0.0) for phase in phases]))

    longer = 1 + (limits.slower - 1) / 2
    slower_ranks = sum(usual(r, slow) > longer * usual(r, healthy) for r in range(heat.ranks))
    return slower_ranks >= limits.everywhere * heat.ranks
