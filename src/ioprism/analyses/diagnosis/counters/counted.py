"""Counter records, and how long they keep the slowest rank in calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from ioprism.analyses.diagnosis.attribution import Candidate
from ioprism.analyses.diagnosis.counters.heat import HeatPhases
from ioprism.analyses.diagnosis.counters.records import Record
from ioprism.analyses.diagnosis.limits import LEAST, LIKELY, at_least
from ioprism.analyses.diagnosis.result import CallGroup, Contrast
from ioprism.analyses.diagnosis.significance import TRIED, WORTH, counted_test
from ioprism.analyses.evidence import Evidence
from ioprism.model.usage import EVERYONE, NAMELESS, Usage
from ioprism.records import dataclass

NEARLY_ALL = 0.9  # of the bytes that pass MPI-IO: with fewer below, records are missing
LEAST_SECONDS = 1e-12  # to divide by

Value = Callable[[Record], float]


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Records with the seconds that the slowest rank spends in calls."""

    evidence: Evidence
    records: Sequence[Record]
    ranks: int  # of the job
    held: float = 0.0
    heat: HeatPhases | None = None

    @property
    def mpiio(self) -> Usage | None:
        """What passed MPI-IO, where the program used it."""
        return self.evidence.usages.get("mpiio")

    def path(self, file: int) -> str:
        """The name of a file."""
        return self.evidence.files.paths.get(file, "")

    def candidate(
        self, code: str, culprit: dict[str, object], after: tuple[float, float, float],
        some: Sequence[Record], peers: Sequence[Record] = (), *, p_value: float | None = None,
        **facts: object,
    ) -> Candidate:  # fmt: skip
        """Return a candidate from the seconds that remain: likely, at least, at most."""
        likely, least, most = (min(self.held, max(0.0, seconds)) for seconds in after)
        test = self.chance(some) if p_value is None else p_value
        return Candidate(
            code, culprit, [self.held - likely], self.held - most, self.held - least, test,
            Contrast(code, group(some), group(peers) if peers else None), facts,
        )  # fmt: skip

    @property
    def any_shared(self) -> bool:
        """Whether a record stands for all ranks together."""
        return any(one.shared for one in self.records)

    @property
    def targets(self) -> set[int]:
        """All targets that files lie on."""
        return {name for one in self.records for name in one.striping.targets}

    @property
    def targets_known(self) -> int:
        """How many targets the file system has at least."""
        return at_least(self.targets, self.evidence.files.system_targets or 0)

    def by_rank(self, value: Value, some: Iterable[Record] | None = None) -> list[float]:
        """Sum values by rank; what stands for all ranks is shared evenly."""
        sums = [0.0] * (self.ranks + 1)  # the last, number -1, is of everyone
        for one in self.records if some is None else some:
            sums[one.rank] += value(one)
        each = sums.pop(EVERYONE) / self.ranks
        return [own + each for own in sums] if each else sums

    def busiest(self, value: Value, some: Iterable[Record] | None = None) -> float:
        """What the busiest rank spends of these seconds of records.

        Of a file that all share, the slowest rank's time divides as the time of all does.
        """
        chosen = self.records if some is None else list(some)
        alone = self.by_rank(value, (one for one in chosen if not one.shared))
        together = sum(
            self.slowest_seconds(one) * value(one) / max(one.seconds, LEAST_SECONDS)
            for one in chosen
            if one.shared
        )
        return max(alone) + together

    def slowest_seconds(self, one: Record) -> float:
        """Seconds of the slowest rank in a file that all share."""
        return max(one.slowest, one.seconds / self.ranks)

    def chance(self, some: Sequence[Record]) -> float:
        """How likely the busiest rank's calls of these records cost next to nothing next time."""
        runtime = self.evidence.runtime or self.held
        seconds = self.by_rank(lambda one: one.seconds, some)
        count = self.by_rank(lambda one: one.calls, some)
        rank = seconds.index(max(seconds))
        # Of files that all share, the calls of all tell what one rank's take.
        together = [one for one in some if one.shared]
        spent = max(seconds[rank], sum(one.slowest for one in together))
        number = count[rank] + sum(one.calls for one in together)
        return min(1.0, TRIED * counted_test(spent, number, WORTH * runtime))

    def slowest_rank(self, runtime: float) -> tuple[float, float, float]:
        """Seconds of the slowest rank in calls, those beyond calls to storage, and unknown.

        Calls are of the layer that the program entered: in MPI-IO, ranks also exchange data and
        wait for each other. Where calls to storage are missing from the log, it is not known
        which.
        """
        below = min(runtime, self.busiest(lambda one: one.seconds))
        if self.mpiio is None:
            return below, 0.0, 0.0
        above, alone = 0.0, dict.fromkeys(self.mpiio.rank, 0.0)
        longest = _longest(self.mpiio)
        for rank, spent, slowest in zip(self.mpiio.rank, self.mpiio.seconds, longest, strict=True):
            above += slowest if rank == EVERYONE else 0.0
            alone[rank] += spent if rank != EVERYONE else 0.0
        seconds = min(runtime, max(below, above + max(alone.values(), default=0.0)))
        unknown = min(seconds - below, self._without_calls_below(self.mpiio))
        return seconds, seconds - below - unknown, unknown

    def _without_calls_below(self, above: Usage) -> float:
        """Seconds of MPI-IO on files of which the log lacks calls to storage."""
        below: dict[int, int] = {}
        for one in self.records:
            below[one.file] = below.get(one.file, 0) + one.moved
        return sum(
            slowest
            for file, moved, slowest in zip(above.file, above.bytes, _longest(above), strict=True)
            if file != NAMELESS and below.get(file, 0) < NEARLY_ALL * moved
        )

    def work_left(
        self, busy: Value, gone: float, service: Value | None = None
    ) -> tuple[float, float, float]:
        """Seconds that `busy` alone keeps the slowest rank, or the targets: likely, least, most.

        No less than what is held up without the calls that go. `service` is for how long records
        keep targets busy, where part of `busy` is known to be waiting for others.
        """
        chain, targets = max(*self.by_rank(busy), self.held - gone), len(self.targets)
        even = sum(map(service or busy, self.records)) / targets if targets else 0.0
        return max(chain, LIKELY * even), max(chain, LEAST * even), max(chain, 1.2 * even)

    def even_part(self, some: Iterable[Record]) -> float:
        """The part of all targets that one request of these records keeps busy."""
        used, known = 0, 0
        for one in some:
            if one.striping.targets and one.requests:
                stripes = math.ceil(one.moved / one.requests / max(1, one.striping.size))
                used += min(stripes, len(one.striping.targets))
                known += len(one.striping.targets)
        return used / known if known else 1 / self.ranks


def _longest(usage: Usage) -> Sequence[float]:
    """Seconds of the slowest rank by entry."""
    return [0.0] * len(usage) if usage.spread is None else usage.spread.slowest_seconds


def group(some: Sequence[Record]) -> CallGroup:
    """Sum up records."""
    calls, moved = sum(one.requests for one in some), sum(one.moved for one in some)
    seconds = sum(one.seconds for one in some)
    return CallGroup(
        calls or len(some),
        moved or None,
        seconds / calls if calls else None,
        moved / seconds if seconds > 0 and moved else None,
    )
