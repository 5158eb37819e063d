"""A per-call trace as checks see it: calls, the layers above them, phases, hosts and layout."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np
import polars as pl

from ioprism.diagnosis.counted_calls import rows_known_by_counters
from ioprism.diagnosis.late_ranks import (
    LateRanks,
    find_late_ranks,
    idle_phases,
    ranks_wait,
    start_at_last_arrival,
)
from ioprism.diagnosis.limits import Limits
from ioprism.diagnosis.locks import join_lock_waits
from ioprism.diagnosis.observed import LibraryCalls, LibraryFile, Observed
from ioprism.diagnosis.rows import (
    KINDS,
    METADATA,
    UNKNOWN,
    WRITE,
    CallRows,
    Floats,
    Ints,
    IoPhases,
    io_phases,
    merge_rows,
    own_time,
    single_calls,
    unique,
)
from ioprism.diagnosis.sampling import COLUMNS, NOT_IO, SampledCalls, sampled_calls
from ioprism.diagnosis.targets import Files
from ioprism.engine.base import Engine
from ioprism.formats.calls import LOCKS
from ioprism.model.arrays import unite
from ioprism.model.schema import without_data
from ioprism.model.trace import Trace
from ioprism.model.usage import SHARED_MEMORY

STORAGE_LAYERS = ("posix", "stdio")  # that reach storage themselves
MAX_NAMES = 100  # files that are searched for the number of the process that writes them


def observe_calls(trace: Trace, engine: Engine, limits: Limits) -> Observed:
    """Collect what checks need from a trace with calls."""
    files = trace.files.sort("file")
    sample = sampled_calls(trace, engine)
    events = _io_events(sample.events, files)
    numbers = unique(events["unit"].to_numpy()).astype(np.int64)
    events = events.with_columns(unit=pl.lit(numbers).search_sorted(pl.col("unit")).cast(pl.Int64))
    layers = set(events["layer"].cast(pl.String).unique().to_list())
    lowest = [name for name in STORAGE_LAYERS if name in layers] or sorted(layers)[:1]
    is_low = pl.col("layer").cast(pl.String).is_in(lowest)
    counters = {
        name: with_file_rows(trace.counters[name], files)
        for name in ("POSIX", "STDIO", "MPI-IO")
        if name in trace.counters
    }
    below, above = events.filter(is_low), _library_calls(events.filter(~is_low), counters)
    rows = _call_rows(below, limits)
    counted = rows_known_by_counters(
        counters.get("POSIX"),
        counters.get("STDIO"),
        rows,
        numbers,
        ranks=trace.job.ranks or len(numbers),
        share=sample.share,
        runtime=trace.job.runtime,
    )
    rows = merge_rows(rows, counted.rows)
    windows = _collective_sync_windows(counters.get("MPI-IO"))
    phases = io_phases(*_with_windows(rows, above, windows))
    inside = merge_rows(rows, above.rows()) if len(above) else rows
    waits = ranks_wait(inside, sample.windows, limits, collective=bool(above.collective.any()))
    phases = phases if waits else phases.merge()
    runtime = max(0.0, trace.job.runtime or (float(phases.end[-1]) if len(phases) else 0.0))
    late = find_late_ranks(rows, above, runtime, limits) if waits else None
    stall, library = stall_time(rows, above, phases, late, synchronised=waits)
    if waits and len(windows[0]):
        stall = np.maximum(stall, _busy(phases, *_with_windows(rows, above, windows)))
    hosts, host_of = _hosts(trace, numbers)
    ranks = _ranks(trace, sample.events, rows, numbers)
    detail = {"calls", "offsets", "times"}
    detail |= {"hosts"} if hosts else set()
    detail |= {"counters"} if counters else set()
    return Observed(
        runtime=runtime,
        ranks=ranks,
        rank_numbers=numbers,
        host_of=host_of,
        hosts=hosts,
        rows=rows,
        phases=phases,
        phase=phases.find(rows.start),
        stall=stall,
        library=np.minimum(stall, library),
        files=_files(files),
        limits=limits,
        basis="alone" if ranks == 1 else "phases" if waits else "ranks",
        detail=frozenset(detail),
        above=above,
        library_files=_library_files(above),
        syncs=counted.syncs + _number(below, "sync", len(numbers)),
        opens=counted.opens + _number(below, "open", len(numbers)),
        applications=_applications(trace, numbers),
        program=trace.job.executable or "",
        share=_share(sample, lowest, whole=waits or bool(counters)),
        system_targets=trace.file_facts.system_targets or 0,
        synchronised=waits,
        late=late,
        streams=_streams(below),
    )


def untraced_share(observed: Observed, counters: Mapping[str, pl.DataFrame]) -> float:
    """The share of reads and writes that counters have and the trace does not."""
    if "POSIX" not in counters or observed.share < 1:  # a sample is taken of many calls
        return 0.0
    names = ("POSIX_READS", "POSIX_WRITES")
    counted = sum(float(counters["POSIX"][n].clip(lower_bound=0).sum()) for n in names)
    traced = float(observed.rows.moves_data.sum())
    return max(0.0, 1 - traced / counted) if counted > 0 else 0.0


def stall_time(
    rows: CallRows,
    above: LibraryCalls,
    phases: IoPhases,
    late: LateRanks | None,
    *,
    synchronised: bool,
) -> tuple[Floats, Floats]:
    """Seconds that each phase stalls the job, and those inside libraries with no call below.

    Ranks leave a phase together, so it stalls the job as long as any rank is in a call; where
    they do not wait for each other, the rank with most I/O counts. While a rank still computes,
    the others' I/O, and their waiting in a collective call, stall nothing.
    """
    start = start_at_last_arrival(above)
    if not synchronised:
        every = np.concatenate((rows.start, start)), np.concatenate((rows.end, above.end))
        ranks = np.concatenate((rows.rank, above.rank))
        both, below = _longest_rank(*every, ranks), _longest_rank(rows.start, rows.end, rows.rank)
        return both, np.maximum(0.0, both - below)
    both = _busy(phases, np.concatenate((rows.start, start)), np.concatenate((rows.end, above.end)))
    library = np.maximum(0.0, both - _busy(phases, rows.start, rows.end))
    if late is not None:
        both[idle_phases(rows, phases)] = 0.0
    return both, library


def _with_windows(
    rows: CallRows, above: LibraryCalls, windows: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    return (
        np.concatenate((rows.start, above.start, windows[0])),
        np.concatenate((rows.end, above.end, windows[1])),
    )


def _collective_sync_windows(table: pl.DataFrame | None) -> tuple[Floats, Floats]:
    """From the first to the last write of files that all ranks sync together.

    Syncs of MPI-IO are collective and only counted: between their requests, ranks wait in them,
    where the slowest rank is in calls most of the time.
    """
    nothing = np.empty(0), np.empty(0)
    if table is None or "MPIIO_SYNCS" not in table.columns:
        return nothing
    start, end, slowest = (
        pl.col(f"MPIIO_F_{name}")
        for name in ("WRITE_START_TIMESTAMP", "WRITE_END_TIMESTAMP", "SLOWEST_RANK_TIME")
    )
    mostly = slowest >= 0.5 * (end - start)
    chosen = table.filter((pl.col("rank") < 0) & (pl.col("MPIIO_SYNCS") > 0) & (start > 0) & mostly)
    names = ("MPIIO_F_WRITE_START_TIMESTAMP", "MPIIO_F_WRITE_END_TIMESTAMP")
    return chosen[names[0]].to_numpy(), chosen[names[1]].to_numpy()


def _busy(phases: IoPhases, start: Floats, end: Floats) -> Floats:
    """Seconds of each phase in which any call is under way."""
    begin, finish = unite(start, end)
    busy = np.bincount(phases.find(begin), finish - begin, minlength=len(phases))
    return np.asarray(busy, np.float64)


def _longest_rank(start: Floats, end: Floats, rank: Ints) -> Floats:
    """What the rank with most I/O spends in calls, in the one phase there is."""
    nothing = np.zeros(len(start), np.int64)
    calls = single_calls(start, end, rank, nothing, nothing, nothing, nothing).sort()
    inside = np.bincount(calls.rank, own_time(calls)) if len(calls) else np.zeros(1)
    return np.array([float(inside.max(initial=0.0))])


def _share(sample: SampledCalls, lowest: list[str], *, whole: bool) -> float:
    return sample.share if whole else sample.share_of_ranks(lowest)


def _ranks(trace: Trace, events: pl.DataFrame, rows: CallRows, numbers: Ints) -> int:
    """How many ranks the job has, as far as anything shows."""
    named = any(events[name].null_count() < events.height for name in ("rank", "process"))
    if not named:
        return len(numbers)
    known = max(trace.job.ranks or 0, len(numbers))
    if known > 1 or "counters" in trace.detail:
        return known
    written = unique(rows.file[(rows.kind == WRITE) & (rows.file >= 0)])[:MAX_NAMES]
    paths = trace.files.sort("file")["path"].gather(written.tolist()).to_list()
    return processes_said(trace.job.executable, filter(None, paths)) or known


def with_file_rows(table: pl.DataFrame, files: pl.DataFrame) -> pl.DataFrame:
    """Return a table whose column `file` is the row in `files`, which is sorted; null unknown."""
    known = files["file"].to_numpy().astype(np.int64)
    column = table["file"]
    file = (column.cast(pl.Int64).fill_null(UNKNOWN) if column.null_count() else column).to_numpy()
    place = np.searchsorted(known, file)
    matches = np.append(known, UNKNOWN)[place] == file
    rows = pl.Series("file", np.where(matches & (file >= 0), place, UNKNOWN))
    return table.with_columns(rows.set(rows < 0, None))


def _io_events(events: pl.DataFrame, files: pl.DataFrame) -> pl.DataFrame:
    """All I/O calls on data, with one column for who made them."""
    chosen = (
        pl.col("layer").cast(pl.String).is_in(NOT_IO).not_()
        & pl.col("file").is_in(_not_storage(files).implode()).fill_null(value=False).not_()
        & (pl.col("end") >= pl.col("start"))
    )
    unit = pl.coalesce(pl.col("rank").cast(pl.Int64), pl.col("process").cast(pl.Int64), pl.lit(0))
    wanted = (name for name in COLUMNS if name not in ("rank", "process"))
    return with_file_rows(events.filter(chosen).select(unit.alias("unit"), *wanted), files)


def _not_storage(files: pl.DataFrame) -> pl.Series:
    """Files that are not on storage: console streams, kernel files, shared memory."""
    memory = files.filter(pl.col("path").str.starts_with(SHARED_MEMORY))["file"]
    return pl.concat([without_data(files), memory.cast(without_data(files).dtype)])


def _call_rows(events: pl.DataFrame, limits: Limits) -> CallRows:
    operation = pl.col("operation").cast(pl.String)
    table = events.select(
        "start",
        "end",
        "unit",
        kind=operation.replace_strict(KINDS, default=METADATA, return_dtype=pl.Int64),
        file=pl.col("file").cast(pl.Int64).fill_null(UNKNOWN),
        offset=pl.col("offset").fill_null(UNKNOWN),
        bytes=pl.col("bytes").fill_null(0),
        lock=_is_lock(events),
    ).sort("unit", "start", maintain_order=True)
    names = ("start", "end", "unit", "file", "kind", "offset", "bytes")
    rows = single_calls(*(table[name].to_numpy() for name in names))
    return join_lock_waits(rows, table["lock"].to_numpy(), limits)


def _streams(below: pl.DataFrame) -> Ints:
    """Files whose data only streams of the C library move."""
    data = below.filter(pl.col("operation").cast(pl.String).is_in(["read", "write"]))
    layer = data["layer"].cast(pl.String)
    stdio, posix = (
        set(data["file"].filter(layer == name).drop_nulls().unique()) for name in ("stdio", "posix")
    )
    return np.fromiter(stdio - posix, np.int64)


def _is_lock(events: pl.DataFrame) -> pl.Expr:
    """Whether each call locks or unlocks a file; few names are looked at, not all calls."""
    names = events["function"].unique().drop_nulls().cast(pl.String)
    locks = LOCKS.intersection(names.to_list())
    if not locks:
        return pl.lit(value=False)
    return pl.col("function").cast(pl.String).is_in(sorted(locks)).fill_null(value=False)


def _library_calls(events: pl.DataFrame, counters: Mapping[str, pl.DataFrame]) -> LibraryCalls:
    operation = pl.col("operation").cast(pl.String)
    table = (
        _mark_collective(events, counters)
        .select(
            "start",
            "end",
            "unit",
            file=pl.col("file").cast(pl.Int64).fill_null(UNKNOWN),
            bytes=pl.col("bytes").fill_null(0),
            collective=pl.col("collective").fill_null(value=False),
            data=operation.is_in(["read", "write"]),
            writes=operation == "write",
            mpiio=pl.col("layer").cast(pl.String) == "mpiio",
        )
        .sort("unit", "start")
    )
    # Reads count negative, so that one column holds both directions.
    signed = np.where(table["writes"].to_numpy(), 1, -1) * table["bytes"].to_numpy()
    start, end, rank, file = (table[n].to_numpy() for n in ("start", "end", "unit", "file"))
    collective, data, mpiio = (table[n].to_numpy() for n in ("collective", "data", "mpiio"))
    return LibraryCalls(start, end, rank, file, signed.astype(np.int64), collective, data, mpiio)


def _mark_collective(above: pl.DataFrame, counters: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Mark calls of MPI-IO on files whose counters count collective calls: DXT does not."""
    if "MPI-IO" not in counters:
        return above
    marked = pl.lit(value=False)
    for operation in ("read", "write"):
        together, alone = (
            pl.col(f"MPIIO_{kind}_{operation.upper()}S").sum() for kind in ("COLL", "INDEP")
        )
        sums = counters["MPI-IO"].group_by("file").agg(together.alias("coll"), alone.alias("ind"))
        files = sums.filter(pl.col("coll") > pl.col("ind"))["file"]
        same = pl.col("operation").cast(pl.String) == operation
        marked |= same & pl.col("file").is_in(files.implode())
    marked &= pl.col("layer").cast(pl.String) == "mpiio"
    return above.with_columns(collective=pl.coalesce("collective", marked.fill_null(value=False)))


