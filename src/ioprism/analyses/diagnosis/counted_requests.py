"""Requests, libraries and syncs in counters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis import counted_opens
from ioprism.analyses.diagnosis.calls import Flags, Floats
from ioprism.analyses.diagnosis.counted import (
    NEARLY_ALL,
    Counted,
    even_part,
    slowest_rank,
    work_left,
)
from ioprism.analyses.diagnosis.counted_load import few_targets
from ioprism.analyses.diagnosis.counter_records import CounterRecords
from ioprism.analyses.diagnosis.observations import with_file_rows
from ioprism.analyses.diagnosis.queues import LEAST, LIKELY, MOST
from ioprism.analyses.diagnosis.request_cost import FAST, REQUEST, SLOW, USUAL
from ioprism.analyses.diagnosis.situation import Candidate
from ioprism.analyses.diagnosis.uneven_load import COPIES, MANY

BLOCK = 2**20  # bytes: one request of a file system


def find(at: Counted) -> Iterator[Candidate]:
    """Find what requests, libraries and syncs cost."""
    repeated = list(_redundant(at))
    narrow = [] if repeated else list(few_targets(at))
    yield from (*repeated, *narrow)
    # One aggregator for each target: the striping explains why there are few.
    striped = {one.culprit["file"] for one in narrow}
    yield from (
        one for one in _layers(at)
        if not (one.code == "few-aggregators" and one.culprit["file"] in striped)
    )  # fmt: skip
    yield from _sync(at)
    yield from counted_opens.find(at)
    yield from _small(at)


def _redundant(at: Counted) -> Iterator[Candidate]:
    """All ranks together read a file's bytes many times."""
    found = at.records
    copies = _asked_reads(at) / np.maximum(found["last_read"] + 1, 1)
    some = found.shared & (copies >= COPIES) & (found["last_read"] > 0)  # 0 where it is unknown
    if not some.any():
        return
    record = int(np.argmax(np.where(some, found["read_time"], 0.0)))
    mine = np.arange(len(found)) == record
    seconds = at.busiest(np.where(mine, found["read_time"], 0.0))
    rest = max(0.0, at.held - seconds)
    after = seconds / copies[record]
    yield at.candidate(
        "redundant-reads", {"file": found.path(record)},
        (rest + after, rest, rest + 3 * after), mine,
        copies=float(copies[record]), bytes=float(found["last_read"][record]),
    )  # fmt: skip


def _asked_reads(at: Counted) -> Floats:
    """Bytes that the program reads of each record's file: MPI-IO may read more than it asks for."""
    found = at.records
    if "MPI-IO" not in at.trace.counters:
        return found["bytes_read"]
    table = with_file_rows(at.trace.counters["MPI-IO"], found.files)
    asked = table.group_by("file").agg(asked=pl.col("MPIIO_BYTES_READ").sum())
    places = pl.DataFrame({"file": found.file}, schema={"file": asked.schema["file"]})
    known = places.join(asked, on="file", how="left", maintain_order="left")
    most: Floats = known["asked"].cast(pl.Float64).fill_null(np.inf).to_numpy()
    return np.minimum(found["bytes_read"], most)


def _layers(at: Counted) -> Iterator[Candidate]:
    """MPI-IO against POSIX, for files that all ranks share."""
    if "MPI-IO" not in at.trace.counters:
        return
    found = at.records
    table = with_file_rows(at.trace.counters["MPI-IO"], found.files)
    for row in table.filter(pl.col("rank") < 0).iter_rows(named=True):
        record = np.flatnonzero((found.file == row["file"]) & found.shared)
        if not len(record):
            continue
        rewritten = list(_read_modify_write(at, int(record[0]), row))
        yield from rewritten
        if not rewritten:
            yield from _few_aggregators(at, int(record[0]), row)


def _read_modify_write(at: Counted, place: int, row: dict[str, Any]) -> Iterator[Candidate]:
    """POSIX reads what the program only writes."""
    found = at.records
    read, written = found["bytes_read"][place], found["bytes_written"][place]
    asked = row["MPIIO_BYTES_WRITTEN"]
    if not asked or row["MPIIO_BYTES_READ"] > 0.1 * read or read < 0.2 * asked:
        return
    seconds = float(found["slowest"][place])
    rest = max(0.0, at.held - seconds)
    writes, opens = (
        float(found[name][place] / max(1e-12, found.seconds[place]))
        for name in ("write_time", "meta_time")
    )
    rest += seconds * opens
    after = seconds * writes * min(1.0, asked / max(1.0, written))
    yield at.candidate(
        "read-modify-write", {"file": found.path(place)},
        (rest + 0.6 * after, rest, rest + after), np.arange(len(found)) == place,
        asked=asked, read=read, written=written,
    )  # fmt: skip


