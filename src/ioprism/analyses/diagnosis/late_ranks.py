"""Ranks that compute longer than the others: all wait for them, but not for I/O.

Ranks meet when each has done its burst of calls, or inside a collective call, which nobody leaves
before the last one has come. What a rank does between two meetings outside calls is computing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.calls import Calls, Flags, Floats, Ints
from ioprism.analyses.diagnosis.io_phases import IoPhases
from ioprism.analyses.diagnosis.significance import SIGNIFICANT, WORTH, rank_test
from ioprism.analyses.diagnosis.waiting import FEWEST_BURSTS, bursts_of_ranks
from ioprism.records import dataclass
from ioprism.views.time.cover import Cover

FEWEST_RANKS = 4
ALIKE = 0.5  # of the latest rank's lateness: ranks that are as late are late together


@dataclass(frozen=True, slots=True, eq=False)
class LateRanks:
    """Who is late, and how long the others wait."""

    ranks: Ints  # among those that do I/O
    waited: float  # seconds, in all meetings
    meetings: int
    p_value: float


@dataclass(frozen=True, slots=True, eq=False)
class Meetings:
    """When each rank comes to each meeting, and when it leaves: rank by meeting."""

    ranks: Ints  # of each row
    arrival: Floats
    leaving: Floats

    def computed(self, io: Cover) -> Floats:
        """Seconds before each arrival since the last meeting, without any rank's I/O.

        A rank that comes after others' calls may have waited for them, one after the other.
        """
        left = np.concatenate((np.zeros((len(self.ranks), 1)), self.leaving[:, :-1]), axis=1)
        met = np.broadcast_to(left.max(axis=0), left.shape)
        since = np.where(self.arrival >= met, met, left)  # who comes earlier has not waited
        return np.maximum(0.0, self.arrival - since - io.within(since, self.arrival))


def late_ranks(calls: Calls, above: pl.DataFrame, runtime: float) -> LateRanks | None:
    """Return the ranks for which the others wait longest."""
    io = Cover(calls.start, calls.end)
    found = [_late(meetings.ranks, meetings.computed(io), runtime)
             for meetings in (*_of_bursts(calls), *_of_collectives(above))]  # fmt: skip
    known = [late for late in found if late is not None]
    return max(known, key=lambda late: late.waited, default=None)


def _late(ranks: Ints, computed: Floats, runtime: float) -> LateRanks | None:
    """Return the ranks that come later than others time and again."""
    if computed.shape[0] < FEWEST_RANKS or computed.shape[1] < FEWEST_BURSTS:
        return None
    lateness = np.median(computed - np.median(computed, axis=0), axis=1)
    late = lateness > ALIKE * lateness.max()
    if not 0 < late.sum() <= 0.5 * len(late):
        return None
    waited = np.maximum(0.0, computed[late].max(axis=0) - computed[~late].max(axis=0))
    test = rank_test(computed[late].ravel(), computed[~late].ravel()) * len(late)
    if waited.sum() <= WORTH * runtime or test > SIGNIFICANT:
        return None
    return LateRanks(ranks[late], float(waited.sum()), computed.shape[1], test)


def _of_bursts(calls: Calls) -> Iterator[Meetings]:
    bursts = bursts_of_ranks(calls)
    if bursts is not None:
        yield Meetings(np.unique(calls.rank), *bursts)


def _of_collectives(above: pl.DataFrame) -> Iterator[Meetings]:
    for calls in collective_calls(above):
        yield Meetings(calls["unit"].unique(maintain_order=True).to_numpy(), *_as_table(calls))


def collective_calls(above: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield, file by file, collective calls that all of the file's ranks make equally often."""
    if not above.height:
        return
    table = above.filter("collective").sort("file", "unit", "start")
    for _, calls in table.group_by("file", maintain_order=True):
        counts = calls.group_by("unit").len()["len"]
        if len(counts) > 1 and counts.n_unique() == 1:
            yield calls


def _as_table(calls: pl.DataFrame) -> tuple[Floats, Floats]:
    shape = (calls["unit"].n_unique(), -1)
    return calls["start"].to_numpy().reshape(shape), calls["end"].to_numpy().reshape(shape)


def from_the_last_arrival(above: pl.DataFrame) -> pl.DataFrame:
    """Let collective calls start when the last rank has come: before that, ranks wait for it."""
    parts = []
    for calls in collective_calls(above):
        start, end = _as_table(calls)
        # Calls that are not at the same time are not the same call: they stay as they are.
        last = np.broadcast_to(start.max(axis=0), start.shape)
        together = np.broadcast_to((end >= last).all(axis=0), start.shape)
        parts.append(calls.with_columns(start=pl.Series(np.where(together, last, start).ravel())))
    if not parts:
        return above
    changed = pl.concat(parts)
    files = changed["file"].unique()
    same_file = pl.col("file").is_in(files.implode()).fill_null(value=False)
    return pl.concat(
        [above.filter(~(pl.col("collective") & same_file).fill_null(value=False)), changed]
    )


def idle_phases(calls: Calls, phases: IoPhases) -> Flags:
    """Phases whose I/O is over before the last rank has come: they hold nobody up."""
    bursts = bursts_of_ranks(calls)
    if bursts is None:
        return np.zeros(len(phases), np.bool_)
    first, last = bursts[0].min(axis=0), bursts[0].max(axis=0)
    meeting = np.searchsorted(first, phases.start, side="right") - 1
    return np.asarray((meeting >= 0) & (phases.end < last[np.maximum(meeting, 0)]))