def _library_files(above: LibraryCalls) -> tuple[LibraryFile, ...]:
    """Sum up reads and writes through MPI-IO, by file."""
    moves = above.data & above.mpiio & (above.file >= 0)
    entries = []
    for file in unique(above.file[moves]):
        mine = moves & (above.file == file)
        moved, rank = above.bytes[mine], above.rank[mine]
        spent = np.bincount(
            above.rank[above.mpiio & (above.file == file)],
            (above.end - above.start)[above.mpiio & (above.file == file)],
        )
        entries.append(
            LibraryFile(
                int(file),
                (int(-moved[moved < 0].sum()), int(moved[moved > 0].sum())),
                int(mine.sum()),
                bool(above.collective[mine].any()),
                len(unique(rank)),
                float(spent.max()),
            )
        )
    return tuple(entries)


def _files(table: pl.DataFrame) -> Files:
    paths, systems = table["path"], table["filesystem"]
    striped = table.with_row_index("row").filter(
        (pl.col("stripe_size") > 0) & (pl.col("targets").list.len() > 0)
    )
    size = table["stripe_size"].fill_null(0).cast(pl.Int64).to_numpy()
    return Files(
        lambda row: paths[row],
        lambda row: systems[row],
        dict(zip(striped["row"].to_list(), striped["targets"].to_list(), strict=True)),
        size if len(size) else np.zeros(1, np.int64),
        table["file"].cast(pl.Int64).to_numpy(),
    )


