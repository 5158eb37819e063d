"""Which proposals are causes: no second is counted twice, and the ledger adds up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ioprism.diagnosis.checks.redundancy import read_copies
from ioprism.diagnosis.limits import MAJORITY
from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.replay import Proposal, Replayed, replay
from ioprism.diagnosis.rows import READ, Flags, Floats
from ioprism.model.verdict import (
    Cause,
    Decision,
    LedgerLine,
    Opportunity,
    Possible,
    Saving,
    core_hours,
)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A proposal and what its change saves."""

    proposal: Proposal
    replayed: Replayed
    order: int  # of its check


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """Causes, what may be one, and what remains of each phase."""

    causes: tuple[Cause, ...]
    claimed: tuple[Flags, ...]  # the rows of each cause
    possible: tuple[Possible, ...]
    left: Floats
    undecided: Mapping[str, Flags]  # the rows of each possible cause, by its code


def attribute(observed: Observed, proposals: Iterable[Proposal]) -> Attribution:
    """Decide which proposals are causes, largest saving first.

    A change that removes a part of a phase removes the same part of what earlier changes leave.
    """
    limits = observed.limits
    runtime, stall = observed.runtime * observed.share, float(observed.stall.sum())
    least = max(
        observed.least_saving, limits.min_seconds * observed.share, limits.min_stall_share * stall
    )
    judged = [
        Judged(one, replay(observed, one.change), place)
        for place, one in enumerate(proposals)
        if one.change is not None and one.p_value <= limits.significance
    ]
    left = observed.stall.copy()
    causes: list[Cause] = []
    claimed: list[Flags] = []
    possible: list[Possible] = []
    undecided: dict[str, Flags] = {}
    for one in _by_saving(observed, judged):
        if one.replayed.high <= least:
            continue
        if one.replayed.low <= observed.least_saving or one.replayed.seconds <= least:
            if one.replayed.low <= observed.least_saving:
                possible.append(_possible(one, stall))
                undecided.setdefault(one.proposal.code, one.proposal.rows)
            continue
        part = np.divide(
            one.replayed.by_phase,
            observed.stall,
            out=np.zeros(len(left)),
            where=observed.stall > 1e-12,
        )
        taken = left * np.clip(part, 0.0, 1.0)
        seconds = float(taken.sum())
        if seconds <= least:
            continue
        left = left - taken
        causes.append(_cause(observed, one, seconds, runtime))
        claimed.append(one.proposal.rows)
    order = sorted(range(len(causes)), key=lambda place: -causes[place].saving.seconds)
    kept = [one for one in possible if not any(one.code == cause.code for cause in causes)]
    return Attribution(
        tuple(causes[place] for place in order),
        tuple(claimed[place] for place in order),
        tuple(sorted(kept, key=lambda one: -one.upper)),
        left,
        undecided,
    )


def _by_saving(observed: Observed, judged: list[Judged]) -> list[Judged]:
    """By saving; of two that explain the same calls about as well, the earlier check first."""
    ordered = sorted(judged, key=lambda one: -one.replayed.seconds)
    placed: list[Judged] = []
    for one in ordered:
        place = len(placed)
        while place > 0 and _precedes(observed, one, placed[place - 1]):
            place -= 1
        placed.insert(place, one)
    return placed


def _precedes(observed: Observed, one: Judged, other: Judged) -> bool:
    if one.order > other.order or one.replayed.low <= 0:
        return False
    if one.replayed.seconds < (1 - observed.limits.run_noise) * other.replayed.seconds:
        return False
    shared = float(observed.own[one.proposal.rows & other.proposal.rows].sum())
    smaller = min(float(observed.own[x.proposal.rows].sum()) for x in (one, other))
    return shared >= MAJORITY * smaller


def _possible(one: Judged, stall: float) -> Possible:
    proposal = one.proposal
    decide = proposal.decide or Decision("record every call", "export DXT_ENABLE_IO_TRACE=1")
    return Possible(
        proposal.code,
        "",
        min(one.replayed.high, stall),
        decide,
        {**proposal.culprit, "facts": proposal.facts},
    )


