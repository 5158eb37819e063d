"""What is done besides moving data: opens, seeks, syncs, and very many small files."""

from __future__ import annotations

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.rules.rule import (
    METADATA,
    Answer,
    CallKind,
    Hit,
    Rule,
    Unknown,
    by_file,
    file_details,
    share,
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
    own, shared = _metadata_times(evidence)
    most = _cost(evidence, own, shared)
    limits = evidence.thresholds
    part = share(most, evidence.runtime or 0.0)
    of_io = _share_of_io(evidence)
    heavy = of_io > limits.metadata_of_io and part > limits.metadata_share / 2
    if most <= limits.metadata_seconds and part <= limits.metadata_share and not heavy:
        if not any(any(u.opens) for u in _usages(evidence)) and evidence.loads:
            return Unknown("metadata calls, or counters: extended tracing alone has none")
        return None
    over = sum(1 for seconds in own.values() if seconds + shared > limits.metadata_seconds)
    details = [{"rank": rank, "time": own[rank] + shared} for rank in worst(own)]
    opens = sum(sum(usage.opens) for usage in _usages(evidence))
    return Hit(
        {"seconds": most, "share": part, "io_share": of_io, "ranks_over_limit": over,
         "opens": opens},
        most,
        details,
        files=_longest(evidence),
    )  # fmt: skip


def _metadata_times(evidence: Evidence) -> tuple[dict[int, float], float]:
    """Seconds of each rank, and what every rank has in records of all of them, on average."""
    own: dict[int, float] = {}
    shared = 0.0
    for usage in _usages(evidence):
        for rank, seconds in zip(usage.rank, usage.metadata_seconds, strict=True):
            if rank == EVERYONE:
                shared += seconds / evidence.ranks
            elif seconds:
                own[rank] = own.get(rank, 0.0) + seconds
    return own, shared


def _cost(evidence: Evidence, own: dict[int, float], shared: float) -> float:
    """Seconds of the run: of the rank most concerned, or of processes that follow each other."""
    most = max(own.values(), default=0.0) + shared
    if evidence.concurrency is not None:
        most = max(most, sum(own.values()) / evidence.concurrency)
    return min(most, evidence.runtime or most)


def _share_of_io(evidence: Evidence) -> float:
    usages = _usages(evidence)
    whole = sum(sum(usage.seconds) for usage in usages)
    return share(sum(sum(usage.metadata_seconds) for usage in usages), whole)


def _longest(evidence: Evidence) -> list[int]:
    """All files; those whose metadata calls take longest first."""
    sums: dict[int, float] = {}
    for usage in _usages(evidence):
        for file, seconds in zip(usage.file, usage.metadata_seconds, strict=True):
            sums[file] = sums.get(file, 0.0) + seconds
    return worst_first(sums)


def tiny_files(evidence: Evidence) -> Answer:
    """Very many files, each with very little in it."""
    moved: dict[int, float] = {}
    for usage in _usages(evidence):
        for file, size in zip(usage.file, usage.bytes, strict=True):
            moved[file] = moved.get(file, 0) + size
    few = evidence.thresholds.tiny_file_bytes
    tiny = {file: size for file, size in moved.items() if size < few}
    if len(tiny) <= evidence.thresholds.tiny_files:
        return None
    seconds = 0.0
    for usage in _usages(evidence):
        pairs = zip(usage.seconds, usage.file, strict=True)
        seconds += evidence.held_up(usage, [t if f in tiny else 0.0 for t, f in pairs])
    return Hit(
        {"files": len(moved), "tiny": len(tiny), "share": share(len(tiny), len(moved))},
        seconds,
        _folders(evidence, list(tiny)),
        files=list(tiny),
        of_calls=True,
    )


def _folders(evidence: Evidence, files: list[int]) -> list[dict[str, object]]:
    counts: dict[str, int] = {}
    for file in files:
        folder = (evidence.files.path(file) or "").rpartition("/")[0]
        counts[folder] = counts.get(folder, 0) + 1
    fullest = sorted(counts, key=lambda folder: (-counts[folder], folder))[:5]
    return [{"folder": folder, "count": counts[folder]} for folder in fullest]


def many_seeks(evidence: Evidence) -> Answer:
    """There are nearly as many seeks as reads and writes."""
    answer: Answer = None
    for usage in _usages(evidence):
        seeks, calls = sum(usage.seeks), sum(usage.operations)
        ratio = share(seeks, calls)
        if ratio <= evidence.thresholds.seeks:
            continue
        seconds = evidence.held_up(usage, _seek_seconds(usage))
        details, rows = file_details(
            evidence, by_file(usage, usage.seeks), by_file(usage, usage.operations)
        )
        evidence_of = {"seeks": seeks, "requests": calls, "ratio": ratio}
        answer = Hit(
            evidence_of, seconds, details, interface=usage.layer, files=rows, of_calls=True
        )
    return answer


def _seek_seconds(usage: Usage) -> list[float]:
    """What the seeks of each entry take: counters have one time for all metadata calls.

    No seek takes longer than where they are most of what the metadata time is spent on.
    """
    entries = list(zip(usage.metadata_seconds, usage.seeks, strict=True))
    each = min([SEEK_SECONDS, *(time / n for time, n in entries if n >= MANY_SEEKS)])
    return [min(time, each * n) for time, n in entries]


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
        spent = usage.sync_seconds or usage.moves["write"].seconds
        times = [t if n else 0.0 for t, n in zip(spent, often, strict=True)]
        details, rows = file_details(evidence, by_file(usage, often), by_file(usage, writes))
        answer = Hit(
            {"syncs": sum(often), "writes": sum(writes), "files": len(by_file(usage, often))},
            evidence.held_up(usage, times),
            details,
            interface=usage.layer,
            files=rows,
            of_calls=True,
        )
    return answer


RULES = (
    Rule("metadata-heavy", Severity.HIGH, "posix", metadata_load, "metadata-heavy",
         ("metadata_seconds", "metadata_share", "metadata_of_io"), ("drishti:P17",),
         calls=CallKind(METADATA)),
    Rule("tiny-files", Severity.WARN, "posix", tiny_files, "tiny-files",
         ("tiny_files", "tiny_file_bytes"), calls=CallKind((*METADATA, *DIRECTIONS))),
    Rule("many-seeks", Severity.WARN, "posix", many_seeks, "many-seeks", ("seeks",),
         calls=CallKind(("seek",))),
    Rule("sync-storm", Severity.WARN, "posix", sync_storm, "sync-storm",
         ("syncs", "syncs_per_write"), calls=CallKind(("sync",))),
)  # fmt: skip