def _number(below: pl.DataFrame, operation: str, ranks: int) -> Floats:
    """How many calls of an operation each rank makes in the trace itself."""
    some = below.filter(pl.col("operation").cast(pl.String) == operation)
    return np.bincount(some["unit"].to_numpy(), minlength=ranks).astype(np.float64)


def _of_ranks(trace: Trace, column: str) -> dict[int, str]:
    return dict(trace.processes.drop_nulls(column).select("rank", column).iter_rows())


def _hosts(trace: Trace, numbers: Ints) -> tuple[tuple[str, ...], Ints]:
    of_rank = _of_ranks(trace, "host")
    names = sorted(set(of_rank.values()))
    places = {name: place for place, name in enumerate(names)}
    host_of = [places.get(of_rank.get(int(number), ""), UNKNOWN) for number in numbers]
    return tuple(names), np.array(host_of, np.int64)


def _applications(trace: Trace, numbers: Ints) -> tuple[str, ...]:
    of_rank = _of_ranks(trace, "application")
    if len(set(of_rank.values())) < 2:
        return ()
    return tuple(str(of_rank.get(int(number), "")) for number in numbers)


MOST = 10_000_000  # processes: a larger number counts something else
_NUMBER = r"[-_]?(?:id|index|number)?"
OWN = re.compile(rf"--?(?:local[-_]|global[-_]|mpi[-_])?(?:rank|proc|process|task|worker){_NUMBER}")
ALL = re.compile(
    r"--?(?:(?:world|comm|mpi|job)[-_]?size|(?:num|n|total)?[-_]?"
    r"(?:ranks|procs|processes|nprocs|ntasks|tasks|workers)|nproc)"
)


def processes_said(command: str | None, paths: Iterable[str]) -> int | None:
    """Return the number of processes that the first one's command line tells; None if it does not.

    Args:
        command: program and arguments, separated by blanks.
        paths: files that the process writes. Two neighbouring numbers are its own number, 0, and
            that of all only if a file that it writes carries the former in its name.
    """
    words = (command or "").replace("=", " ").split()
    own, number = _option(words, OWN), _option(words, ALL)
    if own == 0 and number is not None and number <= MOST:
        return number
    if not any(int(digits) == 0 for path in paths for digits in re.findall(r"\d+", _name(path))):
        return None
    pairs = [(int(a), int(b)) for a, b in pairwise(words) if a.isdecimal() and b.isdecimal()]
    return next((second for first, second in pairs if first == 0 < second <= MOST), None)


def _option(words: list[str], wanted: re.Pattern[str]) -> int | None:
    """The number behind the first option of a name."""
    for word, value in pairwise(words):
        if wanted.fullmatch(word.lower()) and value.isdecimal():
            return int(value)
    return None


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
