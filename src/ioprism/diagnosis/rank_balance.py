"""Which ranks do the I/O: what each moved, called and waited for, and who stands out."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.limits import MINOR, NEGLIGIBLE
from ioprism.model.arrays import median
from ioprism.model.usage import DIRECTIONS, EVERYONE, RankLoad, Usage

# Aggregators: the others move next to nothing, and they move nearly the same.
UNEVEN = 0.3


@dataclass(frozen=True, slots=True, eq=False)
class RankTable:
    """What each rank did through the interface that the program called; idle ranks are absent."""

    ranks: int
    bytes: Mapping[int, Mapping[str, int]]  # rank -> direction -> bytes
    operations: Mapping[int, Mapping[str, int]] | None  # None where only bytes are known
    seconds: Mapping[int, float] | None

    def total_bytes(self, rank: int) -> int:
        """Read and written together."""
        return sum(self.bytes.get(rank, {}).values())

    def all_bytes(self) -> list[int]:
        """One value per rank of the job, idle ones included."""
        sums = [self.total_bytes(rank) for rank in self.bytes]
        return sums + [0] * (self.ranks - len(sums))


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """The rank that stands out, and what it stands out from."""

    rank: int
    most: float
    mean: float
    middle: float | None = None  # the median of the ranks that took part

    @property
    def imbalance(self) -> float:
        """How far the mean stays behind the most, from 0 to 1; free of the number of ranks."""
        return 1.0 - self.mean / self.most if self.most > 0 else 0.0

    @property
    def behind(self) -> float:
        """How much the rank has beyond the mean."""
        return self.most - self.mean


def called_entries(
    evidence: Evidence, *, only_peers: bool = False
) -> Iterator[tuple[Usage, list[int]]]:
    """Yield, per layer, the entries of files in the interface the program itself called.

    Ranks that do nothing in POSIX may well take part in a collective call, so files that were
    opened through MPI-IO are judged there. Peers are ranks other than launchers and other programs.
    """
    upper = evidence.through_mpiio
    known = evidence.peers | {EVERYONE} if only_peers and evidence.peers else None
    nothing: frozenset[int] = frozenset()
    below = [layer for layer in evidence.base_layers if layer != "mpiio"]
    for layer in ["mpiio", *below]:
        if (usage := evidence.usages.get(layer)) is None:
            continue
        elsewhere = nothing if layer == "mpiio" else upper
        others = nothing if known is None else set(usage.rank) - known
        places: Iterable[int] = range(len(usage))
        if elsewhere:
            places = (place for place in places if usage.file[place] not in elsewhere)
        if others:
            places = (place for place in places if usage.rank[place] not in others)
        yield usage, list(places)


def aggregates(sizes: Collection[int], ranks: int) -> bool:
    """Whether a few ranks move the data of all in equal parts, as aggregators do on purpose.

    Args:
        sizes: bytes of each rank that moves anything.
        ranks: of the job.
    """
    most = max(sizes, default=0)
    busy = [size for size in sizes if size > NEGLIGIBLE * most]
    if len(busy) < 2 or len(busy) > ranks / 2 or sum(busy) < (1 - NEGLIGIBLE) * sum(sizes):
        return False
    return sum(busy) / len(busy) >= (1 - UNEVEN) * most


def writers(whole: float, deviation: float, ranks: int) -> float:
    """How many ranks would move a file's bytes in equal parts, given how much ranks deviate.

    If k of n ranks move b/k bytes each and the others nothing, the variance is
    b*b / (n*k) - b*b / (n*n).
    """
    return whole * whole / (ranks * (deviation**2 + (whole / ranks) ** 2)) if whole else 0.0


@lru_cache(maxsize=1)  # several rules ask the same in a row
def rank_table(evidence: Evidence) -> RankTable | None:
    """Return what each rank did, or None where the trace has only totals."""
    moved: dict[int, dict[str, int]] = defaultdict(lambda: dict.fromkeys(DIRECTIONS, 0))
    calls: dict[int, dict[str, int]] = defaultdict(lambda: dict.fromkeys(DIRECTIONS, 0))
    seconds: dict[int, float] = defaultdict(float)
    hidden = total = 0
    for usage, entries in called_entries(evidence, only_peers=True):
        for place in entries:
            rank = usage.rank[place]
            total += usage.bytes[place]
            if rank == EVERYONE:
                hidden += usage.bytes[place]
                continue
            seconds[rank] += usage.seconds[place]
            for direction, moves in usage.moves.items():
                moved[rank][direction] += moves.bytes[place]
                calls[rank][direction] += moves.operations[place]
    if hidden <= MINOR * total:
        return RankTable(evidence.ranks, dict(moved), dict(calls), dict(seconds))
    load = _load(evidence)
    if load is None:
        return None
    return RankTable(evidence.ranks, load.bytes, load.operations, load.seconds)


def _load(evidence: Evidence) -> RankLoad | None:
    """Calls or heat maps of the layer that moves most bytes for the program."""
    mpiio = evidence.usages.get("mpiio")
    through = sum(mpiio.bytes) if mpiio else 0
    base = sum(evidence.moved.values())
    layer = "mpiio" if 2 * through >= base and through else "posix"
    return evidence.loads.get(layer)


def data_spread(table: RankTable) -> Spread | None:
    """Return the rank that moves most, or None where nothing is moved."""
    values = table.all_bytes()
    if table.ranks < 2 or not any(values):
        return None
    busiest = max(table.bytes, key=table.total_bytes)
    return Spread(busiest, table.total_bytes(busiest), sum(values) / table.ranks)


def time_spread(table: RankTable) -> Spread | None:
    """Return the rank that is longest in calls, or None where times are unknown."""
    times = table.seconds or {}
    active = [seconds for seconds in times.values() if seconds > 0]
    if table.ranks < 2 or not active:
        return None
    slowest = max(times, key=lambda rank: times[rank])
    middle = median(np.array(active))
    return Spread(slowest, max(active), sum(active) / table.ranks, middle)


@dataclass(frozen=True, slots=True, eq=False)
class SharedFile:
    """A file that all ranks use, of which the trace keeps one entry."""

    file: int
    spread: Spread  # seconds of the slowest rank and of the mean one
    bytes: int
    deviation_bytes: float
    slowest_bytes: int
    ranks: int  # of the job

    @property
    def is_aggregated(self) -> bool:
        """Whether a few ranks move everything in equal parts (see `aggregates`)."""
        count = writers(self.bytes, self.deviation_bytes, self.ranks)
        if not 1.5 <= count <= self.ranks / 2:
            return False
        # The slowest rank is an aggregator with its part, or waits without any.
        part = self.bytes / count
        return (
            self.slowest_bytes <= NEGLIGIBLE * part
            or abs(self.slowest_bytes - part) <= UNEVEN * part
        )


@lru_cache(maxsize=1)
def shared_files(evidence: Evidence) -> tuple[SharedFile, ...]:
    """Return how ranks differ in each file whose ranks were joined to one entry."""
    files = []
    for usage, entries in called_entries(evidence, only_peers=True):
        spread = usage.spread
        for place in entries if spread is not None else ():
            if spread is None or usage.rank[place] != EVERYONE:
                continue
            mean = usage.seconds[place] / evidence.ranks
            files.append(
                SharedFile(
                    usage.file[place],
                    Spread(spread.slowest[place], spread.slowest_seconds[place], mean, mean),
                    usage.bytes[place],
                    spread.deviation_bytes[place],
                    spread.slowest_bytes[place],
                    evidence.ranks,
                )
            )
    return tuple(files)


def unbalanced_ranks(table: RankTable, *, beyond: float) -> list[int]:
    """Return the ranks above mean and deviation in all they do.

    Calls and bytes of every direction that the job uses, and the time; `beyond` is how much
    more than the mean their bytes must be, as a share of it.
    """
    if table.operations is None or table.seconds is None or table.ranks < 2:
        return []
    measures: list[Mapping[int, float]] = [table.seconds]
    measures.append({rank: table.total_bytes(rank) for rank in table.bytes})
    for direction in DIRECTIONS:
        calls = {rank: row.get(direction, 0) for rank, row in table.operations.items()}
        if any(calls.values()):
            measures.append(calls)
    limits = [_mean_and_deviation(values, table.ranks) for values in measures]
    mean = sum(table.all_bytes()) / table.ranks
    return [
        rank
        for rank in table.bytes
        if table.total_bytes(rank) > (1 + beyond) * mean
        and all(v.get(rank, 0) > limit for v, limit in zip(measures, limits, strict=True))
    ]


def _mean_and_deviation(values: Mapping[int, float], ranks: int) -> float:
    ranks = max(ranks, len(values))
    mean = sum(values.values()) / ranks
    squares = sum((v - mean) ** 2 for v in values.values()) + (ranks - len(values)) * mean**2
    return mean + math.sqrt(squares / ranks)


def heavy_directions(table: RankTable, *, factor: float) -> tuple[str, ...]:
    """In which directions rank 0 calls, or moves, `factor` times as much as any other rank."""
    counts = table.operations if table.operations is not None else table.bytes
    return tuple(
        direction
        for direction in DIRECTIONS
        if (mine := counts.get(0, {}).get(direction, 0))
        and mine >= factor * max((r.get(direction, 0) for k, r in counts.items() if k), default=0)
    )


@dataclass(frozen=True, slots=True)
class SlowestRank:
    """The rank that is longest in I/O calls; `rank` is None where the trace cannot name it."""

    seconds: float  # never more than the run time
    rank: int | None


@lru_cache(maxsize=1)
def slowest_rank(evidence: Evidence) -> SlowestRank | None:
    """Return the rank with the longest I/O time, or None where no time is known.

    Seconds are those of the interface that the program called. Where ranks were joined to one
    record, its slowest rank has the time that the record says, the others their mean.
    """
    sums: dict[int, float] = defaultdict(float)  # by rank: beyond what every rank has
    everyone = 0.0
    for usage, entries in called_entries(evidence):
        for place in entries:
            rank, seconds = usage.rank[place], usage.seconds[place]
            if rank != EVERYONE:
                sums[rank] += seconds
                continue
            mean = seconds / evidence.ranks
            everyone += mean
            if usage.spread is not None:
                beyond = max(0.0, usage.spread.slowest_seconds[place] - mean)
                sums[usage.spread.slowest[place]] += beyond
    for load in evidence.loads.values():  # calls tell apart what records of all ranks join
        for rank, seconds in (load.seconds or {}).items():
            sums[rank] = max(sums[rank], seconds - everyone)
    if not sums and not everyone:
        return None
    longest = max(sums, key=lambda rank: sums[rank], default=None)
    seconds = everyone + (sums[longest] if longest is not None else 0.0)
    in_turn = sum(sums.values()) / evidence.concurrency if evidence.concurrency else 0.0
    if in_turn > seconds:  # processes of a workflow that follow each other add up
        longest, seconds = None, in_turn
    return SlowestRank(min(seconds, evidence.runtime or seconds), longest)
