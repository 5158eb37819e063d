"""What is known of a job's I/O, gathered once: the ground that all rules stand on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ioprism.formats.darshan.meaning import DATA_MODULES
from ioprism.model.arrays import median
from ioprism.model.trace import LAYERS, Completeness, Job, deepest
from ioprism.model.usage import (
    DIRECTIONS,
    EVERYONE,
    CounterColumns,
    Counts,
    FileFacts,
    HeatMap,
    RankLoad,
    Seconds,
    Striping,
    Usage,
    heat_loads,
)
from ioprism.settings import Thresholds
from ioprism.views.module_usage import columnar, usage_of

if TYPE_CHECKING:
    from ioprism.engine.base import Engine
    from ioprism.model.machine import BackgroundLoad
    from ioprism.model.trace import Trace
    from ioprism.phase_detection.find import LayerPhases

N = TypeVar("N", int, float)
Callers = Mapping[tuple[int, str], frozenset[int]]  # file and direction -> ranks in POSIX

PAGE = 4096  # bytes, of Linux on most processors; pipes for signals carry less
HOLES = 2  # times what is asked for: what a library reads beyond that, it reads for itself


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything the rules look at. What the trace cannot tell is None or absent."""

    job: Job
    usages: Mapping[str, Usage]  # by layer
    files: FileFacts
    completeness: Completeness
    thresholds: Thresholds
    loads: Mapping[str, RankLoad] = field(default_factory=dict)  # by layer, from calls or heat maps
    phases: Mapping[str, LayerPhases] | None = None  # by layer
    targets: Mapping[str, Mapping[int, int]] | None = None  # layer -> storage target -> bytes
    hosts: Mapping[int, str] = field(default_factory=dict)  # by rank
    callers: Callers = field(default_factory=dict)
    format: str = ""  # of the trace
    concurrency: float | None = None  # processes at work at a time, where calls tell
    peers: frozenset[int] | None = None  # the ranks to compare, where other programs ran too
    logs: int = 1  # that the job's trace consists of
    background_load: BackgroundLoad | None = (
        None  # what the servers moved meanwhile, where their counters are
    )
    modules: frozenset[str] = frozenset()  # of counters that the log holds
    heat: Mapping[str, Sequence[HeatMap]] = field(default_factory=dict)  # by layer
    last_moment: float = 0.0  # when the last counted call ended, for jobs that were killed

    @cached_property
    def ranks(self) -> int:
        """How many ranks the job has, at least 1; launchers and the like are none."""
        if self.peers:
            return len(self.peers)
        seen = max((max(u.rank, default=0) + 1 for u in self.usages.values()), default=1)
        return max(1, self.job.ranks or seen)

    @cached_property
    def lone_rank(self) -> bool:
        """Whether this is the log that one rank of a killed job left; the others have theirs."""
        ranks = {rank for usage in self.usages.values() for rank in usage.rank}
        killed = self.format == "darshan" and self.job.end_time is None
        one = len(ranks) == 1 and EVERYONE not in ranks
        return killed and one and self.logs < (self.job.ranks or 1)

    @property
    def runtime(self) -> float | None:
        """Seconds; None for a job that was killed."""
        return self.job.runtime

    @cached_property
    def base_layers(self) -> tuple[str, ...]:
        """The layers that touch storage: each byte passes one of them once."""
        return deepest(layer for layer in LAYERS if self._moves_data(layer))

    def _moves_data(self, layer: str) -> bool:
        usage = self.usages.get(layer)
        return usage is not None and any(usage.operations)

    @cached_property
    def request_layers(self) -> tuple[str, ...]:
        """The layers whose requests reach storage as they are: STDIO buffers them."""
        chosen = tuple(layer for layer in self.base_layers if layer != "stdio")
        return chosen or (("mpiio",) if self._moves_data("mpiio") else ())

    @cached_property
    def through_mpiio(self) -> frozenset[int]:
        """Files that were opened through MPI-IO: what ranks do in POSIX is not their choice."""
        usage = self.usages.get("mpiio")
        return frozenset(usage.file) if usage else frozenset()

    @cached_property
    def shared_files(self) -> frozenset[int]:
        """Files that more than one rank uses, through any interface."""
        return frozenset().union(*(usage.shared_files for usage in self.usages.values()))

    @cached_property
    def sieved_files(self) -> frozenset[int]:
        """Files that MPI-IO is only told to write, and reads nevertheless (data sieving)."""
        upper, lower = self.usages.get("mpiio"), self.usages.get("posix")
        if upper is None or lower is None:
            return frozenset()
        asked = {d: _files(upper, upper.moves[d].operations) for d in DIRECTIONS}
        read = _files(lower, lower.moves["read"].operations)
        return frozenset((asked["write"] - asked["read"]) & read)

    @cached_property
    def amplified_files(self) -> frozenset[int]:
        """Files of which MPI-IO reads far more than it is asked for: holes between pieces."""
        upper, lower = self.usages.get("mpiio"), self.usages.get("posix")
        if upper is None or lower is None:
            return frozenset()
        asked, read = (sum_by(usage.file, usage.moves["read"].bytes) for usage in (upper, lower))
        return frozenset(f for f, size in asked.items() if size and read.get(f, 0) > HOLES * size)

    @cached_property
    def moved(self) -> dict[str, int]:
        """Bytes by direction, each once."""
        usages = [self.usages[layer] for layer in self.base_layers]
        return {d: sum(sum(usage.moves[d].bytes) for usage in usages) for d in DIRECTIONS}

    def held_up(self, usage: Usage, seconds: Seconds) -> float:
        """Seconds that the rank most concerned spends.

        Records of all ranks say how long the slowest was in all calls; it is as long in these
        as they are part of all.
        """
        own: dict[int, float] = {}
        shared = 0.0
        whole = usage.seconds
        for place, (rank, time) in enumerate(zip(usage.rank, seconds, strict=True)):
            if time and rank != EVERYONE:
                own[rank] = own.get(rank, 0.0) + time
            elif time:
                mean, part = time / self.ranks, min(1.0, time / (whole[place] or time))
                shared += mean
                if usage.spread is not None:
                    slowest, longest = usage.spread.slowest[place], usage.spread.slowest_seconds
                    beyond = max(0.0, longest[place] * part - mean)
                    own[slowest] = own.get(slowest, 0.0) + beyond
        return max(own.values(), default=0.0) + shared

    def negligible(self, seconds: float) -> bool:
        """Whether so little time is at stake that nothing can be high."""
        limits = self.thresholds
        share = limits.negligible_share * (self.runtime or 0.0)
        return seconds < max(share, limits.negligible_seconds)


