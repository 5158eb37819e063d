"""What a library above POSIX makes of the program's calls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.attribution import Candidate
from ioprism.analyses.diagnosis.calls import READ, WRITE, Flags, Floats, Ints
from ioprism.analyses.diagnosis.contrasts import contrast_of
from ioprism.analyses.diagnosis.situation import Situation
from ioprism.records import dataclass

PIECES = 8  # calls below for one above: the library passes small pieces on
SMALL = 2**20  # bytes: a piece that a file system handles as one request
AGGREGATED = 0.5  # of the ranks: fewer of them do the I/O where calls are aggregated


@dataclass(frozen=True, slots=True)
class LibraryFile:
    """One file that the program reads or writes through MPI-IO."""

    file: int
    asked: tuple[int, int]  # bytes read, written by the program
    calls_above: int
    collective: bool
    ranks_above: int


def collective_files(at: Situation) -> Ints:
    """Files that ranks access together: who does their I/O is the library's choice."""
    return np.array([entry.file for entry in library_files(at) if entry.collective], np.int64)


def library_files(at: Situation) -> list[LibraryFile]:
    """Sum up reads and writes through MPI-IO, by file."""
    above = at.seen.above
    if not above.height:
        return []
    operation = pl.col("operation").cast(pl.String)
    moves = above.drop_nulls("file").filter(
        operation.is_in(["read", "write"]), pl.col("layer").cast(pl.String) == "mpiio"
    )
    table = moves.group_by("file").agg(
        pl.len().alias("calls"),
        pl.col("unit").n_unique().alias("ranks"),
        *(pl.col("bytes").filter(operation == way).sum().alias(way) for way in ("read", "write")),
        pl.col("collective").any().alias("collective"),
    )
    return [
        LibraryFile(
            row["file"],
            (row["read"], row["write"]),
            row["calls"],
            row["collective"],
            row["ranks"],
        )
        for row in table.sort("file").iter_rows(named=True)
    ]


def of_libraries(at: Situation) -> Flags:
    """Calls that a library makes of the program's: all on its files but those passed on as asked.

    An independent call of MPI-IO that reaches storage with the same bytes is the program's own.
    """
    below = np.isin(at.calls.file, [entry.file for entry in library_files(at)])
    above = at.seen.above.filter(
        (pl.col("layer").cast(pl.String) == "mpiio") & ~pl.col("collective").fill_null(value=False)
    ).sort("unit", "start")
    if not below.any() or not above.height:
        return below
    start, end, unit, moved = (above[name].to_numpy() for name in ("start", "end", "unit", "bytes"))
    span = 1.0 + max(float(at.calls.end.max()), float(end.max()))
    rows = np.flatnonzero(below)
    mine = at.calls.rank[rows] * span + at.calls.start[rows]
    around = np.maximum(0, np.searchsorted(unit * span + start, mine, side="right") - 1)
    inside = (unit[around] == at.calls.rank[rows]) & (end[around] >= at.calls.end[rows])
    below[rows[inside & (moved[around] == at.calls.bytes[rows])]] = False
    return below


def find(at: Situation) -> Iterator[Candidate]:
    """Find files whose library makes more, smaller or other calls than the program."""
    for entry in library_files(at):
        mine = (at.calls.file == entry.file) & at.calls.moves_data
        if not mine.any():
            continue
        rewritten = _read_modify_write(at, entry, mine)
        if rewritten is not None:
            yield rewritten
            continue
        if not entry.collective:
            continue
        writers = np.unique(at.calls.rank[mine])
        many = len(writers) > AGGREGATED * entry.ranks_above and entry.ranks_above > 1
        if many:
            yield from _not_aggregated(at, entry, mine)
        else:
            yield from _few_aggregators(at, entry, mine, writers)


def _rest(at: Situation, mine: Flags) -> Floats:
    """Seconds of each phase that are not the lowest layer's calls on the file."""
    return np.maximum(0.0, at.held - at.busiest_rank(at.own, mine))


