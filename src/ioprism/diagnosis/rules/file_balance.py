"""How evenly ranks share the work in single files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import partial

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.rank_balance import (
    SharedFile,
    aggregates,
    application_entries,
    rank_table,
    shared_files,
)
from ioprism.diagnosis.rules.rule import (
    SLOWEST_RANKS,
    Answer,
    Hit,
    Rule,
    Unknown,
    both,
    worst,
    worst_first,
)
from ioprism.model.usage import EVERYONE
from ioprism.model.verdict import Severity

NEEDS = "records of each rank in shared files: extended tracing, or Darshan without reduction"


def shared_data(evidence: Evidence) -> Answer:
    """In files that all ranks share, some move far more than others."""
    limits = evidence.thresholds

    def variation(shared: SharedFile) -> float | None:
        if shared.bytes < limits.imbalance_bytes:
            return None
        relative = shared.deviation_bytes / (shared.bytes / evidence.ranks)
        return relative if relative > limits.file_imbalance else None

    return _judge_shared_files(evidence, variation)


def shared_time(evidence: Evidence) -> Answer:
    """In files that all ranks share, some take far longer than others."""
    limits = evidence.thresholds

    def imbalance(shared: SharedFile) -> float | None:
        found = shared.spread.imbalance
        late = _behind(shared) >= limits.imbalance_seconds
        return found if late and found > limits.rank_time_imbalance else None

    return _judge_shared_files(evidence, imbalance)


def _judge_shared_files(evidence: Evidence, judged: Callable[[SharedFile], float | None]) -> Answer:
    """Judge every file that all ranks share; None stands for an even one."""
    if evidence.ranks < 2:
        return None
    imbalances: dict[int, float] = {}
    seconds: dict[int, float] = {}
    for shared in shared_files(evidence):
        imbalance = judged(shared)
        if imbalance is not None and not shared.is_aggregated:
            imbalances[shared.file] = imbalance
            seconds[shared.file] = _behind(shared)
    return _hit(evidence, imbalances, seconds)


def _behind(shared: SharedFile) -> float:
    """Seconds that the slowest rank takes longer than the mean one."""
    return shared.spread.most - shared.spread.mean


def file_imbalance(evidence: Evidence, *, direction: str) -> Answer:
    """Among the ranks that use a file, some move far more than others."""
    if evidence.ranks < 2:
        return None
    limits = evidence.thresholds
    if _even_over_all_files(evidence, direction):
        return None
    variations: dict[int, float] = {}
    seconds: dict[int, float] = {}
    joined = False
    for usage, entries in application_entries(evidence):
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
                variations[file] = variation
                seconds[file] = max(times) - sum(times) / len(times)
    if not variations:
        return Unknown(NEEDS) if joined else None
    return _hit(evidence, variations, seconds)


def _even_over_all_files(evidence: Evidence, direction: str) -> bool:
    """Whether what a rank has less in one file it has more in others: nobody waits."""
    table = rank_table(evidence)
    if table is None:
        return False
    sizes = [table.bytes.get(rank, {}).get(direction, 0) for rank in range(table.ranks)]
    return any(sizes) and _variation(sizes) <= evidence.thresholds.file_imbalance


def _variation(sizes: list[int]) -> float:
    """Standard deviation over mean: free of the number of ranks."""
    mean = sum(sizes) / len(sizes)
    return math.sqrt(sum((size - mean) ** 2 for size in sizes) / len(sizes)) / mean


def _hit(evidence: Evidence, imbalances: dict[int, float], seconds: dict[int, float]) -> Answer:
    if not imbalances:
        return None
    details: list[dict[str, object]] = [
        {
            "file": evidence.files.path(file),
            "count": 1,
            "share": imbalances[file],
            "imbalance": imbalances[file],
            "time": seconds[file],
        }
        for file in worst(seconds)
    ]
    numbers = {"files": len(imbalances), "imbalance": max(imbalances.values())}
    return Hit(numbers, max(seconds.values()), details, files=worst_first(seconds))


def _per_file(direction: str) -> Rule:
    return Rule(
        f"file-{direction}-imbalance",
        Severity.HIGH,
        "application",
        partial(file_imbalance, direction=direction),
        "file-imbalance",
        ("file_imbalance", "imbalance_bytes"),
        (f"drishti:{'P22' if direction == 'read' else 'P21'}",),
        direction,
    )


RULES = (
    Rule("shared-file-data-imbalance", Severity.HIGH, "application", shared_data,
         "shared-file-data-imbalance", ("file_imbalance", "imbalance_bytes"), ("drishti:P18",),
         calls=SLOWEST_RANKS),
    Rule("shared-file-time-imbalance", Severity.HIGH, "application", shared_time,
         "shared-file-time-imbalance", ("rank_time_imbalance", "imbalance_seconds"),
         ("drishti:P19",), calls=SLOWEST_RANKS),
    *both(_per_file),
)  # fmt: skip
