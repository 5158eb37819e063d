"""How long the rank that is longest in I/O calls is in them: what the job waits for, at most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.rank_balance import called_entries
from ioprism.model.usage import EVERYONE


@dataclass(frozen=True, slots=True)
class SlowestRank:
    """The rank that is longest in I/O calls; `rank` is None where the trace cannot name it."""

    seconds: float  # never more than the run time
    rank: int | None


@lru_cache(maxsize=1)
def slowest_rank(evidence: Evidence) -> SlowestRank | None:
    """Return the rank that I/O holds up longest, or None where no time is known.

    Seconds are those of the interface that the program called. Where ranks were joined to one
    record, its slowest rank has the time that the record says, the others their mean.
    """
    own: dict[int, float] = {}
    joined: dict[int, float] = {}  # by rank: beyond the mean, in records of all ranks
    everyone = 0.0
    for usage, entries in called_entries(evidence):
        times = usage.seconds
        for place in entries:
            rank = usage.rank[place]
            if rank != EVERYONE:
                own[rank] = own.get(rank, 0.0) + times[place]
                continue
            mean = times[place] / evidence.ranks
            everyone += mean
            if usage.spread is not None:
                slowest = usage.spread.slowest[place]
                beyond = max(0.0, usage.spread.slowest_seconds[place] - mean)
                joined[slowest] = joined.get(slowest, 0.0) + beyond
    return _longest(evidence, own, joined, everyone)


def _longest(
    evidence: Evidence, own: dict[int, float], joined: dict[int, float], everyone: float
) -> SlowestRank | None:
    ranks = dict.fromkeys([*own, *joined])
    sums = {rank: own.get(rank, 0.0) + joined.get(rank, 0.0) for rank in ranks}
    for load in evidence.loads.values():  # calls tell apart what records of all ranks join
        for rank, seconds in (load.seconds or {}).items():
            sums[rank] = max(sums.get(rank, 0.0), seconds - everyone)
    if not sums and not everyone:
        return None
    longest = max(sums, key=lambda rank: sums[rank], default=None)
    seconds = everyone + (sums[longest] if longest is not None else 0.0)
    in_turn = sum(sums.values()) / evidence.concurrency if evidence.concurrency else 0.0
    if in_turn > seconds:  # processes of a workflow that follow each other add up
        longest, seconds = None, in_turn
    return SlowestRank(min(seconds, evidence.runtime or seconds), longest)