def _read_modify_write(at: Situation, entry: LibraryFile, mine: Flags) -> Candidate | None:
    """The program only writes, but the library reads (and writes) more than that."""
    read, written = (int(at.calls.bytes[mine & (at.calls.kind == k)].sum()) for k in (READ, WRITE))
    if entry.asked[0] > 0.1 * read or read < 0.2 * max(1, entry.asked[1]) or not entry.asked[1]:
        return None
    writes = mine & (at.calls.kind == WRITE)
    if not writes.any():
        return None  # they reach storage in calls that the trace does not have
    shrunk = min(1.0, entry.asked[1] / max(1, written))
    quick = float(np.quantile(at.calls.duration[writes], 0.25))
    after = np.where(writes, np.minimum(at.own, quick) * shrunk, 0.0)
    slow = np.where(writes, at.own * shrunk, 0.0)
    rest = _rest(at, mine)
    saved = np.maximum(0.0, at.held - rest - at.busiest_rank(after))
    low = np.maximum(0.0, at.held - rest - at.busiest_rank(slow))
    return Candidate(
        "read-modify-write",
        {"file": at.path(entry.file)},
        saved,
        float(low.sum()) * 0.97,
        float((at.held - rest).sum()),
        at.chance(mine),
        contrast_of(at, mine & (at.calls.kind == READ), writes, "read-modify-write"),
        {"asked": entry.asked[1], "read": read, "written": written},
    )


def _not_aggregated(at: Situation, entry: LibraryFile, mine: Flags) -> Iterator[Candidate]:
    """Collective calls reach POSIX as many small pieces from all ranks."""
    count = int(mine.sum())
    size = float(np.median(at.calls.bytes[mine]))
    if count < PIECES * entry.calls_above or size >= SMALL:
        return
    rest = _rest(at, mine)
    # Large contiguous pieces: the fixed cost per piece and the locks go away. What remains is
    # at most what the quickest calls take, at least their bytes at the highest rate seen.
    quick = float(np.quantile(at.calls.duration[mine], 0.1))
    pieces = at.busiest_rank(mine.astype(np.float64))
    slow = pieces * quick
    likely = 0.3 * slow
    saved = np.maximum(0.0, at.held - rest - likely)
    yield Candidate(
        "collective-not-aggregated",
        {"file": at.path(entry.file)},
        saved,
        float(np.maximum(0.0, at.held - rest - slow).sum()),
        float((at.held - rest).sum()),
        at.chance(mine),
        contrast_of(at, mine, None, "collective-not-aggregated"),
        {"bytes_per_request": size, "asked_bytes": sum(entry.asked) / max(1, entry.calls_above)},
    )


def _targets(at: Situation, file: int) -> int:
    """How many storage targets a file lies on; 0 where the trace does not tell."""
    targets = at.seen.files["targets"][file]
    return 0 if targets is None else len(targets)


def _few_aggregators(
    at: Situation, entry: LibraryFile, mine: Flags, writers: Ints
) -> Iterator[Candidate]:
    """Fewer ranks than nodes do the I/O of collective calls."""
    nodes = at.nodes
    if len(writers) >= nodes or len(writers) >= _targets(at, entry.file) > 1:
        return  # one for each target: more of them would not reach more storage
    own = at.by_rank(at.own, mine)
    chain = own.sum(axis=1) / nodes
    held = np.where(mine, at.queues.held, 0.0)
    work = at.even_target(held)
    rest = np.maximum(0.0, at.held - own.max(axis=1))
    # The data of all ranks pass the aggregators' nodes: more of them receive more at once.
    exchange = np.minimum(rest, at.waiting)
    received = rest - exchange * (1 - len(writers) / nodes)
    least, most = at.queues.doubt
    after = [np.maximum(chain, work * factor) + received for factor in (most, 1.0, least)]
    saved = [np.maximum(0.0, at.held - a) for a in after]
    yield Candidate(
        "few-aggregators",
        {"rank": int(at.seen.rank_numbers[writers[0]]), "file": at.path(entry.file)},
        saved[1],
        0.93 * float(saved[0].sum()),
        1.03 * float(saved[2].sum()),
        at.chance(mine),
        contrast_of(at, mine, None, "few-aggregators"),
        {"aggregators": len(writers), "nodes": nodes},
    )
