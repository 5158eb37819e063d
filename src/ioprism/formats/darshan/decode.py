"""Decode the records of a log's modules: counters, stripe layouts and heat maps.

The one place that reads them. Tables (`tables.py`) and the columns that rules judge are both made
of what is decoded here. A table library takes longer to load than a small log to be judged, so
this module needs NumPy only.

The APMPI module, how often each rank called MPI and how long it was in it, holds one header and a
record for each rank: {id, rank, counters, times, synchronisation times, totals, name of the node},
in words of 8 bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ioprism.formats.darshan.log import Log, Region, whole
from ioprism.formats.darshan.meaning import (
    FIXED,
    LUSTRE_COMPONENT,
    MODULES,
    PLAIN_COUNTS,
    WITHOUT_FILES,
    Layout,
)
from ioprism.model.trace import LARGEST_PLAUSIBLE, SIZE_BINS, Warn
from ioprism.model.usage import EVERYONE, NAMELESS
from ioprism.units import format_counted

Words = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]

MODULE_BYTES = 4 * 2**30  # a module beyond this is damaged, or needs another machine
MAX_STRIPES = 65_536
MAX_BINS = 2**20
UNUSED = -1  # stripe size of a component that holds no data yet


@dataclass(frozen=True, slots=True)
class FileCodes:
    """Turns Darshan's record identifiers into rows of the file table."""

    sorted_ids: Words
    order: Rows

    @classmethod
    def of(cls, ids: Iterable[int], count: int) -> FileCodes:
        """Number identifiers by their position."""
        known = np.fromiter(ids, np.uint64, count)
        order = np.argsort(known, kind="stable")
        return cls(known[order], order)

    def rows(self, ids: Words) -> Rows:
        """Return the rows of identifiers; `NAMELESS` where an identifier has no name."""
        if not len(self.sorted_ids):
            return np.full(len(ids), NAMELESS)
        place = np.searchsorted(self.sorted_ids, ids).clip(max=len(self.sorted_ids) - 1)
        return np.where(self.sorted_ids[place] == ids, self.order[place], NAMELESS)


@dataclass(frozen=True, eq=False)
class ModuleRecords:
    """The records of one module with counters: a row of native 8-byte words each."""

    words: Words
    layout: Layout
    codes: FileCodes
    byte_order: str

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def places(self) -> dict[str, int]:
        """The word of each counter and time."""
        names = (*self.layout.counters, *self.layout.times)
        return {name: place for place, name in enumerate(names, 2 + self.layout.has_parent)}

    @property
    def first_time(self) -> int:
        """The word of the first time, which follows the counters."""
        return 2 + self.layout.has_parent + len(self.layout.counters)

    @property
    def times(self) -> npt.NDArray[np.float64]:
        """The times of all records, in the order of the layout."""
        return self.words[:, self.first_time :][:, : len(self.layout.times)].view(np.float64)

    def values(self, name: str) -> npt.NDArray[Any] | None:
        """One value per record, or None where this version has no such counter."""
        place = self.places.get(name)
        if place is None:
            return None
        return self.words[:, place].view(np.float64 if place >= self.first_time else np.int64)

    def column(self, name: str) -> list[Any] | None:
        """One value per record as a list; None for times that are not numbers."""
        values = self.values(name)
        if values is None:
            return None
        if values.dtype == np.float64 and not np.isfinite(values).all():
            return [value if math.isfinite(value) else None for value in values.tolist()]
        return list(values.tolist())

    @cached_property
    def file_rows(self) -> Rows:
        """The row of each record's file."""
        return self.codes.rows(self.words[:, 0])

    @property
    def files(self) -> list[int]:
        """The row of each record's file."""
        return list(self.file_rows.tolist())

    @property
    def ranks(self) -> list[int]:
        """The rank of each record; -1 for all together."""
        return list(self.words[:, 1].view(np.int64).tolist())


def read_records(
    log: Log, region: Region, codes: FileCodes, *, ranks: int, warn: Warn
) -> ModuleRecords:
    """Read a module's records; those that name an impossible rank are dropped with a warning."""
    versions, name = FIXED[region.name], log.path.name
    layout = versions.get(region.version)
    if layout is None:
        warn(
            f"{name}: {region.name} records have the unknown version {region.version} "
            "and are not read"
        )
        layout = versions[max(versions)]
        return ModuleRecords(np.empty((0, layout.words), np.uint64), layout, codes, log.byte_order)
    data = whole(log, region, warn, limit=MODULE_BYTES)
    count, rest = divmod(len(data), 8 * layout.words)
    if rest:
        warn(f"{name}: the last {region.name} record is cut off")
    raw = np.frombuffer(data, dtype=f"{log.byte_order}u8", count=count * layout.words)
    words = raw.astype(np.uint64, copy=False).reshape(-1, layout.words)
    rank = words[:, 1].view(np.int64)
    possible = (rank >= EVERYONE) & (rank < ranks)
    if dropped := count - int(possible.sum()):
        warn(f"{name}: {format_counted(dropped, f'damaged {region.name} record')} left out")
        words = words[possible]
    records = ModuleRecords(words, layout, codes, log.byte_order)
    for problem in _problems(records, region.name):
        warn(f"{name}: {problem}")
    return records


