"""A trace as the diagnosis looks at it: calls, layers above them, phases, hosts and layout."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.calls import (
    KINDS,
    METADATA,
    UNKNOWN,
    WRITE,
    Calls,
    Floats,
    Ints,
    first_of_each,
    joined,
)
from ioprism.analyses.diagnosis.counted_metadata import CountedTimes, counted_times
from ioprism.analyses.diagnosis.io_phases import IoPhases, io_phases
from ioprism.analyses.diagnosis.job_size import processes_said
from ioprism.analyses.diagnosis.sampling import NOT_IO, sampled_calls
from ioprism.analyses.diagnosis.waiting import is_independent, ranks_wait
from ioprism.engine.base import Engine
from ioprism.model.files import without_data
from ioprism.model.trace import Trace
from ioprism.records import dataclass
from ioprism.views.counters.usage import system_targets

BELOW = ("posix", "stdio")  # layers that touch storage themselves
MOST_NAMES = 100  # files that are asked for the number of the process that writes them


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """Everything that causes are found in."""

    runtime: float  # seconds
    ranks: int  # of the job
    rank_numbers: Ints  # the trace's rank of each rank that does I/O
    host_of: Ints  # index into `hosts`, by rank that does I/O; -1 unknown
    hosts: tuple[str, ...]
    calls: Calls
    above: pl.DataFrame  # calls of MPI-IO and the libraries: rank as in `calls`
    phases: IoPhases
    phase: Ints  # of each call
    files: pl.DataFrame
    counters: Mapping[str, pl.DataFrame]
    syncs: Floats  # number of sync calls of each rank
    opens: Floats  # number of opens of each rank
    unplaced: Floats  # metadata seconds of each rank that no moment is known of
    filesystem: str | None = None
    applications: tuple[str, ...] = ()  # by rank that does I/O; empty where the trace has none
    share: float = 1.0  # of the job's I/O time that the calls stand for
    system_targets: int = 0  # storage targets that the file system says it has; 0 unknown
    waits: bool = True  # whether ranks wait for each other between phases

    @property
    def untraced(self) -> float:
        """The share of reads and writes that counters count and the trace does not have."""
        if "POSIX" not in self.counters or self.share < 1:  # a sample is taken of many calls
            return 0.0
        names = ("POSIX_READS", "POSIX_WRITES")
        counted = sum(float(self.counters["POSIX"][n].clip(lower_bound=0).sum()) for n in names)
        traced = float(self.calls.moves_data.sum())
        return max(0.0, 1 - traced / counted) if counted > 0 else 0.0

    @property
    def has_calls(self) -> bool:
        """Whether single calls are known."""
        return len(self.calls) > 0


def observe(trace: Trace, engine: Engine) -> Observations:
    """Collect what a diagnosis needs from a trace with single calls."""
    files = trace.files.sort("file")
    sample = sampled_calls(trace, engine)
    events = _io_events(sample.events, files)
    numbers = np.unique(events["unit"].to_numpy())
    events = events.with_columns(unit=pl.lit(numbers).search_sorted(pl.col("unit")).cast(pl.Int64))
    layers = set(events["layer"].cast(pl.String).unique().to_list())
    lowest = [name for name in BELOW if name in layers] or sorted(layers)[:1]
    is_low = pl.col("layer").cast(pl.String).is_in(lowest)
    counters = {name: with_file_rows(table, files) for name, table in _records(trace)}
    below, above = events.filter(is_low), _told_collective(events.filter(~is_low), counters)
    calls = _calls(below)
    counted = counted_times(
        counters,
        trace.job.ranks or 1,
        numbers,
        calls,
        share=sample.share,
        runtime=trace.job.runtime,
    )
    calls = joined(calls, counted.exact)
    phases = io_phases(
        np.concatenate((calls.start, above["start"].to_numpy())),
        np.concatenate((calls.end, above["end"].to_numpy())),
        np.concatenate((calls.rank, above["unit"].to_numpy())),
    )
    phases = phases.joined_across(_hidden(calls, phases, counted))
    collective = above["collective"].any()
    waits = ranks_wait(calls) and (
        collective or not is_independent(fill_gaps(calls, phases, counted)[0], sample.windows)
    )
    phases = phases if waits else phases.as_one()
    calls, unplaced = fill_gaps(calls, phases, counted)
    hosts, host_of = _hosts(trace, numbers)
    return Observations(
        runtime=_runtime(trace, phases),
        ranks=_ranks(trace, sample.events, calls, numbers),
        rank_numbers=numbers.astype(np.int64),
        host_of=host_of,
        hosts=hosts,
        calls=calls,
        above=above,
        phases=phases,
        phase=phases.of(calls.start),
        files=files,
        counters=counters,
        syncs=counted.syncs + _number(below, "sync", len(numbers)),
        opens=counted.opens + _number(below, "open", len(numbers)),
        unplaced=unplaced,
        filesystem=_filesystem(files, calls),
        applications=_applications(trace, numbers),
        share=sample.share if waits or counters else sample.share_of_ranks(lowest),
        system_targets=system_targets(trace) or 0,
        waits=waits,
    )


def _ranks(trace: Trace, events: pl.DataFrame, calls: Calls, numbers: Ints) -> int:
    """How many ranks the job has, as far as anything tells."""
    if not _says_who(events):
        return len(numbers)
    known = max(trace.job.ranks or 0, len(numbers))
    if known > 1 or "counters" in trace.detail:
        return known
    written = np.unique(calls.file[(calls.kind == WRITE) & (calls.file >= 0)])[:MOST_NAMES]
    paths = trace.files.sort("file")["path"].gather(written.tolist()).to_list()
    return processes_said(trace.job.executable, filter(None, paths)) or known


def _says_who(events: pl.DataFrame) -> bool:
    """Whether any call tells who made it: else nothing is known of single ranks."""
    return any(events[name].null_count() < events.height for name in ("rank", "process"))


def _records(trace: Trace) -> list[tuple[str, pl.DataFrame]]:
    """The counters that are looked at beside calls."""
    return [(name, trace.counters[name]) for name in ("POSIX", "MPI-IO") if name in trace.counters]


def _told_collective(above: pl.DataFrame, counters: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Mark calls of MPI-IO on files whose counters count collective calls: DXT does not tell."""
    if "MPI-IO" not in counters:
        return above
    told = pl.lit(value=False)
    for operation in ("read", "write"):
        together, alone = (
            pl.col(f"MPIIO_{kind}_{operation.upper()}S").sum() for kind in ("COLL", "INDEP")
        )
        counted = (
            counters["MPI-IO"]
            .group_by("file")
            .agg(together.alias("together"), alone.alias("alone"))
        )
        files = counted.filter(pl.col("together") > pl.col("alone"))["file"]
        told |= (pl.col("operation").cast(pl.String) == operation) & pl.col("file").is_in(
            files.implode()
        )
    told &= pl.col("layer").cast(pl.String) == "mpiio"
    return above.with_columns(collective=pl.coalesce("collective", told.fill_null(value=False)))


