"""Counters as checks see them: one row per record and kind of call, with weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.heat import HeatPhases, heat_phases
from ioprism.diagnosis.limits import NEARLY_ALL, Limits
from ioprism.diagnosis.observed import LibraryFile, Observed
from ioprism.diagnosis.rows import (
    ALL_RANKS,
    METADATA,
    READ,
    SYNC,
    UNKNOWN,
    WRITE,
    CallRows,
    Flags,
    Floats,
    Ints,
    IoPhases,
    concatenate_rows,
    io_phases,
    unique,
)
from ioprism.diagnosis.targets import files_of_log
from ioprism.model.arrays import believable_metadata, unite
from ioprism.model.usage import NAMELESS, Usage

STORAGE_LAYERS = ("posix", "stdio", "dfs", "daos")  # that reach storage
HEAT_LAYERS = ("posix", "stdio")  # the first of them that moved bytes counts
TURN_ERROR = 1.01  # writes one after the other, over the time from the first to the last of them
MAX_CELLS = 20_000_000  # phases times ranks that are held in memory


def _array(usage: Usage, values: Sequence[float] | None) -> Floats:
    """One column; zeros where the log lacks it."""
    return np.zeros(len(usage)) if values is None else np.asarray(values, np.float64)


def observe_counters(evidence: Evidence, limits: Limits) -> Observed | None:
    """Return what counters show; None where no record of calls to storage names its file."""
    parts = [
        part
        for layer in STORAGE_LAYERS
        if layer in evidence.usages and not (layer == "daos" and "dfs" in evidence.usages)
        for part in _layer_rows(evidence.usages[layer], evidence, limits)
    ]
    if not sum(float(part[0].seconds.sum()) for part in parts) > 0:
        return None
    unsorted = concatenate_rows(*(part[0] for part in parts))
    order = np.lexsort((unsorted.start, unsorted.rank))
    rows = unsorted.select(order)
    extent = np.concatenate([part[1] for part in parts])[order]
    backward, jumps = (np.concatenate([part[n] for part in parts])[order] for n in (2, 3))
    numbers = unique(rows.rank[rows.rank >= 0])
    ranked = np.where(rows.rank >= 0, np.searchsorted(numbers, rows.rank), ALL_RANKS)
    rows = replace(rows, rank=ranked, seconds=rows.seconds * _part_of_threads(rows))
    runtime = evidence.runtime or evidence.last_moment
    ranks = max(evidence.job.ranks or 1, int(numbers.max(initial=0)) + 1)
    phases, timed = _phases(rows, runtime, max(1, len(numbers)))
    heat = _heat(evidence, ranks)
    observed = Observed(
        runtime=runtime,
        ranks=ranks,
        rank_numbers=numbers,
        host_of=np.full(len(numbers), -1, np.int64),
        hosts=(),
        rows=rows,
        phases=phases,
        phase=phases.find((rows.start + rows.end) / 2) if timed else np.zeros(len(rows), np.int64),
        stall=np.zeros(len(phases)),
        library=np.zeros(len(phases)),
        files=files_of_log(evidence.files, int(rows.file.max()) + 1),
        limits=limits,
        basis="counters" if heat is None else "heatmap",
        detail=frozenset(
            {"counters"} | ({"heatmap"} if heat else set()) | ({"times"} if timed else set())
        ),
        library_files=_library_files(evidence, ranks),
        syncs=_calls_by_rank(rows, SYNC, len(numbers)),
        opens=_calls_by_rank(rows, METADATA, len(numbers)),
        program=evidence.job.executable or "",
        system_targets=evidence.files.system_targets or 0,
        heat=heat,
        extent=extent,
        backward=backward,
        jumps=jumps,
        streams=_streams(evidence),
    )
    return _with_stall(observed, evidence)


def _part_of_threads(rows: CallRows) -> Floats:
    """The part of each row's seconds by which it prolongs its rank's I/O.

    Threads of a rank make calls at the same time: these take longer together than the time from
    the first to the last call on each file shows.
    """
    timed = rows.moves_data & (rows.rank >= 0) & (rows.start > 0) & (rows.end > rows.start)
    ranks = int(rows.rank.max(initial=0)) + 1
    span = float(rows.end.max()) + 1.0
    lift = rows.rank[timed] * span
    begin, finish = unite(rows.start[timed] + lift, rows.end[timed] + lift)
    rank = (begin / span).astype(np.int64)
    lasting = np.bincount(rank, finish - begin, minlength=ranks)
    spent = np.bincount(rows.rank[timed], rows.seconds[timed], minlength=ranks)
    part = np.where(spent > 0, np.minimum(1.0, lasting / np.maximum(spent, 1e-12)), 1.0)
    return np.where(rows.rank >= 0, part[np.maximum(rows.rank, 0)], 1.0)


def _streams(evidence: Evidence) -> Ints:
    """Files that the job only uses through streams of the C library."""
    files = [
        set(evidence.usages[layer].file) if layer in evidence.usages else set()
        for layer in HEAT_LAYERS
    ]
    only = files[1] - files[0] - {NAMELESS}
    return np.fromiter(only, np.int64, len(only))


def _calls_by_rank(rows: CallRows, kind: int, ranks: int) -> Floats:
    own = (rows.kind == kind) & (rows.rank >= 0)
    return np.bincount(rows.rank[own], rows.count[own], minlength=ranks).astype(np.float64)


def _layer_rows(
    usage: Usage, evidence: Evidence, limits: Limits
) -> Iterator[tuple[CallRows, Ints, Floats, Floats]]:
    """Rows of the records of one layer on named files, by kind.

    With their extent, how many calls go back, and how many do not continue the one before.
    """
    array = partial(_array, usage)
    rank, file = (np.asarray(column, np.int64) for column in (usage.rank, usage.file))
    known = file != NAMELESS
    read, write = usage.moves["read"], usage.moves["write"]
    meta, writing, opens = map(array, (usage.metadata_seconds, write.seconds, usage.opens))
    if not believable_metadata(rank, meta, evidence.runtime):
        meta = np.zeros(len(usage))
    if usage.sync_seconds is not None:
        sync = array(usage.sync_seconds)
    else:
        sync = _sync_seconds(usage, writing, limits)
        writing = writing - sync
    seconds = {READ: array(read.seconds), WRITE: writing, METADATA: meta, SYNC: sync}
    data, other = _slowest_parts(usage, seconds[READ] + writing + sync, meta, evidence.ranks)
    opened, ready, _, closed = (array(t or None) for t in usage.open_close or ((),) * 4)
    ready = np.where(opens == 1, ready, closed)
    written = array(write.begin), array(write.finish)
    kinds = (
        (READ, array(read.operations), read, (array(read.begin), array(read.finish))),
        (WRITE, array(write.operations), write, written),
        (METADATA, opens + usage.stats, None, (opened, ready)),
        (SYNC, array(usage.syncs), None, written),
    )
    for kind, calls, move, (begin, finish) in kinds:
        some = known & ((calls > 0) | (seconds[kind] > 0))
        moved, extent, longest = (
            array(None if move is None else getattr(move, name))[some]
            for name in ("bytes", "extent", "longest")
        )
        ahead = joined = calls
        if move is not None and move.forward is not None:
            ahead = array(move.forward) + array(move.first)
            joined = array(move.consecutive) + array(move.first)
        number = int(some.sum())
        rows = CallRows(
            begin[some],
            np.maximum(begin, finish)[some],
            rank[some],
            file[some],
            np.full(number, kind),
            np.full(number, UNKNOWN),
            moved.astype(np.int64),
            calls[some],
            (seconds[kind] * (other if kind == METADATA else data))[some],
            seconds[kind][some],
            longest,
            np.zeros(number, np.bool_),
        )
        back, jumps = (np.maximum(0.0, calls - x)[some] for x in (ahead, joined))
        yield rows, extent.astype(np.int64), back, jumps


def _sync_seconds(usage: Usage, writing: Floats, limits: Limits) -> Floats:
    """Seconds in syncs, whose time Darshan adds to that of writes.

    Writes take at least a copy to memory, and at most as long as if each were the longest one.
    In between, the geometric mean.
    """
    write = usage.moves["write"]
    calls, moved, longest = (
        _array(usage, x) for x in (write.operations, write.bytes, write.longest)
    )
    least, most = write_bounds(calls, moved, longest, writing, limits)
    syncs = _array(usage, usage.syncs)
    return np.where(syncs > 0, np.maximum(0.0, writing - np.sqrt(least * most)), 0.0)


def write_bounds(
    writes: Floats, moved: Floats, longest: Floats, writing: Floats, limits: Limits
) -> tuple[Floats, Floats]:
    """The least and the most seconds that writes may take of the time in writes and syncs."""
    call, copy = limits.quick_copy
    copied = call * limits.system_call * writes + copy * moved / limits.memory_rate
    least = np.minimum(writing, copied)
    # The longest of several calls is at least twice their mean, unless all are equal.
    mean = np.where(writes >= limits.min_calls, longest / 2, longest)
    most = np.where(longest > 0, np.minimum(writing, mean * writes), writing)
    return least, np.maximum(least, most)


def _slowest_parts(usage: Usage, data: Floats, meta: Floats, ranks: int) -> tuple[Floats, Floats]:
    """The part of a record's seconds, in data and in metadata calls, that its slowest rank has.

    All of it, for records of one rank. Of a record of all ranks, data calls by its part of the
    bytes, metadata calls evenly, so that both are the slowest rank's seconds together.
    """
    one = np.ones(len(usage))
    if usage.spread is None:
        return one, one
    moved = np.maximum(_array(usage, usage.bytes), 1.0)
    share = np.clip(_array(usage, usage.spread.slowest_bytes) / moved, 1 / max(1, ranks), 1.0)
    expected = data * share + meta / max(1, ranks)
    slowest = _slowest(usage, data + meta, ranks)
    factor = slowest / np.maximum(expected, 1e-12)
    shared = np.asarray(usage.rank) < 0
    of_data = np.minimum(1.0, share * factor)
    of_meta = np.minimum(1.0, (slowest - data * of_data) / np.maximum(meta, 1e-12))
    return np.where(shared, of_data, 1.0), np.where(shared, np.maximum(0.0, of_meta), 1.0)


def _slowest(usage: Usage, total: Floats, ranks: int) -> Floats:
    """Seconds of the slowest rank, by record."""
    mean = total / max(1, ranks)
    if usage.spread is None:
        return mean
    slowest = _array(usage, usage.spread.slowest_seconds)
    return np.asarray(np.minimum(total, np.maximum(slowest, mean)), np.float64)


def _phases(rows: CallRows, runtime: float, ranks: int) -> tuple[IoPhases, bool]:
    """Phases from the first and last times of records, where the log has them.

    A file that stays open between steps joins them to one phase. A single open is I/O from its
    begin to its end: between short writes to many files, ranks open the next ones.
    """
    known = (rows.start > 0) & (rows.end >= rows.start)
    timed = known & rows.moves_data
    whole = IoPhases(np.zeros(1), np.array([runtime]))
    spent = rows.seconds[rows.moves_data].sum()
    if not timed.any() or rows.seconds[timed].sum() < NEARLY_ALL * spent:
        return whole, False
    timed |= known & (rows.kind == METADATA) & (rows.count == 1)
    phases = io_phases(rows.start[timed], np.maximum(rows.end, rows.start + 1e-6)[timed])
    if len(phases) < 2 or len(phases) * ranks > MAX_CELLS:
        return whole, False
    return phases, True


def _heat(evidence: Evidence, ranks: int) -> HeatPhases | None:
    phases = (heat_phases(evidence.heat.get(layer, ()), ranks) for layer in HEAT_LAYERS)
    return next((one for one in phases if one is not None), None)


def _library_files(evidence: Evidence, ranks: int) -> tuple[LibraryFile, ...]:
    """What passes MPI-IO, by file."""
    usage = evidence.usages.get("mpiio")
    if usage is None:
        return ()
    total = np.asarray(usage.seconds, np.float64)
    slowest = _slowest(usage, total, ranks)
    entries: dict[int, LibraryFile] = {}
    for place, (file, rank) in enumerate(zip(usage.file, usage.rank, strict=True)):
        read, write = usage.moves["read"], usage.moves["write"]
        calls = read.operations[place] + write.operations[place]
        if file == NAMELESS or not calls:
            continue
        together = sum(m.collective[place] for m in (read, write) if m.collective)
        known = entries.get(file, LibraryFile(file, (0, 0), 0, False, 0, 0.0))
        entries[file] = LibraryFile(
            file,
            (known.asked[0] + read.bytes[place], known.asked[1] + write.bytes[place]),
            known.calls + calls,
            known.collective or 2 * together > calls,
            ranks if rank < 0 else known.ranks + 1,
            max(known.seconds, float(slowest[place] if rank < 0 else total[place])),
        )
    return tuple(entries.values())


def _with_stall(observed: Observed, evidence: Evidence) -> Observed:
    """Add how long the slowest rank is in calls, phase by phase, and in MPI-IO beyond them."""
    below = observed.busiest_rank(observed.own)
    spans = _spans(observed)
    # A phase lasts at most from its first call to its last, as far as records show both.
    stall = below if len(spans) == 1 else np.minimum(below, np.maximum(spans, NEARLY_ALL * below))
    stall = np.where(_collective_phases(observed, stall, spans), spans, stall)
    stall = np.maximum(stall, _turns(observed))
    library = np.zeros(len(below))
    usage = evidence.usages.get("mpiio")
    if usage is not None:
        above = _mpiio_seconds(usage, evidence.ranks)
        beyond = max(0.0, min(observed.runtime, above) - float(stall.sum()))
        unknown = min(beyond, _without_records_below(observed))
        # By phases in proportion to the time below; where there is none, to the phase's length.
        weights = below if below.sum() > 0 else spans
        parts = weights / max(float(weights.sum()), 1e-12)
        library = (beyond - unknown) * parts
        stall = stall + beyond * parts
    if observed.heat is not None and len(stall) == 1:
        stall = stall * observed.heat.waiting_ratio
    stall = stall * min(1.0, observed.runtime / max(float(stall.sum()), 1e-12))
    return replace(observed, stall=stall, library=np.minimum(stall, library))


def _without_records_below(observed: Observed) -> float:
    """Seconds of MPI-IO on files of which the log lacks calls to storage."""
    rows = observed.rows
    count = int(rows.file.max(initial=0)) + 1
    moved = np.bincount(rows.file[rows.moves_data], rows.bytes[rows.moves_data], minlength=count)
    return sum(
        entry.seconds
        for entry in observed.library_files
        if entry.file >= count or moved[entry.file] < NEARLY_ALL * sum(entry.asked)
    )


def _spans(observed: Observed) -> Floats:
    """Seconds of each phase between the first and last calls of its records."""
    rows = observed.rows
    timed = (rows.start > 0) & (rows.end > rows.start)
    if "times" not in observed.detail and not timed.any():
        return observed.phases.end - observed.phases.start
    begin, finish = unite(rows.start[timed], rows.end[timed])
    place = observed.phases.find((begin + finish) / 2)  # files are opened before a phase begins
    spans = np.bincount(place, finish - begin, minlength=len(observed.phases))
    return np.asarray(spans, np.float64)


def _collective_phases(observed: Observed, stall: Floats, spans: Floats) -> Flags:
    """Phases of collective calls in which the slowest rank is in calls most of the time.

    Ranks meet in every collective call: between its calls, a rank waits for the others'.
    """
    files = [entry.file for entry in observed.library_files if entry.collective]
    collective = np.isin(observed.rows.file, files)
    mine = observed.by_phase(observed.own, collective)
    every = observed.by_phase(observed.own, np.ones(len(collective), np.bool_))
    mostly = mine >= NEARLY_ALL * np.maximum(every, 1e-12)
    return mostly & (stall >= 0.5 * spans) & (stall < spans)


def _turns(observed: Observed) -> Floats:
    """Seconds of each phase in which ranks write a file one after the other; 0 for other phases.

    Under a lock, the writes of all ranks add up to the time from the first to the last of them,
    however many ranks there are. Once, this may be chance.
    """
    rows = observed.rows
    shared = (rows.kind == WRITE) & (rows.rank == ALL_RANKS) & (rows.start > 0)
    lasting = np.maximum(rows.end - rows.start, 1e-12)
    full = shared & (rows.total > NEARLY_ALL * lasting) & (rows.total <= TURN_ERROR * lasting)
    if full.sum() < 2 or rows.total[full].sum() < NEARLY_ALL * rows.total[shared].sum():
        return np.zeros(len(observed.phases))
    return observed.by_phase(lasting, full)


def _mpiio_seconds(usage: Usage, ranks: int) -> float:
    """Seconds of the slowest rank in MPI-IO."""
    total = np.asarray(usage.seconds, np.float64)
    rank = np.asarray(usage.rank, np.int64)
    shared = rank < 0
    together = float(_slowest(usage, total, ranks)[shared].sum())
    alone = np.bincount(rank[~shared], total[~shared]) if (~shared).any() else np.zeros(1)
    return together + float(alone.max())
