"""Opens, stats and closes in counters: how many the data needs, and what the others cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.calls import Flags, Floats
from ioprism.analyses.diagnosis.counted import Counted, tiny_files, work_left
from ioprism.analyses.diagnosis.counter_records import CounterRecords
from ioprism.analyses.diagnosis.directories import common_directory
from ioprism.analyses.diagnosis.observations import with_file_rows
from ioprism.analyses.diagnosis.overheads import LIBRARY, MANY_FILES
from ioprism.analyses.diagnosis.result import CallGroup, Contrast
from ioprism.analyses.diagnosis.situation import Candidate
from ioprism.analyses.diagnosis.uneven_load import MANY

HANDFUL = 10  # calls of a rank beyond what its data needs: fewer are no load
NEARLY_ALL = 0.8  # of the seconds: one file is to blame


def find(at: Counted) -> Iterator[Candidate]:
    """Find opens that hold the job up: of the same files by every rank, or more than needed."""
    library = library_files(at.records)
    yield from _library_start(at, library)
    yield from _metadata(at, library)


def library_files(found: CounterRecords) -> Flags:
    """Records of small files that most ranks read and none writes, where there are many."""
    count = int(found.file.max(initial=-1)) + 1
    users = np.bincount(found.file, np.where(found.shared, found.ranks, 1), minlength=count)
    reads, writes = (
        np.bincount(found.file, found[name], minlength=count)
        for name in ("bytes_read", "bytes_written")
    )
    each = reads / np.maximum(users, 1)
    wanted = (users >= max(2, 0.5 * found.ranks)) & (writes == 0) & (each < LIBRARY)
    if (wanted & (reads > 0)).sum() < MANY_FILES:
        return np.zeros(len(found), np.bool_)
    return np.asarray(wanted[found.file])


def _library_start(at: Counted, some: Flags) -> Iterator[Candidate]:
    """Every rank loads the same small files: one could, and hand them on.

    Counters do not tell nodes: from one rank alone to each node's own, all is possible.
    """
    found = at.records
    if not some.any() or found.ranks < MANY:
        return
    spent = at.busiest(np.where(some, found.seconds, 0.0))
    files = np.unique(found.file[some])
    rest = max(0.0, at.held - spent)
    yield at.candidate(
        "library-start", {"directory": _directory(at, np.where(some, found.seconds, 0.0))},
        (rest + spent / MANY, rest + spent / found.ranks, rest + spent / 2), some,
        files=len(files), ranks=found.ranks,
    )  # fmt: skip


def _metadata(at: Counted, library: Flags) -> Iterator[Candidate]:
    """More opens, stats and closes than the data needs."""
    found = at.records
    tiny, needed = tiny_files(found) & ~library, _needed(at)
    asked = found["opens"] + found["stats"]
    needed = np.where(tiny, 0.0, needed)
    part = np.where(library, 1.0, np.minimum(1.0, needed / np.maximum(found["opens"], 1.0)))
    if found.by_rank(asked * (1 - part)).max(initial=0.0) < HANDFUL:
        return
    data, meta = found["read_time"] + found["write_time"], found["meta_time"]
    least = work_left(at, *_split(data, meta, part, tiny, at))[1]
    # Files without data may be there for others to see: then each is made once.
    empty = (found.moved == 0) & (found["opens"] > 0) & ~library
    part = np.where(empty, np.maximum(part, 1 / np.maximum(found["opens"], 1.0)), part)
    once, _, most = work_left(at, *_split(data, meta, part, tiny, at))
    likely = (once + least) / 2 if empty.any() else once
    gone = meta * (1 - part) + np.where(tiny, data, 0.0)
    some = (gone > 0) & ~library
    number = float(asked[some].sum())
    cause = at.candidate(
        "metadata", {"operation": "open", **_where(at, gone)}, (likely, least, most), some,
        files=len(np.unique(found.file[some])), calls=number,
        calls_per_file=float(np.average(asked, weights=gone + 1e-12)),
    )  # fmt: skip
    each = float(meta[some].sum()) / max(1.0, number)
    group = CallGroup(int(number), None, each, None)
    peers = at.group(data > 0) if data.any() else None
    yield replace(cause, contrast=Contrast("metadata", group, peers))


def _split(
    data: Floats, meta: Floats, part: Floats, tiny: Flags, at: Counted
) -> tuple[Floats, float]:
    """Seconds that stay, by record, and those of the busiest rank that go."""
    stays = np.where(tiny, 0.0, data) + meta * part
    return stays, at.busiest(data + meta - stays)


def _needed(at: Counted) -> Floats:
    """Opens of each record that its data needs: one for each rank, or as the program asked.

    Of files that the program opens through MPI-IO, it is the library that opens them again.
    """
    found = at.records
    needed = np.where(found.moved > 0, np.where(found.shared, found.ranks, 1), 0)
    if "MPI-IO" not in at.trace.counters:
        return needed.astype(np.float64)
    table = with_file_rows(at.trace.counters["MPI-IO"], found.files)
    above = table.group_by("file").agg(
        pl.sum_horizontal("MPIIO_COLL_OPENS", "MPIIO_INDEP_OPENS").sum().alias("opens")
    )
    known = above.filter(pl.col("file").is_not_null())
    asked = np.zeros(max(found.files.height, 1))
    asked[known["file"].to_numpy()] = known["opens"].to_numpy()
    return np.maximum(needed, asked[found.file])


def _where(at: Counted, gone: Floats) -> dict[str, object]:
    """The file on which nearly all of these seconds are spent, or the directory of many files."""
    found = at.records
    seconds = np.bincount(found.file, gone)
    worst = int(np.argmax(seconds))
    if seconds[worst] >= NEARLY_ALL * seconds.sum() > 0:
        return {"file": str(found.files["path"][worst])}
    if np.count_nonzero(seconds) <= 2 * found.ranks:
        return {}
    directory = _directory(at, gone)
    return {"directory": directory} if directory not in ("", "/") else {}


def _directory(at: Counted, spent: Floats) -> str:
    """The directory in which most of some seconds are spent."""
    seconds = np.bincount(at.records.file, spent)
    files = np.flatnonzero(seconds)
    names = at.records.files["path"].gather(files.tolist()).to_list()
    return common_directory(names, seconds[files].tolist())