def _cause(observed: Observed, one: Judged, seconds: float, runtime: float) -> Cause:
    scale = seconds / max(one.replayed.seconds, 1e-12)
    low, high = one.replayed.low * scale, one.replayed.high * scale
    width = (high - low) / max(high, 1e-12)
    proposal = one.proposal
    return Cause(
        code=proposal.code,
        culprit=proposal.culprit,
        saving=Saving(seconds, low, high, seconds / runtime if runtime > 0 else 0.0),
        confidence=min(1.0, max(0.0, float((1 - proposal.p_value) * (1 - width / 2)))),
        contrast=proposal.contrast,
        core_hours=core_hours(seconds, observed.ranks),
        facts=proposal.facts,
    )


def ledger(observed: Observed, attribution: Attribution) -> tuple[LedgerLine, ...]:
    """Lines that add up to the stall time: causes, transfer at a healthy rate, the rest."""
    left = float(attribution.left.sum())
    loading = min(left, observed.share_of_stall(observed.of_programs))
    left -= loading
    transfer = min(left, float(_transfer(observed).sum()))
    library = min(left - transfer, float(observed.library.sum()))
    first = min(left - transfer - library, _first_read_seconds(observed))
    rest = {
        "library": library,
        "programs": loading,
        "first-reads": first,
        "unexplained": left - transfer - library - first,
    }
    lines = [
        LedgerLine(c.code, c.saving.seconds) for c in attribution.causes if c.saving.seconds > 0
    ]
    lines.append(LedgerLine("transfer", transfer))
    lines.extend(LedgerLine(what, seconds) for what, seconds in rest.items() if seconds > 0)
    return tuple(lines)


def _transfer(observed: Observed) -> Floats:
    """Seconds that each phase lasts at the rate the trace itself reaches, outside libraries."""
    if not observed.per_call:  # what records of storage show
        return np.minimum(observed.busiest_rank(observed.own), observed.stall - observed.library)
    service = observed.service
    chain = observed.busiest_rank(
        np.where(observed.rows.moves_data, np.minimum(service.uncontended, observed.own), 0.0)
    )
    work = observed.busiest_target(service.occupied)
    return np.maximum(chain, work) + np.maximum(0.0, observed.waiting - observed.library)


def _first_read_seconds(observed: Observed) -> float:
    """Stall seconds by which first reads are slower than reads of the same bytes again.

    The rate that a trace reaches at best is then that of the page cache, which no first read can
    have: without this line, the difference would look like lost time.
    """
    if "offsets" not in observed.detail or not (read_copies(observed) > 1).any():
        return 0.0
    rows = observed.rows
    reads = np.flatnonzero((rows.kind == READ) & (rows.offset >= 0) & (rows.bytes > 0))
    order = reads[np.lexsort((rows.start[reads], rows.offset[reads], rows.file[reads]))]
    file, offset = rows.file[order], rows.offset[order]
    again = np.zeros(len(order), np.bool_)
    again[1:] = (file[1:] == file[:-1]) & (offset[1:] == offset[:-1])
    if min(again.sum(), (~again).sum()) < 2 * observed.limits.min_calls:
        return 0.0
    seconds, moved = observed.own[order], rows.bytes[order].astype(np.float64)
    as_fast = moved[~again].sum() * seconds[again].sum() / moved[again].sum()
    first = float(seconds[~again].sum())
    if first < observed.limits.cache_ratio * as_fast:
        return 0.0
    return float(observed.stall.sum() * (first - as_fast) / max(float(observed.own.sum()), 1e-12))


def opportunities(observed: Observed, left: float) -> tuple[Opportunity, ...]:
    """Healthy I/O could overlap with computation, as far as that lasts."""
    runtime = observed.runtime * observed.share
    hidden = min(left, max(0.0, runtime - float(observed.stall.sum())))
    return (Opportunity("hide-io", hidden),) if hidden > observed.limits.min_share * runtime else ()