def _problems(records: ModuleRecords, module: str) -> Iterator[str]:
    """Describe what is wrong with records that are kept."""
    if broken := int((~np.isfinite(records.times)).any(axis=1).sum()):
        yield f"{format_counted(broken, f'{module} record')} with times that are not numbers"
    if wrong := _count_contradictions(records, module):
        yield (
            f"{format_counted(wrong, f'inconsistent {module} record')}; "
            "numbers derived from damaged records may be wrong"
        )
    nameless = 0 if module == WITHOUT_FILES else int((records.file_rows == NAMELESS).sum())
    if nameless:
        yield f"{format_counted(nameless, f'{module} record')} of files without a name"


def _count_contradictions(records: ModuleRecords, module: str) -> int:
    """Count the records that contradict themselves or hold impossible numbers."""
    places = [records.places[n] for n in records.layout.counters if n.endswith(PLAIN_COUNTS)]
    counts = records.words[:, places].view(np.int64)
    wrong = ((counts < -1) | (counts > LARGEST_PLAUSIBLE)).any(axis=1)
    meaning = MODULES.get(module)
    if meaning is not None and meaning.sizes_add_up:
        for direction, calls in meaning.calls.items():
            bins = [meaning.size_counter(direction, size.counter) for size in SIZE_BINS]
            names = [meaning.counter_name(name) for name in calls]
            wrong |= _sums(records, bins) != _sums(records, names)
    return int(wrong.sum())


def _sums(records: ModuleRecords, names: Iterable[str]) -> Rows:
    """The sum of counters of each record; those that this version lacks count nothing."""
    places = [records.places[name] for name in names if name in records.places]
    total: Rows = records.words[:, places].view(np.int64).sum(axis=1)
    return total


def decode_lustre(log: Log, region: Region, warn: Warn) -> Iterator[dict[str, Any]]:
    """Yield every layout component: one per file in version 1, several in version 2."""
    decode: Callable[[bytes, str], Iterator[dict[str, Any] | None]] | None
    decode = {1: _lustre_1, 2: _lustre_2}.get(region.version)
    if decode is None:
        warn(f"{log.path.name}: LUSTRE records of version {region.version} are not read")
        return
    data = whole(log, region, warn, limit=MODULE_BYTES)
    for component in decode(data, log.byte_order):
        if component is None:
            warn(f"{log.path.name}: a LUSTRE record is damaged; layouts from there on are missing")
            return
        yield component


def _lustre_1(data: bytes, order: str) -> Iterator[dict[str, Any] | None]:
    """One component per file: id, rank, targets of the system, and the layout itself."""
    head = struct.Struct(f"{order}Qq5q")
    names = ("id", "rank", "system_targets", "", "", "stripe_size", "stripe_count")
    position = 0
    while position + head.size <= len(data):
        layout = dict(zip(names, head.unpack_from(data, position), strict=True))
        position += head.size
        count = layout["stripe_count"]
        end = position + 8 * count
        if not 0 <= count <= MAX_STRIPES or end > len(data) or not -1 <= layout["rank"] < 2**31:
            yield None
            return
        targets = list(struct.unpack_from(f"{order}{count}q", data, position))
        yield {name: layout[name] for name in names if name} | {"component": 0, "targets": targets}
        position = end


def _lustre_2(data: bytes, order: str) -> Iterator[dict[str, Any] | None]:
    """Several components per file: their counters, then the targets of all of them."""
    head = struct.Struct(f"{order}Q3q")
    component = struct.Struct(f"{order}{len(LUSTRE_COMPONENT)}q16s")
    position = 0
    while position + head.size <= len(data):
        identifier, rank, components, stripes = head.unpack_from(data, position)
        position += head.size
        targets_at = position + component.size * components
        end = targets_at + 8 * stripes
        possible = 0 <= components <= MAX_STRIPES and 0 <= stripes <= MAX_STRIPES
        if not possible or not -1 <= rank < 2**31 or end > len(data):
            yield None
            return
        targets = struct.unpack_from(f"{order}{stripes}q", data, targets_at)
        taken = 0
        for number in range(components):
            *values, pool = component.unpack_from(data, position + component.size * number)
            counters = dict(zip(LUSTRE_COMPONENT, values, strict=True))
            count = max(0, counters["stripe_count"])
            yield {
                "id": identifier,
                "rank": rank,
                "component": number,
                **counters,
                "pool": pool.split(b"\0")[0].decode("utf-8", "backslashreplace"),
                "targets": list(targets[taken : taken + count]),
            }
            taken += count
        position = end


def first_layouts(components: Sequence[dict[str, Any]], codes: FileCodes) -> dict[int, Any]:
    """Return each file's first component that holds data, by the row of the file."""
    ids = np.array([component["id"] for component in components], np.uint64)
    first: dict[int, Any] = {}
    for row, component in zip(codes.rows(ids).tolist(), components, strict=True):
        if row == NAMELESS or component["stripe_size"] == UNUSED:
            continue
        if row not in first or component["component"] < first[row]["component"]:
            first[row] = component
    return dict(sorted(first.items(), key=lambda one: one[1]["component"]))