def with_file_rows(table: pl.DataFrame, files: pl.DataFrame) -> pl.DataFrame:
    """Return a table whose column `file` is the place in `files`, which is sorted; null unknown."""
    rows = pl.Series("file", file_rows(table, files))
    return table.with_columns(rows.set(rows < 0, None))


def file_rows(table: pl.DataFrame, files: pl.DataFrame) -> Ints:
    """Return the place of each row's file in `files`, which is sorted; UNKNOWN for no file."""
    known = files["file"].to_numpy().astype(np.int64)
    column = table["file"]
    file = (column.cast(pl.Int64).fill_null(UNKNOWN) if column.null_count() else column).to_numpy()
    place = np.searchsorted(known, file)
    found = np.append(known, UNKNOWN)[place] == file
    return np.where(found & (file >= 0), place, UNKNOWN)


def _io_events(events: pl.DataFrame, files: pl.DataFrame) -> pl.DataFrame:
    """All I/O calls on data, with one column for who made them."""
    chosen = (
        pl.col("layer").cast(pl.String).is_in(NOT_IO).not_()
        & pl.col("file").is_in(without_data(files).implode()).fill_null(value=False).not_()
        & (pl.col("end") >= pl.col("start"))
    )
    unit = pl.coalesce(pl.col("rank").cast(pl.Int64), pl.col("process").cast(pl.Int64), pl.lit(0))
    wanted = ("start", "end", "layer", "operation", "file", "offset", "bytes", "collective")
    if not events.height:
        return _EMPTY
    return with_file_rows(events.filter(chosen).select(unit.alias("unit"), *wanted), files)


_EMPTY = pl.DataFrame(
    schema={
        "unit": pl.Int64, "start": pl.Float64, "end": pl.Float64, "layer": pl.String,
        "operation": pl.String, "file": pl.Int64, "offset": pl.Int64, "bytes": pl.Int64,
        "collective": pl.Boolean,
    }
)  # fmt: skip


def _calls(events: pl.DataFrame) -> Calls:
    kinds = (
        pl.col("operation")
        .cast(pl.String)
        .replace_strict(KINDS, default=METADATA, return_dtype=pl.Int64)
    )
    table = events.select(
        "start", "end", "unit", kind=kinds,
        file=pl.col("file").cast(pl.Int64).fill_null(UNKNOWN),
        offset=pl.col("offset").fill_null(UNKNOWN),
        bytes=pl.col("bytes").fill_null(0),
    )  # fmt: skip
    return Calls(
        start=table["start"].to_numpy(),
        end=table["end"].to_numpy(),
        rank=table["unit"].to_numpy(),
        file=table["file"].to_numpy(),
        kind=table["kind"].to_numpy(),
        offset=table["offset"].to_numpy(),
        bytes=table["bytes"].to_numpy(),
        inferred=np.zeros(table.height, np.bool_),
    ).ordered()


