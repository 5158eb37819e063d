"""Is a change that was tried a gain? Looked at after every round, without fooling oneself.

Looking several times at several changes finds a gain by chance sooner or later. The chance of a
false gain is therefore divided among the changes and the looks (Bonferroni), most of it to the last
look, so that at most one search in a hundred reports a gain where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from typing import Literal

from ioprism.characteristics.breakdown import by_file
from ioprism.comparison.repetitions import MAX_FALSE_ALARM, difference
from ioprism.engine.base import Engine
from ioprism.model.layers import HEIGHT
from ioprism.model.trace import Trace
from ioprism.model.usage import is_data

Judgement = Literal["gain", "no gain", "undecided"]
MIN_ROUNDS = 3  # before the first look: two runs know too little of the noise
WORTH = 0.03  # of the run time: a gain below is not worth a line in a job script
EARLY_SHARE = 0.1  # of the chance of a false gain, for all looks but the last together
SAME_REQUESTS = 0.02  # sums of requests that differ by less are the same requests


def judge(
    before: Sequence[float], after: Sequence[float], *, rounds: int, changes: int
) -> Judgement:
    """Judge the times of all rounds so far.

    Args:
        before: seconds of the runs without the change.
        after: seconds of the runs with it.
        rounds: how many there are at most; it is judged after each.
        changes: how many are tried.
    """
    done = min(len(before), len(after))
    if done < MIN_ROUNDS:
        return "undecided"
    early = max(rounds - MIN_ROUNDS, 1)  # looks before the last
    share = 1 - EARLY_SHARE if done >= rounds else EARLY_SHARE / early
    allowed = share * MAX_FALSE_ALARM / changes
    found = difference(before, after, false_alarm=allowed)
    if found.slower_by_chance is not None and 1 - found.slower_by_chance <= allowed:
        return "gain"
    # Against runs that are shorter by what is worth having: significantly longer than those.
    shorter = [(1 - WORTH) * seconds for seconds in before]
    hoped = difference(shorter, after, false_alarm=allowed)
    if hoped.slower_by_chance is not None and hoped.slower_by_chance <= allowed:
        return "no gain"
    return "undecided"


@dataclass(frozen=True, slots=True)
class Requests:
    """What a run asked of the system, on the files that it wrote."""

    reads: int
    writes: int
    bytes_read: int
    bytes_written: int


def requests_of(trace: Trace, engine: Engine) -> Requests:
    """Add up the requests on files that were written: starting up and reading hints are others."""
    rows = [
        row
        for row in by_file(trace, engine).iter_rows(named=True)
        if HEIGHT[row["layer"]] == 0 and row["bytes_written"] and is_data(row["path"] or "")
    ]
    return Requests(*(sum(row[field.name] for row in rows) for field in fields(Requests)))


def same_requests(before: Requests, after: Requests) -> bool:
    """Whether two runs made the same requests: a hint then had no effect."""
    pairs = zip(astuple(before), astuple(after), strict=True)
    return all(abs(old - new) <= SAME_REQUESTS * max(old, new) for old, new in pairs)
