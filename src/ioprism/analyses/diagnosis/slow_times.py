"""A stretch of time in which all ranks do the same work slower: other jobs interfere."""

from __future__ import annotations

import numpy as np

from ioprism.analyses.diagnosis.attribution import Candidate
from ioprism.analyses.diagnosis.calls import Flags, Floats, Ints
from ioprism.analyses.diagnosis.cells import Cells, mend, phase_seconds
from ioprism.analyses.diagnosis.contrasts import contrast_of
from ioprism.analyses.diagnosis.limits import FEWEST_PHASES, SLOWER, SPREAD
from ioprism.analyses.diagnosis.significance import SIGNIFICANT, outlier_test
from ioprism.analyses.diagnosis.situation import Situation, medians_by
from ioprism.analyses.diagnosis.stretches import best_run


def slow_stretch(at: Situation, cells: Cells, seconds: Floats) -> tuple[Candidate, Floats] | None:
    """Return the neighbouring phases that are slower than all others, and the mended seconds."""
    present, level = _phase_levels(at, seconds)
    if len(present) < FEWEST_PHASES:
        return None
    best = best_run(level.tolist())
    if best is None:
        return None
    inside = np.zeros(len(present), np.bool_)
    inside[best[0] : best[1] + 1] = True
    tried = len(present) * (len(present) + 1) / 2
    p_value = tried * outlier_test(float(np.median(level[inside])), level[~inside], floor=SPREAD)
    member = np.isin(cells.phase, present[inside])
    if p_value > SIGNIFICANT or not _everywhere(cells, member):
        return None
    slow = np.isin(np.arange(at.phases), present[inside])
    mended = mend(at, cells, member, seconds)
    return _candidate(at, seconds, mended, slow, p_value), mended


def _candidate(
    at: Situation, seconds: Floats, mended: Floats, slow: Flags, p_value: float
) -> Candidate:
    before = phase_seconds(at, seconds)
    after = np.minimum(before, phase_seconds(at, mended))
    sound = np.median(before[~slow & (before > 0)])
    saved = np.where(slow, before - np.minimum(after, sound), 0.0)
    changed = slow[at.seen.phase] & at.calls.moves_data
    return Candidate(
        "interference",
        _span(at, slow),
        saved,
        0.93 * float(saved.sum()),
        min(float(before[slow].sum()), 1.05 * float(saved.sum())),
        p_value,
        contrast_of(at, changed, ~changed & at.calls.moves_data, "interference"),
    )


def _span(at: Situation, slow: Flags) -> dict[str, float]:
    """From when to when: in the middle between slow phases and their neighbours."""
    phases, places = at.seen.phases, np.flatnonzero(slow)
    first, last = int(places[0]), int(places[-1])
    begin = (phases.end[first - 1] + phases.start[first]) / 2 if first else 0.0
    after = phases.start[last + 1] if last + 1 < at.phases else at.seen.runtime
    return {"from": float(begin), "to": float((phases.end[last] + after) / 2)}


def _phase_levels(at: Situation, seconds: Floats) -> tuple[Ints, Floats]:
    """Phases that move data, and how long their calls take against their class, as logarithm."""
    data = at.calls.moves_data & (at.calls.bytes > 0)
    names, middle = medians_by(at.queues.classes[data], seconds[data])
    expected = middle[np.searchsorted(names, at.queues.classes[data])]
    phase = at.seen.phase[data]
    spent = np.bincount(phase, seconds[data], minlength=at.phases)
    usual = np.bincount(phase, expected, minlength=at.phases)
    present = np.flatnonzero((usual > 0.1 * np.median(usual[usual > 0])) & (spent > 0))
    return present, np.log(spent[present] / usual[present])


def _everywhere(cells: Cells, member: Flags) -> bool:
    """Whether most ranks are slower then, not only one part of the system."""
    ranks, then = medians_by(cells.rank[member], cells.level[member])
    others, usual = medians_by(cells.rank[~member], cells.level[~member])
    both, mine, theirs = np.intersect1d(ranks, others, return_indices=True)
    slower = then[mine] > usual[theirs] + np.log(SLOWER) / 2
    return len(both) > 0 and bool(slower.mean() >= 0.6)