def sum_by(keys: Iterable[int], values: Iterable[N]) -> dict[int, N]:
    """Add up values by key."""
    pairs = list(zip(keys, values, strict=True))
    sums: dict[int, N] = dict(pairs)
    if len(sums) == len(pairs):  # in most logs of many files, each has one record
        return sums
    sums.clear()
    for key, value in pairs:
        sums[key] = sums.get(key, 0) + value
    return sums


def _files(usage: Usage, calls: Counts) -> set[int]:
    return {file for file, count in zip(usage.file, calls, strict=True) if count}


def _last_moment(records: Mapping[str, CounterColumns], job: Job) -> float:
    """When the last counted call ended, where the job's end is not known."""
    if job.runtime:
        return 0.0
    names = (
        (rows, DATA_MODULES[module].counter_name(f"F_{kind}_END_TIMESTAMP"))
        for module, rows in records.items()
        for kind in ("OPEN", "READ", "WRITE", "CLOSE")
    )
    ends = (rows.column(name) or () for rows, name in names)
    return max((end for column in ends for end in column if end is not None), default=0.0)


def _usages(
    records: Mapping[str, CounterColumns], files: FileFacts, thresholds: Thresholds, job: Job
) -> dict[str, Usage]:
    usages = {}
    for name, rows in records.items():
        usage = usage_of(
            rows,
            DATA_MODULES[name],
            small_bytes=thresholds.small_bytes,
            without=files.not_data,
            ranks=job.ranks or 1,
        )
        usages[usage.layer] = without_pipes(by_stripes(usage, files.striping), files.paths)
    return usages


def _align_to_stripes(counted: Usage, seen: Usage | None, files: FileFacts) -> Usage:
    """Judge striped files by their stripes, which calls tell; Darshan counts by its own block."""
    if counted.misaligned is None or seen is None or seen.misaligned is None or not files.striping:
        return counted
    crossing = sum_by(seen.file, seen.misaligned)
    seen_files = set(crossing)
    told: Counts = []
    for file, count in zip(counted.file, counted.misaligned, strict=True):
        striped = file in files.striping and file in seen_files
        told.append(crossing.pop(file, 0) if striped else count)
    return replace(counted, misaligned=told)


def evidence_of_counters(trace: Trace, thresholds: Thresholds | None = None) -> Evidence:
    """Gather what the counters of a trace show."""
    return _counter_evidence(trace, thresholds or Thresholds())


@lru_cache(maxsize=1)  # rules, checks and the comparison with calls ask one after the other
def _counter_evidence(trace: Trace, thresholds: Thresholds) -> Evidence:
    counters, files = columnar(trace.counters), trace.file_facts
    heat = counters.heat_maps()
    records = {name: counters.columns(name) for name in DATA_MODULES if name in trace.counters}
    return Evidence(
        trace.job,
        _usages(records, files, thresholds, trace.job),
        files,
        trace.completeness,
        thresholds,
        loads=heat_loads(heat),
        format=trace.format,
        logs=len(trace.paths),
        # Every module is read, so that its damage is reported.
        modules=frozenset(name for name in trace.counters if counters.height(name)),
        heat=heat,
        last_moment=_last_moment(records, trace.job),
    )


