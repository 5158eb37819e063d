"""Counters as checks see them: one row per record and kind of call, with weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    io_phases,
)
from ioprism.diagnosis.targets import files_of_log
from ioprism.model.arrays import believable_metadata, unite
from ioprism.model.usage import NAMELESS, Usage

STORAGE_LAYERS = ("posix", "stdio", "dfs", "daos")  # that reach storage
HEAT_LAYERS = ("posix", "stdio")  # the first of them that moved bytes counts
MAX_CELLS = 20_000_000  # phases times ranks that are held in memory


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """Columns of one layer's records as arrays."""

    usage: Usage

    def array(self, values: Sequence[float] | None) -> Floats:
        """One column; zeros where the log lacks it."""
        return np.zeros(len(self.usage)) if values is None else np.asarray(values, np.float64)

    @property
    def rank(self) -> Ints:
        return np.asarray(self.usage.rank, np.int64)

    @property
    def file(self) -> Ints:
        return np.asarray(self.usage.file, np.int64)


def observe_counters(evidence: Evidence, limits: Limits) -> Observed | None:
    """Return what counters show; None where no record of calls to storage names its file."""
    parts = [
        _layer_rows(evidence.usages[layer], evidence, limits)
        for layer in STORAGE_LAYERS
        if layer in evidence.usages and not (layer == "daos" and "dfs" in evidence.usages)
    ]
    tables = [part for part in parts if part is not None and len(part.rows)]
    if not tables or not sum(float(part.rows.seconds.sum()) for part in tables) > 0:
        return None
    names = CallRows.__slots__
    columns = [np.concatenate([getattr(p.rows, n) for p in tables]) for n in names]
    extent, backward = (
        np.concatenate([getattr(part, name) for part in tables]) for name in ("extent", "backward")
    )
    order = np.lexsort((columns[0], columns[2]))
    rows = CallRows(*(column[order] for column in columns))
    numbers = np.unique(rows.rank[rows.rank >= 0])
    ranked = np.where(rows.rank >= 0, np.searchsorted(numbers, rows.rank), ALL_RANKS)
    rows = CallRows(*(ranked if n == "rank" else getattr(rows, n) for n in names))
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
        syncs=np.bincount(
            rows.rank[(rows.kind == SYNC) & (rows.rank >= 0)],
            rows.count[(rows.kind == SYNC) & (rows.rank >= 0)],
            minlength=len(numbers),
        ).astype(np.float64),
        opens=np.bincount(
            rows.rank[(rows.kind == METADATA) & (rows.rank >= 0)],
            rows.count[(rows.kind == METADATA) & (rows.rank >= 0)],
            minlength=len(numbers),
        ).astype(np.float64),
        program=evidence.job.executable or "",
        system_targets=evidence.files.system_targets or 0,
        heat=heat,
        extent=extent[order],
        backward=backward[order],
    )
    return _with_stall(observed, evidence)


@dataclass(frozen=True, slots=True, eq=False)
class _LayerRows:
    rows: CallRows
    extent: Ints
    backward: Floats


def _layer_rows(usage: Usage, evidence: Evidence, limits: Limits) -> _LayerRows | None:
    """Rows of the records of one layer on files whose names are known."""
    columns = _Columns(usage)
    known = columns.file != NAMELESS
    if not known.any():
        return None
    read, write = usage.moves["read"], usage.moves["write"]
    seconds = {kind: columns.array(move.seconds) for kind, move in ((READ, read), (WRITE, write))}
    meta = columns.array(usage.metadata_seconds)
    if not believable_metadata(columns.rank, meta, evidence.runtime):
        meta = np.zeros(len(usage))
    sync = _sync_seconds(columns, seconds[WRITE], limits)
    if usage.sync_seconds is not None:
        sync = columns.array(usage.sync_seconds)
    else:
        seconds[WRITE] = seconds[WRITE] - sync
    data, other = _slowest_parts(
        columns, seconds[READ] + seconds[WRITE] + sync, meta, evidence.ranks
    )
    scale = {READ: data, WRITE: data, SYNC: data, METADATA: other}
    opened, ready, closed = _open_close(columns)
    nothing = np.zeros(len(usage))
    kinds = (
        (
            READ,
            read.operations,
            read.bytes,
            seconds[READ],
            read.longest,
            columns.array(read.begin),
            columns.array(read.finish),
            read.extent,
        ),
        (
            WRITE,
            write.operations,
            write.bytes,
            seconds[WRITE],
            write.longest,
            columns.array(write.begin),
            columns.array(write.finish),
            write.extent,
        ),
        (
            METADATA,
            np.asarray(usage.opens) + np.asarray(usage.stats),
            None,
            meta,
            None,
            opened,
            np.where(columns.array(usage.opens) == 1, ready, closed),
            None,
        ),
        (
            SYNC,
            usage.syncs,
            None,
            sync,
            None,
            columns.array(write.begin),
            columns.array(write.finish),
            None,
        ),
    )
    parts, extents, backward = [], [], []
    for kind, count, moved, spent, longest, begin, finish, extent in kinds:
        calls = columns.array(count)
        some = known & ((calls > 0) | (spent > 0))
        size = columns.array(moved).astype(np.int64)[some]
        times = begin[some], np.maximum(begin, finish)[some]
        parts.append(
            CallRows(
                *times,
                columns.rank[some],
                columns.file[some],
                np.full(int(some.sum()), kind),
                np.full(int(some.sum()), UNKNOWN),
                size,
                calls[some],
                (spent * scale[kind])[some],
                spent[some],
                (nothing if longest is None else columns.array(longest))[some],
                np.zeros(int(some.sum()), np.bool_),
            )
        )
        extents.append(columns.array(extent).astype(np.int64)[some])
        move = {READ: read, WRITE: write}.get(kind)
        ahead = calls
        if move is not None and move.forward is not None:
            ahead = np.add(columns.array(move.forward), columns.array(move.first))
        backward.append(np.maximum(0.0, calls - ahead)[some])
    names = CallRows.__slots__
    rows = CallRows(*(np.concatenate([getattr(p, n) for p in parts]) for n in names))
    return _LayerRows(rows, np.concatenate(extents), np.concatenate(backward))