class HeatRecord(NamedTuple):
    """Bytes that one rank moved through one interface, per time bin."""

    id: int
    rank: int
    width: float  # seconds
    write: list[int]
    read: list[int]


def decode_heat_maps(log: Log, region: Region, warn: Warn) -> Iterator[HeatRecord]:
    """Yield one record per interface and rank."""
    data = whole(log, region, warn, limit=MODULE_BYTES)
    head = struct.Struct(f"{log.byte_order}Qqdq16x")  # two pointers of the writing process are junk
    position = 0
    while position + head.size <= len(data):
        identifier, rank, width, bins = head.unpack_from(data, position)
        start = position + head.size
        end = start + 16 * bins
        possible = 0 <= bins <= MAX_BINS and 0 < width < math.inf and -1 <= rank < 2**31
        if not possible or end > len(data):
            break
        both = np.frombuffer(data, f"{log.byte_order}i8", 2 * bins, start).tolist()
        yield HeatRecord(identifier, rank, width, both[:bins], both[bins:])
        position = end
    if position < len(data):
        warn(f"{log.path.name}: a HEATMAP record is damaged; bins from there on are missing")


VERSION = 1
HEADER_BYTES = 48  # id, rank, magic number, whether synchronisation was timed, two variances
NODE_BYTES = 128


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Calls that send or move data have a histogram of sizes; the others are only counted.
_SIZES = ("0_256", "256_1K", "1K_8K", "8K_256K", "256K_1M", "1M_PLUS")
_MOVE_DATA = ("CALL_COUNT", "TOTAL_BYTES", *(f"MSG_SIZE_AGG_{size}" for size in _SIZES))
_POINT_TO_POINT = _words(
    "SEND SSEND RSEND BSEND RECV SENDRECV SENDRECV_REPLACE ISEND ISSEND IRSEND IBSEND IRECV"
)
_COMPLETE = _words(
    "PROBE IPROBE TEST TESTANY TESTALL TESTSOME WAIT WAITANY WAITALL WAITSOME BARRIER IBARRIER"
)
_COLLECTIVE = _words(
    "BCAST GATHER GATHERV SCATTER SCATTERV SCAN EXSCAN ALLGATHER ALLGATHERV REDUCE ALLREDUCE "
    "REDUCE_SCATTER ALLTOALL ALLTOALLV ALLTOALLW"
)
_ONE_SIDED = _words("PUT GET ACCUMULATE GET_ACCUMULATE")
_WINDOWS = _words(
    "FETCH_AND_OP COMPARE_AND_SWAP WIN_FENCE WIN_START WIN_COMPLETE WIN_POST WIN_WAIT WIN_TEST "
    "WIN_LOCK WIN_UNLOCK WIN_UNLOCK_ALL WIN_FLUSH WIN_FLUSH_ALL WIN_FLUSH_LOCAL "
    "WIN_FLUSH_LOCAL_ALL WIN_SYNC"
)
_WITHOUT_DATA = {*_COMPLETE, *_WINDOWS}

CALLS = (
    *_POINT_TO_POINT,
    *_COMPLETE,
    *_COLLECTIVE,
    *(f"I{name}" for name in _COLLECTIVE),
    *_ONE_SIDED,
    *_WINDOWS,
)
COUNTERS = tuple(
    f"MPI_{call}_{what}"
    for call in CALLS
    for what in (("CALL_COUNT",) if call in _WITHOUT_DATA else _MOVE_DATA)
)
TIMES = (
    *(f"MPI_{call}_{what}_TIME" for call in CALLS for what in ("TOTAL", "MIN", "MAX")),
    *(f"MPI_{call}_TOTAL_SYNC_TIME" for call in ("BARRIER", *_COLLECTIVE)),
    "MPI_TOTAL_COMM_TIME",
    "MPI_TOTAL_COMM_SYNC_TIME",
)


def decode_apmpi(log: Log, region: Region, *, ranks: int, warn: Warn) -> npt.NDArray[Any]:
    """Return one record per rank with the fields rank, counters, times and host."""
    order = log.byte_order
    layout = np.dtype(
        [("id", f"{order}u8"), ("rank", f"{order}i8"), ("counters", f"{order}i8", len(COUNTERS)),
         ("times", f"{order}f8", len(TIMES)), ("host", f"S{NODE_BYTES}")]
    )  # fmt: skip
    if region.version != VERSION:
        warn(f"{log.path.name}: APMPI has the unknown version {region.version} and is not read")
        return np.empty(0, layout)
    data = whole(log, region, warn, limit=MODULE_BYTES)[HEADER_BYTES:]
    if len(data) % layout.itemsize:
        warn(f"{log.path.name}: the last APMPI record is cut off")
    records = np.frombuffer(data, layout, len(data) // layout.itemsize)
    possible = records[(records["rank"] >= 0) & (records["rank"] < ranks)]
    if len(possible) < len(records):
        damaged = format_counted(len(records) - len(possible), "damaged APMPI record")
        warn(f"{log.path.name}: {damaged} left out")
    return possible
