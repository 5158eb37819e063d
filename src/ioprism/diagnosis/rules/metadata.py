"""What is done besides moving data: opens, seeks, syncs, and very many small files."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import chain

from ioprism.diagnosis.evidence import Evidence, sum_by
from ioprism.diagnosis.rules.rule import (
    METADATA,
    Answer,
    CallKind,
    Counted,
    Hit,
    Rule,
    Unknown,
    by_file,
    file_hit,
    share,
    share_above,
    times_in,
    where,
    worst,
    worst_first,
)
from ioprism.model.trace import HEIGHT, UPWARDS
from ioprism.model.usage import DIRECTIONS, EVERYONE, Usage
from ioprism.model.verdict import Severity

SEEK_SECONDS = 1.2e-6  # a seek moves a number on the node and asks no server; as measured
MANY_SEEKS = 100  # of an entry, for its metadata time to tell what one takes at most
# Metadata calls of these layers reach a server; MPI-IO's opens also wait for other ranks.
LAYERS = tuple(name for name in UPWARDS if HEIGHT[name] < HEIGHT["mpiio"])


def _usages(evidence: Evidence) -> list[Usage]:
    return [evidence.usages[layer] for layer in LAYERS if layer in evidence.usages]


def metadata_load(evidence: Evidence) -> Answer:
    """A rank spends long in metadata calls, or much of the run; or most of the I/O is metadata."""
    if not evidence.usages and not evidence.loads:
        return None
    sums = _sums(evidence, "rank", "metadata_seconds")
    shared = sums.pop(EVERYONE, 0.0) / evidence.ranks  # of each rank, on average
    own = {rank: seconds for rank, seconds in sums.items() if seconds}
    # Of the rank most concerned, or of processes that follow each other.
    most = max(own.values(), default=0.0) + shared
    if evidence.concurrency is not None:
        most = max(most, sum(own.values()) / evidence.concurrency)
    most = min(most, evidence.runtime or most)
    limits = evidence.thresholds
    part = share(most, evidence.runtime or 0.0)
    usages = _usages(evidence)
    whole = sum(sum(usage.seconds) for usage in usages)
    of_io = share(sum(sum(usage.metadata_seconds) for usage in usages), whole)
    heavy = of_io > limits.metadata_of_io and part > limits.metadata_share / 2
    if most <= limits.metadata_seconds and part <= limits.metadata_share and not heavy:
        if not any(any(usage.opens) for usage in usages) and evidence.loads:
            return Unknown("metadata calls, or counters: extended tracing alone has none")
        return None
    over = sum(1 for seconds in own.values() if seconds + shared > limits.metadata_seconds)
    details = [{"rank": rank, "time": own[rank] + shared} for rank in worst(own)]
    opens = sum(sum(usage.opens) for usage in usages)
    return Hit(
        {"seconds": most, "share": part, "io_share": of_io, "ranks_over_limit": over,
         "opens": opens},
        most,
        details,
        files=worst_first(_sums(evidence, "file", "metadata_seconds")),
    )  # fmt: skip


def _sums(evidence: Evidence, key: str, column: str) -> dict[int, float]:
    """Sums of a column of all layers, by file or rank."""
    usages = _usages(evidence)
    keys, values = (chain(*(getattr(u, name) for u in usages)) for name in (key, column))
    return sum_by(keys, values)


def tiny_files(evidence: Evidence) -> Answer:
    """Very many files, each with very little in it."""
    moved = _sums(evidence, "file", "bytes")
    few = evidence.thresholds.tiny_file_bytes
    tiny = {file: size for file, size in moved.items() if size < few}
    if len(tiny) <= evidence.thresholds.tiny_files:
        return None
    seconds = 0.0
    for usage in _usages(evidence):
        seconds += evidence.held_up(usage, times_in(usage, usage.seconds, tiny))
    return Hit(
        {"files": len(moved), "tiny": len(tiny), "share": share(len(tiny), len(moved))},
        seconds,
        _folders(evidence, list(tiny)),
        files=list(tiny),
        of_calls=True,
    )


def _folders(evidence: Evidence, files: list[int]) -> list[dict[str, object]]:
    counts = Counter((evidence.files.path(file) or "").rpartition("/")[0] for file in files)
    fullest = sorted(counts, key=lambda folder: (-counts[folder], folder))[:5]
    return [{"folder": folder, "count": counts[folder]} for folder in fullest]


def many_seeks(evidence: Evidence) -> Answer:
    """There are nearly as many seeks as reads and writes."""
    counted = (
        Counted(usage, usage.seeks, usage.operations, partial(_seek_seconds, usage))
        for usage in _usages(evidence)
    )
    names = ("requests", "seeks", "ratio")
    return share_above(evidence, counted, evidence.thresholds.seeks, names)


def _seek_seconds(usage: Usage) -> tuple[list[float], float]:
    """What the seeks of each entry take: counters have one time for all metadata calls.

    No seek takes longer than where they are most of what the metadata time is spent on.
    """
    entries = list(zip(usage.metadata_seconds, usage.seeks, strict=True))
    each = min([SEEK_SECONDS, *(time / n for time, n in entries if n >= MANY_SEEKS)])
    return [min(time, each * n) for time, n in entries], 1.0


def sync_storm(evidence: Evidence) -> Answer:
    """Ranks force data to storage again and again instead of once at the end."""
    answer: Answer = None
    for usage in _usages(evidence):
        limits = evidence.thresholds
        allowed = [
            limits.syncs * (evidence.ranks if rank == EVERYONE else 1) for rank in usage.rank
        ]
        writes = usage.moves["write"].operations
        often = [
            s if s > limit and s > limits.syncs_per_write * w else 0
            for s, limit, w in zip(usage.syncs, allowed, writes, strict=True)
        ]
        if not any(often):
            continue
        # Darshan counts the time of a sync as time of writing.
        times = where(often, usage.sync_seconds or usage.moves["write"].seconds)
        synced = by_file(usage, often)
        numbers = {"syncs": sum(often), "writes": sum(writes), "files": len(synced)}
        answer = file_hit(evidence, usage, numbers, times, synced, by_file(usage, writes))
    return answer


RULES = (
    Rule("metadata-heavy", Severity.HIGH, "posix", metadata_load,
         thresholds=("metadata_seconds", "metadata_share", "metadata_of_io"),
         aliases=("drishti:P17",), calls=CallKind(METADATA)),
    Rule("tiny-files", Severity.WARN, "posix", tiny_files,
         thresholds=("tiny_files", "tiny_file_bytes"), calls=CallKind((*METADATA, *DIRECTIONS))),
    Rule("many-seeks", Severity.WARN, "posix", many_seeks, thresholds=("seeks",),
         calls=CallKind(("seek",))),
    Rule("sync-storm", Severity.WARN, "posix", sync_storm, thresholds=("syncs", "syncs_per_write"),
         calls=CallKind(("sync",))),
)  # fmt: skip