def _sync_seconds(columns: _Columns, writing: Floats, limits: Limits) -> Floats:
    """Seconds in syncs, whose time Darshan adds to that of writes.

    Writes take at least a copy to memory, and at most as long as if each were the longest one.
    In between, the geometric mean.
    """
    usage = columns.usage
    syncs, writes = columns.array(usage.syncs), columns.array(usage.moves["write"].operations)
    least, most = write_bounds(
        writes,
        columns.array(usage.moves["write"].bytes),
        columns.array(usage.moves["write"].longest),
        writing,
        limits,
    )
    return np.where(syncs > 0, np.maximum(0.0, writing - np.sqrt(least * most)), 0.0)


def write_bounds(
    writes: Floats, moved: Floats, longest: Floats, writing: Floats, limits: Limits
) -> tuple[Floats, Floats]:
    """The least and the most seconds that writes may take of the time in writes and syncs."""
    least = np.minimum(
        writing, 0.05 * limits.system_call * writes + 0.2 * moved / limits.memory_rate
    )
    # The longest of several calls is at least twice their mean, unless all are equal.
    mean = np.where(writes >= 8, longest / 2, longest)
    most = np.where(longest > 0, np.minimum(writing, mean * writes), writing)
    return least, np.maximum(least, most)


def _slowest_parts(
    columns: _Columns, data: Floats, meta: Floats, ranks: int
) -> tuple[Floats, Floats]:
    """The part of a record's seconds, in data and in metadata calls, that its slowest rank has.

    All of it, for records of one rank. Of a record of all ranks, data calls by its part of the
    bytes, metadata calls evenly, so that both are the slowest rank's seconds together.
    """
    usage = columns.usage
    one = np.ones(len(usage))
    if usage.spread is None:
        return one, one
    moved = np.maximum(columns.array(usage.bytes), 1.0)
    share = np.clip(
        np.asarray(usage.spread.slowest_bytes, np.float64) / moved, 1 / max(1, ranks), 1.0
    )
    expected = data * share + meta / max(1, ranks)
    slowest = _slowest(usage, data + meta, ranks)
    factor = slowest / np.maximum(expected, 1e-12)
    shared = columns.rank < 0
    of_data = np.minimum(1.0, share * factor)
    of_meta = np.minimum(1.0, (slowest - data * of_data) / np.maximum(meta, 1e-12))
    return np.where(shared, of_data, 1.0), np.where(shared, np.maximum(0.0, of_meta), 1.0)


def _slowest(usage: Usage, total: Floats, ranks: int) -> Floats:
    """Seconds of the slowest rank, by record."""
    mean = total / max(1, ranks)
    if usage.spread is None:
        return mean
    slowest = np.asarray(usage.spread.slowest_seconds, np.float64)
    return np.asarray(np.minimum(total, np.maximum(slowest, mean)), np.float64)


def _open_close(columns: _Columns) -> tuple[Floats, Floats, Floats]:
    times = columns.usage.open_close or ((),) * 4
    opened, ready, _, closed = (columns.array(t or None) for t in times)
    return opened, np.maximum(opened, ready), np.maximum(opened, closed)


def _phases(rows: CallRows, runtime: float, ranks: int) -> tuple[IoPhases, bool]:
    """Phases from the first and last times of records, where the log has them.

    A file that stays open between steps joins them to one phase.
    """
    timed = (rows.start > 0) & (rows.end >= rows.start) & rows.moves_data
    whole = IoPhases(np.zeros(1), np.array([runtime]))
    spent = rows.seconds[rows.moves_data].sum()
    if not timed.any() or rows.seconds[timed].sum() < NEARLY_ALL * spent:
        return whole, False
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
    spans = np.bincount(observed.phases.find(begin), finish - begin, minlength=len(observed.phases))
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


def _mpiio_seconds(usage: Usage, ranks: int) -> float:
    """Seconds of the slowest rank in MPI-IO."""
    total = np.asarray(usage.seconds, np.float64)
    rank = np.asarray(usage.rank, np.int64)
    shared = rank < 0
    together = float(_slowest(usage, total, ranks)[shared].sum())
    alone = np.bincount(rank[~shared], total[~shared]) if (~shared).any() else np.zeros(1)
    return together + float(alone.max())
