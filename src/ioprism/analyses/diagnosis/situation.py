"""The observations with everything that all causes look at: costs, targets and held-up time."""

from __future__ import annotations

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.calls import (
    METADATA,
    UNKNOWN,
    Calls,
    Flags,
    Floats,
    Ints,
    first_of_each,
    joined,
    own_time,
)
from ioprism.analyses.diagnosis.late_ranks import (
    LateRanks,
    from_the_last_arrival,
    idle_phases,
    late_ranks,
)
from ioprism.analyses.diagnosis.limits import at_least
from ioprism.analyses.diagnosis.observations import Observations
from ioprism.analyses.diagnosis.queues import QueueFit, fit_queues
from ioprism.analyses.diagnosis.significance import TRIED, WORTH, again_test
from ioprism.analyses.diagnosis.target_pieces import TargetPieces, target_pieces
from ioprism.records import dataclass
from ioprism.views.time.intervals import unite

NEARLY_ALL = 0.9  # of some calls: the ranks that make so many are those that make them
FEW_RANKS = 0.25  # of all that do I/O: then who makes calls tells as much as what they are


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """Observations and what is derived from them once."""

    seen: Observations
    own: Floats  # seconds by which each call prolongs its rank's I/O
    held: Floats  # seconds that each phase holds the job up
    waiting: Floats  # of them, seconds in which the busiest rank makes no call
    library: Floats  # of those, seconds in which ranks are in a library and nobody at storage
    pieces: TargetPieces
    queues: QueueFit
    late: LateRanks | None = None  # who keeps the others waiting by computing

    @property
    def calls(self) -> Calls:
        """The calls of the lowest layer."""
        return self.seen.calls

    @property
    def phases(self) -> int:
        """How many phases there are."""
        return len(self.seen.phases)

    @property
    def ranks(self) -> int:
        """How many ranks do I/O."""
        return len(self.seen.rank_numbers)

    @property
    def nodes(self) -> int:
        """How many nodes they run on; 1 where the trace does not tell."""
        return max(1, len(np.unique(self.seen.host_of[self.seen.host_of >= 0])))

    def by_rank(self, values: Floats, where: Flags | None = None) -> Floats:
        """Sum a value of calls by phase and rank."""
        return self._summed(values, self.calls.rank, self.ranks, where)

    def busiest_rank(self, values: Floats, where: Flags | None = None) -> Floats:
        """The largest sum that any one rank has in each phase."""
        return np.asarray(self.by_rank(values, where).max(axis=1), np.float64)

    def under_way(self, some: Flags) -> Floats:
        """Seconds of each phase in which any of some calls is under way: no more can be saved."""
        return _busy(self.seen, self.calls.where(some)) if self.seen.waits else self.held

    def waiting_after(self, seconds: Floats) -> Floats:
        """Seconds of each phase outside the busiest rank's calls, when calls take these seconds.

        It waits for other ranks' calls, which change as its own do, or inside a library.
        """
        inside = np.minimum(self.waiting, self.library)
        before = self.by_rank(self.own).sum(axis=1)
        part = self.by_rank(seconds).sum(axis=1) / np.maximum(before, 1e-12)
        return np.asarray(inside + (self.waiting - inside) * np.minimum(1.0, part), np.float64)

    def by_target(self, values: Floats) -> Floats:
        """Sum a value of calls by phase and target."""
        rows, count = self.pieces.call, len(self.pieces.targets)
        key = self.seen.phase[rows] * count + self.pieces.target
        total = np.bincount(key, values[rows], minlength=self.phases * count)
        return np.asarray(total, np.float64).reshape(self.phases, count)

    def busiest_target(self, values: Floats) -> Floats:
        """The largest sum that any one target has in each phase; 0 where no target is known."""
        if not len(self.pieces.targets):
            return np.zeros(self.phases)
        return np.asarray(self.by_target(values).max(axis=1), np.float64)

    def even_target(self, values: Floats) -> Floats:
        """What each target has in each phase if all of it is spread evenly."""
        if not len(self.pieces.targets):
            return np.zeros(self.phases)
        return np.asarray(self.by_target(values).mean(axis=1), np.float64)

    def _summed(self, values: Floats, key: Ints, count: int, where: Flags | None) -> Floats:
        some = slice(None) if where is None else where
        place = self.seen.phase[some] * count + key[some]
        total = np.bincount(place, values[some], minlength=self.phases * count)
        return np.asarray(total, np.float64).reshape(self.phases, count)

    @property
    def targets_known(self) -> int:
        """How many targets the file system has at least."""
        return at_least(self.pieces.targets, self.seen.system_targets)

    def task_of(self, some: Flags) -> dict[str, object]:
        """The application of a workflow that spends most time in these calls, and when."""
        names = self.seen.applications
        if len(set(names)) < 2 or not some.any():
            return {}
        seconds = np.bincount(self.calls.rank[some], self.own[some], minlength=self.ranks)
        totals: dict[str, float] = {}
        for name, spent in zip(names, seconds, strict=True):
            totals[name] = totals.get(name, 0.0) + float(spent)
        task = max(totals, key=lambda name: totals[name])
        theirs = some & np.array([name == task for name in names])[self.calls.rank]
        return {
            "application": task,
            "from": float(self.calls.start[theirs].min()),
            "to": float(self.calls.end[theirs].max()),
        }

    def few_ranks_of(self, some: Flags) -> Ints:
        """The ranks that make nearly all of these calls; none where they are many."""
        made = np.bincount(self.calls.rank[some], minlength=self.ranks)
        most = np.argsort(-made, kind="stable")
        makers = most[: 1 + int(np.searchsorted(made[most].cumsum(), NEARLY_ALL * made.sum()))]
        return np.sort(makers if len(makers) <= FEW_RANKS * self.ranks else makers[:0])

    def chance(self, some: Flags) -> float:
        """How likely the busiest rank's calls among these, made again, cost next to nothing.

        For causes whose calls have no peers in the trace.
        """
        spent = np.bincount(self.calls.rank[some], self.own[some], minlength=self.ranks)
        rank = int(np.argmax(spent)) if len(spent) else 0
        seconds = self.own[some & (self.calls.rank == rank)]
        least = WORTH * self.seen.runtime * self.seen.share
        return min(1.0, TRIED * again_test(seconds, least))

    def chance_of_ranks(self, some: Flags) -> float:
        """The same where all ranks do the same in these calls: each shows what they cost."""
        spent = np.bincount(self.calls.rank[some], self.own[some], minlength=self.ranks)
        least = WORTH * self.seen.runtime * self.seen.share
        made = np.asarray(spent[spent > 0], np.float64)
        return min(self.chance(some), TRIED * again_test(made, least * len(made)))

    def path(self, file: int) -> str:
        """The name of a file."""
        return str(self.seen.files["path"][int(file)]) if file >= 0 else ""

    def main_file(self, some: Flags) -> int:
        """The file that most of these calls are on; UNKNOWN where no file of theirs is known."""
        files = self.calls.file[some & (self.calls.file >= 0)]
        return int(np.bincount(files).argmax()) if len(files) else UNKNOWN

    def named_file(self, some: Flags) -> dict[str, object]:
        """The name of that file, where it is known."""
        file = self.main_file(some)
        return {} if file == UNKNOWN else {"file": self.path(file)}