def _hidden(calls: Calls, phases: IoPhases, counted: CountedTimes) -> float:
    """Seconds of metadata and sync calls for which most ranks have no room inside phases."""
    if not len(calls):
        return 0.0
    start, end, rank, _ = _pauses(calls, phases)
    room = np.bincount(rank, end - start, minlength=len(counted.metadata))
    return float(np.median(counted.metadata + counted.sync - room))


def fill_gaps(calls: Calls, phases: IoPhases, counted: CountedTimes) -> tuple[Calls, Floats]:
    """Lay metadata and sync seconds that only counters tell into pauses between calls.

    Extended tracing of Darshan records reads and writes only: opens and syncs between them are
    pauses. Each rank's pauses inside phases are filled in proportion to what is to be placed.
    """
    if not counted.metadata.any() and not counted.sync.any():
        return calls, counted.metadata
    start, end, rank, file = _pauses(calls, phases)
    room = np.bincount(rank, end - start, minlength=len(counted.metadata))
    wanted = counted.metadata + counted.sync
    share = np.minimum(1.0, wanted / np.maximum(room, 1e-12))
    of_sync = counted.sync / np.maximum(wanted, 1e-12)
    length = (end - start) * share[rank]
    sync_length = length * of_sync[rank]
    parts = [calls]
    for kind, begin, finish in (
        (KINDS["sync"], start, start + sync_length),
        (METADATA, start + sync_length, start + length),
    ):
        some = finish > begin
        count = int(some.sum())
        unknown = np.full(count, UNKNOWN)
        parts.append(
            Calls(begin[some], finish[some], rank[some], file[some], np.full(count, kind),
                  unknown, np.zeros(count, np.int64), np.ones(count, np.bool_))
        )  # fmt: skip
    unplaced = np.maximum(0.0, wanted - room) * (1 - of_sync)
    return joined(*parts), unplaced


def _pauses(calls: Calls, phases: IoPhases) -> tuple[Floats, Floats, Ints, Ints]:
    """Pauses of each rank inside phases: from the phase's start or the call before to the next."""
    phase = phases.of(calls.start)
    firsts = first_of_each(calls.rank * (len(phases) + 1) + phase)
    begin = np.concatenate(([0.0], calls.end[:-1]))
    begin[firsts] = phases.start[phase[firsts]]
    some = calls.start > begin
    return begin[some], calls.start[some], calls.rank[some], calls.file[some]


def _number(below: pl.DataFrame, operation: str, ranks: int) -> Ints:
    """How many calls of an operation each rank makes in the trace itself."""
    some = below.filter(pl.col("operation").cast(pl.String) == operation)
    return np.bincount(some["unit"].to_numpy(), minlength=ranks)


def _hosts(trace: Trace, numbers: Ints) -> tuple[tuple[str, ...], Ints]:
    known = trace.processes.filter(pl.col("host").is_not_null())
    of_rank = dict(zip(known["rank"].to_list(), known["host"].to_list(), strict=True))
    names = sorted(set(of_rank.values()))
    places = {name: place for place, name in enumerate(names)}
    host_of = [places.get(of_rank.get(int(number), ""), UNKNOWN) for number in numbers]
    return tuple(names), np.array(host_of, np.int64)


def _applications(trace: Trace, numbers: Ints) -> tuple[str, ...]:
    known = trace.processes.filter(pl.col("application").is_not_null())
    of_rank = dict(zip(known["rank"].to_list(), known["application"].to_list(), strict=True))
    if len(set(of_rank.values())) < 2:
        return ()
    return tuple(str(of_rank.get(int(number), "")) for number in numbers)


def _runtime(trace: Trace, phases: IoPhases) -> float:
    last = float(phases.end[-1]) if len(phases) else 0.0
    return max(0.0, trace.job.runtime or last)


def _filesystem(files: pl.DataFrame, calls: Calls) -> str | None:
    """The file system that most of the time is spent on."""
    if not len(calls) or not files.height:
        return None
    names = files["filesystem"].to_list()
    known = calls.file >= 0
    seconds = np.bincount(calls.file[known], calls.duration[known], minlength=len(names))
    totals: dict[str, float] = {}
    for name, spent in zip(names, seconds, strict=True):
        if name is not None:
            totals[name] = totals.get(name, 0.0) + float(spent)
    return max(totals, key=lambda name: totals[name]) if totals else None