def evidence_of_trace(trace: Trace, engine: Engine, thresholds: Thresholds) -> Evidence:
    """Gather what counters show, and what a per-call trace adds."""
    counted = evidence_of_counters(trace, thresholds)
    if not trace.partitions:
        return counted
    files, usages = counted.files, counted.usages
    from ioprism.diagnosis.affected_calls import CallEvidence

    calls = CallEvidence.of(trace, engine, thresholds)
    seen = {u.layer: u for u in calls.usages(files.not_data)}
    return replace(
        counted,
        usages={
            **seen,
            **{layer: _align_to_stripes(u, seen.get(layer), files) for layer, u in usages.items()},
        },
        loads={**counted.loads, **calls.loads},
        phases=calls.phases,
        targets=calls.targets,
        hosts=calls.hosts,
        callers=calls.callers,
        concurrency=None if usages else calls.concurrency(),
        peers=calls.peers(trace.processes, files.not_data),
    )


NAMED = re.compile(r"(?:^|[^a-z])(?:pipe|fifo)s?(?:[^a-z]|$)", re.IGNORECASE)
BEYOND = 1000  # times the other opens of the log: storage does not serve one file that much slower
LONG = 1.0  # seconds: shorter opens are not worth a doubt
ENDLESS = 60.0  # seconds of every open, where the log has no other opens to compare with


def without_pipes(usage: Usage, paths: Mapping[int, str] | None = None) -> Usage:
    """Leave out opens that wait for the other end of a pipe: storage has no part in them.

    A pipe is told by its name, or by what is done to it: messages and neither seeks nor stats,
    with opens that last beyond all others of the log.
    """
    if max(usage.metadata_seconds, default=0.0) < LONG:
        return usage
    opened = zip(usage.metadata_seconds, usage.opens, strict=True)
    each = [seconds / max(1, opens) for seconds, opens in opened]
    streams = _streams(usage)
    others = [time for time, stream in zip(each, streams, strict=True) if not stream]
    beyond = max(LONG, BEYOND * median(np.array(others))) if others else ENDLESS
    names = paths or {}
    told = list(usage.metadata_seconds)
    for place, (time, stream, file) in enumerate(zip(each, streams, usage.file, strict=True)):
        name = names.get(file, "").rpartition("/")[2]
        if stream and (time > beyond or NAMED.search(name)):
            told[place] = 0.0
    return replace(usage, metadata_seconds=told)


def _streams(usage: Usage) -> list[bool]:
    """Whether one process does nothing to a file but pass a few bytes."""
    entries = zip(usage.rank, usage.seeks, usage.stats, usage.bytes, strict=True)
    return [
        rank != EVERYONE and seeks == stats == 0 and 0 < moved < PAGE
        for rank, seeks, stats, moved in entries
    ]


def by_stripes(usage: Usage, striping: Mapping[int, Striping]) -> Usage:
    """Return the columns with requests of striped files judged by their stripes."""
    if usage.misaligned is None or usage.alignment is None or not striping:
        return usage
    sizes = {file: layout.size for file, layout in striping.items() if layout.size > 0}
    entries = zip(usage.file, usage.misaligned, usage.operations, usage.bytes, strict=True)
    told = [
        count if file not in sizes else _crossing(usage, place, (made, moved), sizes[file])
        for place, (file, count, made, moved) in enumerate(entries)
    ]
    return replace(usage, misaligned=told)


def _crossing(usage: Usage, place: int, whole: tuple[int, int], stripe: int) -> int:
    """Estimate how many requests of an entry split a page or cross a border of stripes.

    Requests that fill stripes, or that stripes hold a whole number of, cross none unless they
    begin off the block. Others cross as often as they reach the next border. Requests that are
    not whole pages begin or end inside one.

    Args:
        usage: all entries.
        place: of the entry.
        whole: its requests and bytes.
        stripe: bytes of a stripe of its file.
    """
    off = (usage.misaligned or ())[place]
    block = (usage.alignment or ())[place]
    if not off and block > 0 and block % stripe == 0:
        return 0
    requests, moved = whole
    fitting = crossing = 0.0
    for sizes, counts in usage.common_sizes:
        size, count = sizes[place], min(counts[place], requests)
        if size <= 0:
            continue
        requests, moved = requests - count, moved - count * size
        if size % PAGE:
            crossing += count if off else 0  # begins or ends inside a page
        elif size % stripe == 0 or stripe % size == 0:
            fitting += count
        else:
            crossing += count * min(1.0, size / stripe)
    crossing += min(requests, max(0, moved) / stripe)
    others = whole[0] - fitting
    beside = min(fitting, max(0.0, off - others))  # fitting ones that begin off the block
    mean = whole[1] / max(1, whole[0])
    if block % stripe == 0 or stripe % block == 0:
        crossing += beside * min(1.0, mean / stripe)
    return min(whole[0], round(crossing))