def situation(seen: Observations) -> Situation:
    """Derive what all causes need."""
    own = own_time(seen.calls)
    pieces = target_pieces(seen.calls, seen.files)
    late = late_ranks(seen.calls, seen.above, seen.runtime) if seen.waits else None
    held, waiting = held_up(seen, own, late)
    library = np.minimum(held, inside_libraries(seen))
    queues = fit_queues(seen.calls, pieces)
    return Situation(seen, own, held, waiting, library, pieces, queues, late)


def held_up(
    seen: Observations, own: Floats, late: LateRanks | None = None
) -> tuple[Floats, Floats]:
    """Seconds that each phase holds the job up, and those outside calls of the lowest layer.

    The latter are, for the busiest rank, exchange inside a library, or ranks that come one after
    another.
    Ranks leave a phase together, so it holds all of them up for as long as anyone is in a call;
    where they do not wait for each other, the rank with most I/O counts. While a rank still
    computes, the others' I/O, and their waiting in a collective call, hold nobody up.
    """
    if not seen.waits:
        return _longest_rank(joined(seen.calls, _as_calls(seen.above)))
    held = _busy(seen, joined(seen.calls, _as_calls(from_the_last_arrival(seen.above))))
    if late is not None:
        held[idle_phases(seen.calls, seen.phases)] = 0.0
    ranks = max(1, len(seen.rank_numbers))
    lowest = np.bincount(
        seen.phase * ranks + seen.calls.rank, own, minlength=len(seen.phases) * ranks
    ).reshape(-1, ranks)
    return held, np.maximum(0.0, held - lowest.max(axis=1))


def inside_libraries(seen: Observations) -> Floats:
    """Seconds of each phase in which calls of a library are under way, and none below them.

    Ranks exchange data then, wait for each other or for locks: storage has no part in it.
    """
    every = joined(seen.calls, _as_calls(from_the_last_arrival(seen.above)))
    if not seen.waits:
        both, below = (_longest_rank(calls)[0] for calls in (every, seen.calls))
        return np.maximum(0.0, both - below)
    return np.maximum(0.0, _busy(seen, every) - _busy(seen, seen.calls))


def _busy(seen: Observations, calls: Calls) -> Floats:
    """Seconds of each phase in which any rank is in one of these calls."""
    start, end = unite(calls.start, calls.end)
    busy = np.bincount(seen.phases.of(start), end - start, minlength=len(seen.phases))
    return np.asarray(busy, np.float64)


def _longest_rank(every: Calls) -> tuple[Floats, Floats]:
    """What the rank with most I/O spends in calls, in the one phase there is."""
    inside = np.bincount(every.rank, own_time(every))
    return np.array([float(inside.max(initial=0.0))]), np.zeros(1)


def _as_calls(above: pl.DataFrame) -> Calls:
    count = above.height
    nothing = np.zeros(count, np.int64)
    return Calls(
        above["start"].to_numpy(), above["end"].to_numpy(),
        above["unit"].cast(pl.Int64).to_numpy(),
        nothing, np.full(count, METADATA), nothing, nothing, np.zeros(count, np.bool_),
    )  # fmt: skip


def medians_by(keys: Ints, values: Floats) -> tuple[Ints, Floats]:
    """Return each key once, and the median of its values."""
    order = np.lexsort((values, keys))
    sorted_keys, sorted_values = keys[order], values[order]
    begin = first_of_each(sorted_keys)
    count = np.diff(np.concatenate((begin, [len(keys)])))
    low, high = begin + (count - 1) // 2, begin + count // 2
    return sorted_keys[begin], (sorted_values[low] + sorted_values[high]) / 2