def _few_aggregators(at: Counted, place: int, row: dict[str, Any]) -> Iterator[Candidate]:
    """One rank does the I/O of collective calls: ranks differ in bytes as much as they can."""
    found = at.records
    mean = found.moved[place] / found.ranks
    aggregators = found.ranks / (1 + found["byte_variance"][place] / max(mean**2, 1.0))
    collective = row["MPIIO_COLL_WRITES"] + row["MPIIO_COLL_READS"] > 0
    if not collective or aggregators >= 1.5 or found.ranks < MANY:
        return
    mine = np.arange(len(found)) == place
    seconds = float(found["slowest"][place])
    rest = max(0.0, at.held - seconds)
    likely, least, most = (
        rest + seconds * max(1 / found.ranks, even_part(at, mine) * share)
        for share in (LIKELY, LEAST, MOST)
    )
    # The data of all ranks pass the aggregator's node: at best that goes with it.
    exchanged = at.held - max(seconds, float(row["MPIIO_F_SLOWEST_RANK_TIME"]))
    yield at.candidate(
        "few-aggregators",
        {"rank": int(found["slowest_rank"][place]), "file": found.path(place)},
        (likely, min(least, exchanged), most), mine, aggregators=1,
    )  # fmt: skip


def _sync(at: Counted) -> Iterator[Candidate]:
    """Syncs, whose time Darshan adds to that of writes."""
    found = at.records
    some = found["syncs"] > 1
    if not some.any():
        return
    # A write takes at most what the longest took, and at least its bytes at a usual rate.
    least = REQUEST * found["writes"] + found["bytes_written"] / USUAL
    likely = np.sqrt(np.maximum(0.5 * found["longest_write"] * found["writes"], least) * least)
    writes = np.where(some, np.minimum(found["write_time"], likely), found["write_time"])
    busy = writes + found["read_time"]
    spent = np.where(some, found["write_time"] - writes, 0.0)
    service = np.where(some, np.minimum(busy, least + found["read_time"]), busy)
    left = work_left(at, busy, at.busiest(spent), service)
    meta = float(at.records.by_rank(found["meta_time"]).max())
    record = int(np.argmax(np.where(some, found["syncs"], 0)))
    yield at.candidate(
        "frequent-sync", {"operation": "sync", "file": found.path(record)},
        (left[0] + meta, 0.7 * left[1] + meta, 1.6 * left[0] + meta), some,
        syncs=float(found["syncs"].sum()),
    )  # fmt: skip


def _asked_alone(at: Counted, some: Flags) -> bool:
    """Whether the program itself asks for these requests, one by one, through MPI-IO."""
    if "MPI-IO" not in at.trace.counters:
        return False
    table = with_file_rows(at.trace.counters["MPI-IO"], at.records.files)
    mine = table.filter(pl.col("file").is_in(at.records.file[some].tolist()))
    alone = pl.col("MPIIO_INDEP_READS", "MPIIO_INDEP_WRITES").clip(lower_bound=0).sum()
    made = sum(mine.select(alone).row(0))
    return bool(made >= NEARLY_ALL * at.records.requests[some].sum())


def _small(at: Counted) -> Iterator[Candidate]:
    """The fixed cost of each request, against rates that storage targets have."""
    found = at.records
    busy = found["read_time"] + found["write_time"]
    with np.errstate(divide="ignore", invalid="ignore"):
        size = found.moved / found.requests
    some = (found.requests > 1) & (size < BLOCK) & (found["syncs"] <= 1)
    if not some.any() or found.requests[some].sum() < 100:
        return
    mean = float(found.moved[some].sum() / found.requests[some].sum())
    targets = {name for names in found.targets for name in names}
    users = len(np.unique(found.rank[some]))
    queue = max(1.0, users / len(targets)) if targets else 1.0
    each = float(busy[some].sum() / found.requests[some].sum()) / queue
    own = float(found.by_rank(np.where(some, busy, 0.0)).max())
    if _asked_alone(at, some):  # MPI-IO's own cost for each request goes with it
        own = min(at.held, own + slowest_rank(at.trace, found, at.held)[1])
    rest = max(0.0, at.held - own)
    fixed = [float(np.clip(1 - mean / rate / max(each, 1e-12), 0, 1)) * (1 - mean / BLOCK)
             for rate in (USUAL, FAST, SLOW)]  # fmt: skip
    record = int(np.argmax(np.where(some, busy, 0.0)))
    culprit = {"bytes_per_request": round(mean), "file": found.path(record)}
    ranks, others = np.unique(found.rank[some]), np.unique(found.rank[size >= BLOCK])
    if ranks.min() >= 0 and len(np.setdiff1d(others, ranks)) > len(ranks):
        culprit["ranks"] = ranks.tolist()
    yield at.candidate(
        "small-requests", culprit,
        (rest + own * (1 - fixed[0]), rest + own * (1 - fixed[1]), rest + own * (1 - fixed[2])),
        some, requests=float(found.requests[some].sum()), bytes_per_request=mean,
        direction=_direction(found, some),
    )  # fmt: skip


def _direction(found: CounterRecords, some: Flags) -> str | None:
    """Whether these records have reads or writes only; None where they have both."""
    made = [name for name in ("read", "write") if found[f"{name}s"][some].any()]
    return made[0] if len(made) == 1 else None
