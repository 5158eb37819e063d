"""The rates that a job reached: by operation, request size, sharing of files and file system."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np

from ioprism.diagnosis.observed import DIRECTION, Observed
from ioprism.diagnosis.rows import READ, SYNC, WRITE, Flags, Ints
from ioprism.model.history import AchievedRate
from ioprism.model.layers import LARGEST_IN_BIN
from ioprism.model.trace import Mount, file_system_of

MAX_WAYS = 20  # of a job: those that move most


def achieved_rates(observed: Observed, mounts: Sequence[Mount]) -> list[AchievedRate]:
    """Return one entry for each way in which the job moves data, most bytes first."""
    rows = observed.rows
    data = rows.moves_data & (rows.bytes > 0) & (rows.file >= 0) & ~observed.of_programs
    if not data.any():  # signals name no files
        return []
    systems, system = _file_systems(observed, mounts)
    way = (
        (_size_classes(observed) * 2 + observed.shared_file) * len(systems)
        + system[np.maximum(rows.file, 0)]
    ) * 2 + (rows.kind == WRITE)
    # Time that a buffered write leaves to a sync belongs to the writes of that file.
    synced = (rows.kind == SYNC) & (rows.file >= 0) & (rows.seconds > 0)
    way[synced] = _way_of_writes(observed, data, way)[rows.file[synced]]
    entries = [
        _entry(observed, data & (way == one), synced & (way == one), systems, system)
        for one in np.unique(way[data])
    ]
    return sorted(entries, key=lambda entry: -entry.bytes)[:MAX_WAYS]


def size_class(size: float) -> int:
    """Return the place of a size among Darshan's classes."""
    return bisect_left(LARGEST_IN_BIN, size)


def _size_classes(observed: Observed) -> Ints:
    return np.searchsorted(np.array(LARGEST_IN_BIN), observed.rows.mean_bytes).astype(np.int64)


def _file_systems(observed: Observed, mounts: Sequence[Mount]) -> tuple[list[str], Ints]:
    """Names of the file systems, and the place among them of each file."""
    rows = observed.rows
    place = np.zeros(int(rows.file.max(initial=-1)) + 1, np.int64)
    names: dict[str, int] = {}
    for file in np.unique(rows.file[rows.file >= 0]).tolist():
        name = file_system_of(observed.files.path(file), mounts)
        place[file] = names.setdefault(name, len(names))
    return list(names) or [""], place


def _way_of_writes(observed: Observed, data: Flags, way: Ints) -> Ints:
    """By file, the way of most of its written bytes; -1 without any."""
    rows = observed.rows
    writes = np.flatnonzero(data & (rows.kind == WRITE))
    found = np.full(int(rows.file.max(initial=-1)) + 1, -1, np.int64)
    for row in writes[np.argsort(rows.bytes[writes], kind="stable")].tolist():
        found[rows.file[row]] = way[row]
    return found


def _entry(
    observed: Observed, data: Flags, syncs: Flags, systems: Sequence[str], system: Ints
) -> AchievedRate:
    rows = observed.rows
    first = int(np.flatnonzero(data)[0])
    moved, requests = float(rows.bytes[data].sum()), float(rows.count[data].sum())
    shared = bool(observed.shared_file[first])
    kind = READ if rows.kind[first] == READ else WRITE
    every = bool((rows.rank[data] < 0).any())
    return AchievedRate(
        operation=DIRECTION[kind],
        size_class=size_class(float(rows.mean_bytes[first])),
        shared=shared,
        file_system=systems[int(system[rows.file[first]])],
        ranks=observed.ranks if every else len(np.unique(rows.rank[data])),
        targets=len(set(_targets(observed, np.unique(rows.file[data])))) or None,
        requests=round(requests / observed.share),
        bytes=round(moved / observed.share),
        seconds=float(observed.busiest_rank(observed.own, data | syncs).sum()) / observed.share,
        synced=bool(syncs.any()),
    )


def _targets(observed: Observed, files: Ints) -> Iterator[object]:
    for file in files.tolist():
        yield from observed.files.targets(file)
