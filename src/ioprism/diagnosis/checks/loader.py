"""A training loop that reads its samples itself: loading and computing take turns.

Code: no-prefetch. Application events show the stages of a training run; without them, a process
that reads several whole files, computes, and reads the next ones shows the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ioprism.diagnosis.limits import MAJORITY, MINOR, NEARLY_ALL, NEGLIGIBLE
from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.replay import Change, Proposal, Scenario, propose
from ioprism.diagnosis.rows import ALL_RANKS, READ, Flags, Floats, unique
from ioprism.model.arrays import median, unite
from ioprism.model.verdict import Decision

if TYPE_CHECKING:  # stages of a training run need a table library, which counters do without
    from ioprism.diagnosis.training import Training

RECORD = Decision(
    "record the application's stages", "DFTracer with its Python annotations (pip install dftracer)"
)


def check(observed: Observed) -> Iterator[Proposal]:
    """Find loads that could overlap with the computation before them."""
    if observed.training is not None:
        yield from _by_stages(observed, observed.training)
    elif "times" in observed.detail:
        yield from _by_pattern(observed)


def _by_stages(observed: Observed, run: Training) -> Iterator[Proposal]:
    if run.in_the_loop < MAJORITY:
        return
    covered, first, loads = _covered_by_stages(observed, run)
    reads = observed.rows.kind == READ
    if not covered.any() or not reads.any():
        return
    yield _proposal(observed, covered, first, {"stage": run.loading_stage}, loads)


def _proposal(
    observed: Observed, covered: Floats, first: Flags, culprit: dict[str, object], loads: int
) -> Proposal:
    """Loads take only what computing before them does not cover."""
    reads = (observed.rows.kind == READ) & ~observed.of_programs
    hidden, (worst, _) = np.where(first, 0.0, covered), observed.limits.unsure

    def scenario(seconds: Floats, part: float) -> Scenario:
        return Scenario(observed.own - part * seconds)

    change = Change(scenario(hidden, 1.0), scenario(hidden, worst), scenario(covered, 1.0))
    culprit = {**culprit, "directory": observed.directory(reads)}
    facts = {"batches": loads}
    return propose(
        observed, "no-prefetch", covered > 0, change, RECORD, facts, culprit=culprit, slow=reads
    )


def _covered_by_stages(observed: Observed, run: Training) -> tuple[Floats, Flags, int]:
    """Set what each rank reads against what it computed just before."""
    rows = observed.rows
    covered, first = np.zeros(len(rows)), np.zeros(len(rows), np.bool_)
    loads = 0
    for place, number in enumerate(observed.rank_numbers.tolist()):
        cover = run.computing.get(number)
        own = np.flatnonzero(rows.rank == place)
        if cover is None or not len(own):
            continue
        load = np.searchsorted(cover.start, rows.start[own], side="right")
        read = np.bincount(load, observed.own[own])
        length = np.concatenate(([np.inf], cover.end - cover.start))[: len(read)]
        part = np.minimum(1.0, observed.limits.workers * length / np.maximum(read, 1e-12))
        covered[own] = observed.own[own] * part[load]
        begins = run.epoch_starts(number)
        before = np.concatenate(([-np.inf], cover.start))[load]
        epoch = np.searchsorted(begins, rows.start[own], side="right")
        first[own] = (load == 0) | (epoch > np.searchsorted(begins, before, side="right"))
        loads = max(loads, len(unique(load)))
    return covered, first, loads


def _by_pattern(observed: Observed) -> Iterator[Proposal]:
    """Processes that read whole files in bursts, with pauses in between in which they compute."""
    rows = observed.rows
    data = rows.moves_data & (rows.bytes > 0) & ~observed.of_programs
    reads = data & (rows.kind == READ)
    if not reads.any() or rows.bytes[reads].sum() < NEARLY_ALL * rows.bytes[data].sum():
        return
    if (rows.rank[reads] == ALL_RANKS).any() or not _looks_like_training(observed):
        return
    if _several_at_once(observed, reads):
        return
    covered, first = np.zeros(len(rows)), np.zeros(len(rows), np.bool_)
    loads = 0
    for rank in unique(rows.rank[reads]):
        own = np.flatnonzero((rows.rank == rank) & ~observed.of_programs)
        count = _cover_rank(observed, own, covered, first)
        if count < observed.limits.loads:
            return
        loads = max(loads, count)
    # Prefetching threads read while the process computes: what little shows may be their start.
    whole = observed.runtime * len(unique(rows.rank[reads]))
    if float(covered.sum()) >= observed.limits.load_share * whole:
        yield _proposal(observed, covered, first, {}, loads)


def _several_at_once(observed: Observed, reads: Flags) -> bool:
    """Whether ranks have several files in use at the same time, as threads that prefetch have."""
    rows = observed.rows
    files = int(rows.file.max()) + 1
    used = (rows.end > rows.start) & np.isin(rows.file, rows.file[reads]) & (rows.file >= 0)
    key = (observed.phase * observed.io_ranks + rows.rank)[used] * files + rows.file[used]
    names, place = np.unique(key, return_inverse=True)
    start, end = np.full(len(names), np.inf), np.zeros(len(names))
    np.minimum.at(start, place, rows.start[used])
    np.maximum.at(end, place, rows.end[used])
    lift = names // files % observed.io_ranks * (float(rows.end.max()) + 1.0)
    begin, finish = unite(start + lift, end + lift)
    return float((end - start).sum()) > (1 + MINOR) * float((finish - begin).sum())


def _looks_like_training(observed: Observed) -> bool:
    """Whether the program is a Python one, or a single process: MPI programs read by steps."""
    words = observed.program.split()
    name = words[0].rpartition("/")[2] if words else ""
    return name.startswith("python") or observed.ranks == 1


def _cover_rank(observed: Observed, own: np.ndarray, covered: Floats, first: Flags) -> int:
    """Set each load of a rank against the pause before it; return the number of loads."""
    rows = observed.rows
    start, end = unite(rows.start[own], rows.end[own])
    if len(start) < observed.limits.loads:
        return 0
    gaps = start[1:] - end[:-1]
    limit = _pause(gaps, observed.limits.few * median(end - start))
    breaks = np.flatnonzero(gaps > limit)
    begin, finish = start[np.append(0, breaks + 1)], end[np.append(breaks, len(end) - 1)]
    load = np.maximum(0, np.searchsorted(begin, rows.start[own], side="right") - 1)
    reads = (rows.kind[own] == READ) & (rows.bytes[own] > 0) & (rows.file[own] >= 0)
    pairs = unique(load[reads] * (int(rows.file.max()) + 1) + rows.file[own][reads])
    files = np.bincount(pairs // (int(rows.file.max()) + 1), minlength=len(begin))
    if not (files > 0).any() or median(files[files > 0]) < 2:  # one file is a data set
        return 0
    pause = np.append(np.inf, begin[1:] - finish[:-1])
    spent = np.bincount(load, observed.own[own], minlength=len(begin))
    part = np.minimum(1.0, observed.limits.workers * pause / np.maximum(spent, 1e-12))
    covered[own] = observed.own[own] * part[load]
    first[own] = load == 0
    return len(begin)


def _pause(gaps: Floats, least: float) -> float:
    """The longest gap inside a load: gaps between loads hold nearly all idle time."""
    ordered = np.sort(gaps)
    idle = np.cumsum(ordered)
    ratios = ordered[1:] / np.maximum(ordered[:-1], 1e-9)
    inside = (idle[:-1] <= 0.5 * idle[-1]) & (ordered[1:] >= NEGLIGIBLE * ordered[-1])
    if not len(ratios) or not inside.any():
        return 0.0
    best = int(np.argmax(np.where(inside, ratios, 0.0)))
    return float(ordered[best]) if ratios[best] >= 2.0 else least
