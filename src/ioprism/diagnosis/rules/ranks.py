"""Which ranks do too much, or take too long, over the job and in single files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.rank_balance import (
    RankTable,
    SharedFile,
    Spread,
    aggregates,
    called_entries,
    data_spread,
    heavy_directions,
    rank_table,
    shared_files,
    time_spread,
    unbalanced_ranks,
)
from ioprism.diagnosis.rules.rule import (
    SLOWEST_RANKS,
    Answer,
    Hit,
    Rule,
    Unknown,
    both_ways,
    worst,
    worst_first,
)
from ioprism.model.usage import EVERYONE
from ioprism.model.verdict import Severity, Subject

NEEDS = "what each rank did: Darshan with DXT_ENABLE_IO_TRACE=1, or heat maps"
OTHER_LOGS = "the logs of the job's other ranks: give all of them together"
NEEDS_RECORDS = (
    "records of each rank in shared files: extended tracing, or Darshan without reduction"
)
NEEDS_TIME = "how long each rank took: Darshan with DXT_ENABLE_IO_TRACE=1"


def _table(evidence: Evidence) -> RankTable | Unknown | None:
    """What each rank did; None where the question does not arise."""
    if evidence.ranks < 2 or not any(evidence.moved.values()):
        return None
    if evidence.lone_rank:
        return Unknown(OTHER_LOGS)
    return rank_table(evidence) or Unknown(NEEDS)


def rank_zero(evidence: Evidence) -> Answer:
    """Rank 0 calls and moves more than any other rank."""
    table = _table(evidence)
    if not isinstance(table, RankTable):
        return table
    limit = evidence.thresholds.rank_0_factor
    own = table.total_bytes(0)
    others = max((table.total_bytes(rank) for rank in table.bytes if rank), default=0)
    directions = heavy_directions(table, factor=limit)
    if not own or own < limit * others or not directions:
        return None
    numbers: dict[str, float] = {"bytes": own, "next_bytes": others,
                                 "share": own / sum(table.all_bytes())}  # fmt: skip
    if table.operations is not None:
        numbers["operations"] = sum(table.operations.get(0, {}).values())
    spent = _whole_time(evidence) if table.seconds is None else table.seconds.get(0, 0.0)
    slowest = [shared.spread.most for shared in shared_files(evidence) if shared.spread.rank == 0]
    return Hit(
        numbers,
        max([spent, *slowest]),
        _rank_details(table, [0]),
        Subject("rank", "0"),
        ranks=[0],
        words={"directions": " and ".join(f"{direction}s" for direction in directions)},
    )


def _whole_time(evidence: Evidence) -> float:
    """Seconds in calls of the rank most concerned, all layers that touch storage."""
    usages = [evidence.usages[layer] for layer in evidence.base_layers]
    slowest = max((shared.spread.most for shared in shared_files(evidence)), default=0.0)
    return max(slowest, sum(evidence.held_up(usage, usage.seconds) for usage in usages))


def _has_explanation(evidence: Evidence, rank: int) -> bool:
    """Whether another finding already says that this rank does too much."""
    answer = rank_zero(evidence) if rank == 0 else None
    return isinstance(answer, Hit) and not evidence.negligible(answer.seconds or 0.0)


def unbalanced_rank_loads(evidence: Evidence) -> Answer:
    """Some ranks are above mean and deviation in calls, bytes and time."""
    table = _table(evidence)
    if not isinstance(table, RankTable):
        return table
    if table.operations is None or table.seconds is None:
        return Unknown(NEEDS_TIME)
    if aggregates(table.all_bytes(), table.ranks):
        return None
    heavy = unbalanced_ranks(table, beyond=evidence.thresholds.rank_data_imbalance)
    if not heavy or (heavy == [0] and _has_explanation(evidence, 0)):
        return None
    times = {rank: table.seconds.get(rank, 0.0) for rank in heavy}
    slowest = max(times.values())
    mean = sum(table.seconds.values()) / table.ranks
    return Hit(
        {"ranks": len(heavy), "of": table.ranks, "bytes": sum(map(table.total_bytes, heavy))},
        slowest - mean,
        _rank_details(table, worst(times)),
        Subject("ranks", ", ".join(map(str, sorted(worst(times))))),
        ranks=heavy,
    )


def data_imbalance(evidence: Evidence) -> Answer:
    """The busiest rank moves more than the mean one."""
    table = _table(evidence)
    if not isinstance(table, RankTable):
        return table
    spread = data_spread(table)
    limits = evidence.thresholds
    if spread is None or spread.most < limits.imbalance_bytes:
        return None
    if aggregates(table.all_bytes(), table.ranks):
        return None
    if spread.imbalance <= limits.rank_data_imbalance or _has_explanation(evidence, spread.rank):
        return None
    ordered = worst({rank: table.total_bytes(rank) for rank in table.bytes})
    return Hit(
        {"most_bytes": spread.most, "mean_bytes": spread.mean, "imbalance": spread.imbalance},
        _whole_time(evidence) * spread.imbalance,
        _rank_details(table, ordered),
        Subject("rank", str(spread.rank)),
    )


def time_imbalance(evidence: Evidence) -> Answer:
    """The slowest rank is longer in calls than the mean one."""
    slowest = _slowest(evidence)
    if not isinstance(slowest, _Slow):
        return slowest
    spread, limits = slowest.spread, evidence.thresholds
    behind = spread.behind
    if spread.imbalance <= limits.rank_time_imbalance or behind < limits.imbalance_seconds:
        return None
    if slowest.table is None or _has_explanation(evidence, spread.rank):
        return None  # another rule says it of the shared file, or of rank 0
    return Hit(
        {"slowest": spread.most, "mean_seconds": spread.mean, "imbalance": spread.imbalance},
        behind,
        _rank_details(slowest.table, worst(slowest.table.seconds or {})),
        Subject("rank", str(spread.rank)),
    )


def stragglers(evidence: Evidence) -> Answer:
    """A few ranks are far longer in calls than the middle one."""
    slowest = _slowest(evidence)
    if not isinstance(slowest, _Slow):
        return slowest
    spread, limits = slowest.spread, evidence.thresholds
    if spread.middle is None:
        return None
    behind = spread.most - spread.middle
    far = spread.most >= limits.straggler_factor * spread.middle
    if not far or behind < limits.imbalance_seconds or _has_explanation(evidence, spread.rank):
        return None
    least = limits.straggler_factor * spread.middle
    factor = spread.most / spread.middle if spread.middle else float("inf")
    numbers = {"slowest": spread.most, "middle": spread.middle, "factor": factor}
    hit = Hit(numbers, behind, subject=Subject("rank", str(spread.rank)))
    if slowest.table is not None:
        slow = {rank: t for rank, t in (slowest.table.seconds or {}).items() if t >= least}
        details = _rank_details(slowest.table, worst(slow))
        hit = replace(hit, details=details, ranks=worst_first(slow))
    else:  # files that all ranks share, where only these tell
        files = {one.file: one for one in slowest.shared if one.spread.most >= least}
        slow = {file: one.spread.most for file, one in files.items()}
        details = [_shared_row(files[file], evidence.files.path(file)) for file in worst(slow)]
        hit = replace(hit, details=details, files=worst_first(slow))
    return replace(hit, evidence={**numbers, "stragglers": len(slow)})


@dataclass(frozen=True, slots=True)
class _Slow:
    """The rank that stands out, and what it stands out from: ranks, or ranks of shared files."""

    spread: Spread
    table: RankTable | None  # where the spread is that of the ranks
    shared: Sequence[SharedFile] = ()  # where it is that of one of these


def _slowest(evidence: Evidence) -> _Slow | Unknown | None:
    """How far the slowest rank stands out, over the whole job or in the worst shared file."""
    if evidence.ranks < 2 or not evidence.usages:
        return None
    if evidence.lone_rank:
        return Unknown(OTHER_LOGS)
    table = rank_table(evidence)
    files = [one for one in shared_files(evidence) if not one.is_aggregated]
    candidates = [_Slow(one.spread, None, files) for one in files]
    if table is not None and (whole := _spread_of_active(table)) is not None:
        candidates.append(_Slow(whole, table))
    if not candidates:
        return None if table is not None else Unknown(NEEDS_TIME)
    return max(candidates, key=lambda slow: slow.spread.most - (slow.spread.middle or 0.0))


def _spread_of_active(table: RankTable) -> Spread | None:
    """The spread of times; of aggregators only, where these do the I/O of all."""
    spread = time_spread(table)
    if spread is None or not aggregates(table.all_bytes(), table.ranks):
        return spread
    most = max(map(table.total_bytes, table.bytes))
    busy = {r: t for r, t in (table.seconds or {}).items() if 2 * table.total_bytes(r) > most}
    return time_spread(replace(table, ranks=len(busy), seconds=busy))


def _shared_row(shared: SharedFile, path: str | None) -> dict[str, object]:
    return {
        "rank": shared.spread.rank,
        "time": shared.spread.most,
        "mean": shared.spread.mean,
        "bytes": shared.slowest_bytes,
        "file": path,
    }


def _rank_details(table: RankTable, ranks: list[int]) -> list[dict[str, object]]:
    return [
        {
            "rank": rank,
            "bytes": table.total_bytes(rank),
            "operations": None
            if table.operations is None
            else sum(table.operations.get(rank, {}).values()),
            "time": None if table.seconds is None else table.seconds.get(rank, 0.0),
        }
        for rank in ranks
    ]


def shared_data(evidence: Evidence) -> Answer:
    """In files that all ranks share, some move far more than others."""
    limits, ranks = evidence.thresholds, evidence.ranks
    variations = {
        one: one.deviation_bytes / (one.bytes / ranks)
        for one in shared_files(evidence)
        if one.bytes >= limits.imbalance_bytes
    }
    return _uneven_files(evidence, variations, limits.file_imbalance)


def shared_time(evidence: Evidence) -> Answer:
    """In files that all ranks share, some take far longer than others."""
    limits = evidence.thresholds
    imbalances = {
        one: one.spread.imbalance
        for one in shared_files(evidence)
        if one.spread.behind >= limits.imbalance_seconds
    }
    return _uneven_files(evidence, imbalances, limits.rank_time_imbalance)


def _uneven_files(evidence: Evidence, values: dict[SharedFile, float], limit: float) -> Answer:
    """Name the files above a limit, unless aggregators move their data."""
    above = {
        one.file: (value, one.spread.behind)
        for one, value in values.items()
        if value > limit and evidence.ranks > 1 and not one.is_aggregated
    }
    return _hit(evidence, above)


def file_imbalance(evidence: Evidence, *, direction: str) -> Answer:
    """Among the ranks that use a file, some move far more than others."""
    if evidence.ranks < 2:
        return None
    limits = evidence.thresholds
    if _even_over_all_files(evidence, direction):
        return None
    uneven: dict[int, tuple[float, float]] = {}
    joined = False
    for usage, entries in called_entries(evidence, only_peers=True):
        moves = usage.moves[direction]
        shared = {file for file, count in Counter(usage.file).items() if count > 1}
        ranks: dict[int, list[int]] = {}
        for place in entries:
            if usage.rank[place] == EVERYONE:
                joined |= moves.bytes[place] > 0
            elif usage.file[place] in shared:
                ranks.setdefault(usage.file[place], []).append(place)
        for file, places in ranks.items():
            sizes = [moves.bytes[place] for place in places]
            if len(sizes) < 2 or sum(sizes) < limits.imbalance_bytes:
                continue
            if aggregates(sizes, len(sizes)):
                continue
            variation = _variation(sizes)
            if variation > limits.file_imbalance:
                times = [moves.seconds[place] for place in places]
                uneven[file] = variation, max(times) - sum(times) / len(times)
    return Unknown(NEEDS_RECORDS) if joined and not uneven else _hit(evidence, uneven)


def _even_over_all_files(evidence: Evidence, direction: str) -> bool:
    """Whether what a rank has less in one file it has more in others: no rank waits."""
    table = rank_table(evidence)
    if table is None:
        return False
    sizes = [table.bytes.get(rank, {}).get(direction, 0) for rank in range(table.ranks)]
    return any(sizes) and _variation(sizes) <= evidence.thresholds.file_imbalance


def _variation(sizes: list[int]) -> float:
    """Standard deviation over mean: free of the number of ranks."""
    mean = sum(sizes) / len(sizes)
    return math.sqrt(sum((size - mean) ** 2 for size in sizes) / len(sizes)) / mean


def _hit(evidence: Evidence, uneven: dict[int, tuple[float, float]]) -> Answer:
    """Name files by their imbalance and the seconds that it costs."""
    if not uneven:
        return None
    seconds = {file: lost for file, (_, lost) in uneven.items()}
    details: list[dict[str, object]] = []
    for file in worst(seconds):
        imbalance, lost = uneven[file]
        row = {"file": evidence.files.path(file), "count": 1, "share": imbalance}
        details.append({**row, "imbalance": imbalance, "time": lost})
    numbers = {
        "files": len(uneven),
        "imbalance": max(imbalance for imbalance, _ in uneven.values()),
    }
    return Hit(numbers, max(seconds.values()), details, files=worst_first(seconds))


RULES = (
    Rule("rank-0-heavy", Severity.HIGH, "application", rank_zero, thresholds=("rank_0_factor",),
         aliases=("drishti:D01",), calls=SLOWEST_RANKS),
    Rule("unbalanced-ranks", Severity.HIGH, "application", unbalanced_rank_loads,
         thresholds=("rank_data_imbalance",), aliases=("drishti:D02",), calls=SLOWEST_RANKS),
    Rule("rank-data-imbalance", Severity.HIGH, "application", data_imbalance,
         thresholds=("rank_data_imbalance", "imbalance_bytes"), calls=SLOWEST_RANKS),
    Rule("rank-time-imbalance", Severity.HIGH, "application", time_imbalance,
         thresholds=("rank_time_imbalance", "imbalance_seconds"), calls=SLOWEST_RANKS),
    Rule("stragglers", Severity.HIGH, "application", stragglers,
         thresholds=("straggler_factor", "imbalance_seconds"), calls=SLOWEST_RANKS),
    Rule("shared-file-data-imbalance", Severity.HIGH, "application", shared_data,
         thresholds=("file_imbalance", "imbalance_bytes"), aliases=("drishti:P18",),
         calls=SLOWEST_RANKS),
    Rule("shared-file-time-imbalance", Severity.HIGH, "application", shared_time,
         thresholds=("rank_time_imbalance", "imbalance_seconds"), aliases=("drishti:P19",),
         calls=SLOWEST_RANKS),
    *both_ways("file-{}-imbalance", Severity.HIGH, "application", file_imbalance, "file-imbalance",
               ("file_imbalance", "imbalance_bytes"), ("P22", "P21")),
)  # fmt: skip
