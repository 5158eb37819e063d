"""Which ranks do too much, or take too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.rank_balance import (
    RankTable,
    SharedFile,
    Spread,
    aggregates,
    data_spread,
    heavy_rank_zero,
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
    worst,
    worst_first,
)
from ioprism.model.verdict import Severity, Subject

NEEDS = "what each rank did: Darshan with DXT_ENABLE_IO_TRACE=1, or heat maps"
OTHER_LOGS = "the logs of the job's other ranks: give all of them together"
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
    heavy = heavy_rank_zero(table, factor=evidence.thresholds.rank_0_factor)
    if heavy is None:
        return None
    total = sum(table.all_bytes())
    numbers: dict[str, float] = {"bytes": heavy.bytes, "next_bytes": heavy.next_bytes,
                                 "share": heavy.bytes / total}  # fmt: skip
    if heavy.operations is not None:
        numbers["operations"] = heavy.operations
    own = heavy.seconds if heavy.seconds is not None else _whole_time(evidence)
    slowest = [shared.spread.most for shared in shared_files(evidence) if shared.spread.rank == 0]
    seconds = max([own, *slowest])
    return Hit(
        numbers,
        seconds,
        _rank_details(table, [0]),
        Subject("rank", "0"),
        ranks=[0],
        words={"directions": " and ".join(f"{direction}s" for direction in heavy.directions)},
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
        Subject("ranks", _rank_list(worst(times))),
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
    behind = spread.most - spread.mean
    if spread.imbalance <= limits.rank_time_imbalance or behind < limits.imbalance_seconds:
        return None
    if slowest.table is None or _has_explanation(evidence, spread.rank):
        return None  # another rule says it of the shared file, or of rank 0
    slow = slowest.beyond(0.0)
    return Hit(
        {"slowest": spread.most, "mean_seconds": spread.mean, "imbalance": spread.imbalance},
        behind,
        slow.details,
        Subject("rank", str(spread.rank)),
        files=slow.files,
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
    slow = slowest.beyond(limits.straggler_factor * spread.middle)
    return Hit(
        {"slowest": spread.most, "middle": spread.middle, "factor": _ratio(spread),
         "stragglers": len(slow.ranks or slow.files)},
        behind,
        slow.details,
        Subject("rank", str(spread.rank)),
        files=slow.files,
        ranks=slow.ranks,
    )  # fmt: skip


def _ratio(spread: Spread) -> float:
    return spread.most / spread.middle if spread.middle else float("inf")


@dataclass(frozen=True, slots=True)
class _Rows:
    """Who takes long: ranks, or files that all ranks share where only these tell."""

    details: list[dict[str, object]]  # the worst
    ranks: Sequence[int] = ()
    files: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class _Slow:
    """The rank that stands out, and the rows it stands out from: of ranks, or of shared files."""

    spread: Spread
    table: RankTable | None  # where the spread is that of the ranks
    shared: Sequence[tuple[SharedFile, str | None]] = ()  # where it is that of one of these

    def beyond(self, seconds: float) -> _Rows:
        """The rows with at least this time, longest first."""
        if self.table is not None:
            slow = {rank: t for rank, t in (self.table.seconds or {}).items() if t >= seconds}
            return _Rows(_rank_details(self.table, worst(slow)), ranks=worst_first(slow))
        named = {one.file: (one, path) for one, path in self.shared if one.spread.most >= seconds}
        longest = {file: one.spread.most for file, (one, _) in named.items()}
        details = [_shared_row(*named[file]) for file in worst(longest)]
        return _Rows(details, files=worst_first(longest))


def _slowest(evidence: Evidence) -> _Slow | Unknown | None:
    """How far the slowest rank stands out, over the whole job or in the worst shared file."""
    if evidence.ranks < 2 or not evidence.usages:
        return None
    if evidence.lone_rank:
        return Unknown(OTHER_LOGS)
    table = rank_table(evidence)
    files = [one for one in shared_files(evidence) if not one.is_aggregated]
    listed = [(one, evidence.files.path(one.file)) for one in files]
    candidates = [_Slow(one.spread, None, listed) for one in files]
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


def _rank_list(ranks: list[int]) -> str:
    return ", ".join(map(str, sorted(ranks)))


RULES = (
    Rule("rank-0-heavy", Severity.HIGH, "application", rank_zero, "rank-0-heavy",
         ("rank_0_factor",), ("drishti:D01",), calls=SLOWEST_RANKS),
    Rule("unbalanced-ranks", Severity.HIGH, "application", unbalanced_rank_loads,
         "unbalanced-ranks",
         ("rank_data_imbalance",), ("drishti:D02",), calls=SLOWEST_RANKS),
    Rule("rank-data-imbalance", Severity.HIGH, "application", data_imbalance,
         "rank-data-imbalance", ("rank_data_imbalance", "imbalance_bytes"), calls=SLOWEST_RANKS),
    Rule("rank-time-imbalance", Severity.HIGH, "application", time_imbalance,
         "rank-time-imbalance", ("rank_time_imbalance", "imbalance_seconds"), calls=SLOWEST_RANKS),
    Rule("stragglers", Severity.HIGH, "application", stragglers, "stragglers",
         ("straggler_factor", "imbalance_seconds"), calls=SLOWEST_RANKS),
)  # fmt: skip
