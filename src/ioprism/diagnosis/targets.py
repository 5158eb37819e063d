"""Files and storage targets: names and layout, which targets each call touches, and for how long.

A target serves one call after another. A call that arrives while its target is busy ends one
service time after the call before it; one that arrives at an idle target takes the service time
plus what is not exclusive.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ioprism.diagnosis.limits import MAJORITY, MINOR, NEARLY_ALL, Limits
from ioprism.diagnosis.rows import SYNC, CallRows, Flags, Floats, Ints, first_of_each, unique
from ioprism.model.arrays import median, quantile
from ioprism.model.usage import OF_PROGRAMS, OF_SYSTEM, FileFacts

MAX_PATHS = 20_000  # paths that a common directory is looked for in

# File systems whose page cache all processes of a node share, without locks between nodes.
LOCAL = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "tmpfs", "ramfs", "f2fs", "overlay"}
)
_program = re.compile(f"{OF_SYSTEM}|{OF_PROGRAMS}").search


@dataclass(frozen=True, slots=True, eq=False)
class Files:
    """Files by their row."""

    path_of: Callable[[int], str | None]
    filesystem_of: Callable[[int], str | None]
    targets_of: Mapping[int, Sequence[int]]  # rows whose layout is known
    stripe_size: Ints  # bytes by row; 0 unknown
    numbers: Ints | None = None  # the trace's number of each row, ascending; None: the row

    def rows(self, numbers: Sequence[int]) -> Ints:
        """Return the rows of files that the trace numbers so."""
        wanted = np.asarray(list(numbers), np.int64)
        if self.numbers is None or not len(self.numbers):
            return wanted
        place = np.minimum(np.searchsorted(self.numbers, wanted), len(self.numbers) - 1)
        return np.asarray(place[self.numbers[place] == wanted], np.int64)

    @property
    def striped_rows(self) -> Ints:
        """Rows whose layout is known."""
        rows = (r for r, names in self.targets_of.items() if len(names) and self.stripe_size[r] > 0)
        return np.array(sorted(rows), np.int64)

    def path(self, file: int) -> str:
        """The name of a file; empty where it is unknown."""
        return (self.path_of(file) or "") if file >= 0 else ""

    def targets(self, file: int) -> Sequence[int]:
        """The targets that a file is striped over; none where its layout is unknown."""
        return self.targets_of.get(file, ())

    def block_sizes(self, file: Ints, default: int) -> Ints:
        """The lock block of each file: its stripe, or a default."""
        known = np.where(file >= 0, self.stripe_size[np.maximum(file, 0)], 0)
        return np.where(known > 0, known, default)

    def is_local(self, file: int) -> bool:
        """Whether the file is on a file system of one node."""
        return self.filesystem_of(file) in LOCAL

    def of_programs(self, files: Ints) -> set[int]:
        """Which of these files belong to programs and the system, by their names."""
        return {file for file in files.tolist() if _program(self.path(file))}

    def common_directory(self, files: Sequence[int], weights: Sequence[float]) -> str:
        """The deepest directory that holds most of these files, by weight."""
        return common_directory([self.path(file) for file in files], weights)


def files_of_log(facts: FileFacts, count: int) -> Files:
    """Return the files of a log of counters."""
    size = np.zeros(max(count, max(facts.striping, default=-1) + 1, 1), np.int64)
    for file, striping in facts.striping.items():
        size[file] = striping.size
    return Files(
        facts.path,
        facts.filesystem,
        {file: striping.targets for file, striping in facts.striping.items()},
        size,
    )


def common_directory(paths: Sequence[str], weights: Sequence[float] | None = None) -> str:
    """Return the deepest directory that nine of ten paths are below; empty if there is none.

    Where that is the root, the deepest one that half of them are below. Paths count by weight.
    """
    parents = [_parent(path) for path in paths[:MAX_PATHS]]
    by_weight = [1.0] * len(parents) if weights is None else list(weights[:MAX_PATHS])
    deepest = _deepest(parents, by_weight, NEARLY_ALL)
    return deepest if deepest not in ("", "/") else _deepest(parents, by_weight, MAJORITY)


def _parent(path: str) -> str:
    name = posixpath.normpath(posixpath.dirname(path))
    if name.startswith("/"):
        return "/" + name.lstrip("/")
    return "" if name == "." else name


def _deepest(parents: Sequence[str], weights: Sequence[float], share: float) -> str:
    total = sum(weights)
    absolute = sum(w for p, w in zip(parents, weights, strict=True) if p.startswith("/"))
    best = "/" if absolute > 0 and absolute >= share * total else ""
    while True:
        below = _children(parents, weights, best)
        name = max(below, key=lambda child: below[child], default=None)
        if name is None or below[name] < share * total:
            return best
        best = name


def _children(
    directories: Sequence[str], weights: Sequence[float], parent: str
) -> dict[str, float]:
    """The weight below each sub-directory of a directory."""
    sums: dict[str, float] = {}
    prefix = parent.rstrip("/") + "/" if parent else ""
    for name, weight in zip(directories, weights, strict=True):
        below = name[len(prefix) :].split("/", 1)[0] if name.startswith(prefix) else ""
        if below:
            sums[prefix + below] = sums.get(prefix + below, 0.0) + weight
    return sums


def is_in(values: Ints, chosen: set[int]) -> Flags:
    """Which values are among some others."""
    return np.isin(values, np.fromiter(chosen, np.int64, len(chosen)))


MAX_PIECES = 8_000_000  # rows held in memory; calls beyond that are left out of target sums


@dataclass(frozen=True, slots=True, eq=False)
class TargetPieces:
    """One entry for every row of calls and target that it touches."""

    call: Ints  # row
    target: Ints  # place in `targets`
    weight: Floats  # part of the row's service that this target gives
    targets: tuple[int | str, ...]  # names
    group: Ints  # of each row: the set of targets it touches; -1 unknown
    first: Ints  # of each row: place of the target that holds its first byte; -1 unknown


def target_pieces(rows: CallRows, files: Files) -> TargetPieces:
    """Map rows to the targets of their files."""
    nowhere = np.full(len(rows), -1, np.int64)
    striped = files.striped_rows
    if not len(striped) or not len(rows):
        none = np.empty(0, np.int64)
        return TargetPieces(none, none, np.empty(0), (), nowhere, nowhere)
    lists = [files.targets(int(file)) for file in striped]
    names, places = np.unique(
        np.concatenate([np.asarray(one) for one in lists]), return_inverse=True
    )
    counts = np.array([len(one) for one in lists], np.int64)
    begins = np.concatenate(([0], np.cumsum(counts)[:-1]))
    entry_of = np.full(int(max(striped.max(), rows.file.max())) + 1, -1, np.int64)
    entry_of[striped] = np.arange(len(striped))
    entry = np.where(rows.file >= 0, entry_of[np.maximum(rows.file, 0)], -1)
    moves = rows.moves_data & (rows.bytes > 0)
    chosen = np.flatnonzero((entry >= 0) & (moves | (rows.kind == SYNC)))
    entry = entry[chosen]
    size, count = files.stripe_size[striped][entry], counts[entry]
    # A sync, and a record of many calls, concern all targets of the file.
    whole = (rows.kind[chosen] == SYNC) | (rows.offset[chosen] < 0)
    low = np.where(whole, 0, rows.offset[chosen]) // size
    spans = (rows.offset[chosen] + rows.bytes[chosen] - 1) // size - low + 1
    turns = np.where(whole, count, np.minimum(spans, count))
    within = np.cumsum(turns) <= MAX_PIECES
    chosen, entry, low, turns, count = (x[within] for x in (chosen, entry, low, turns, count))
    step = np.arange(int(turns.sum())) - np.repeat(np.cumsum(turns) - turns, turns)
    place = np.repeat(begins[entry], turns) + (np.repeat(low, turns) + step) % np.repeat(
        count, turns
    )
    group, first = nowhere.copy(), nowhere.copy()
    first_place = places[begins[entry] + low % count]
    layout = _layout_numbers(lists)[entry]
    # Calls touch the same set of targets where layout, first target and number are the same.
    keys = (layout * (len(names) + 1) + first_place) * (int(turns.max(initial=1)) + 1) + turns
    group[chosen] = np.unique(keys, return_inverse=True)[1]
    first[chosen] = first_place
    call = np.repeat(chosen, turns)
    # One call occupies each of its targets; the calls of a record share them.
    part = np.where(rows.offset[call] < 0, 1.0 / np.repeat(turns, turns), 1.0)
    return TargetPieces(call, places[place], part, tuple(names.tolist()), group, first)


def _layout_numbers(lists: Sequence[Sequence[int]]) -> Ints:
    """A number for each distinct list of targets."""
    known: dict[tuple[int, ...], int] = {}
    return np.array([known.setdefault(tuple(one), len(known)) for one in lists], np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class ServiceTimes:
    """How long calls occupy their targets."""

    observed: Floats  # seconds that each call occupies its targets; NaN unknown
    work: Floats  # the same, summed over its targets: 0 unknown
    idle: Flags  # calls that found all their targets idle
    uncontended: Floats  # seconds of a call of this class that does not wait
    occupied: Floats  # seconds that a call of this class occupies its targets
    doubt: tuple[float, float]  # `occupied` may be this many times smaller or larger
    classes: Ints  # calls of equal kind and size
    measured: bool  # whether calls that wait for each other show the service times


def size_classes(rows: CallRows) -> Ints:
    """Number calls by kind and size, sizes within a factor of two together."""
    mean = rows.mean_bytes
    size = np.where(mean >= 1, np.log2(np.maximum(mean, 1)).round(), 0)
    return rows.kind * 128 + size.astype(np.int64)


def service_times(rows: CallRows, pieces: TargetPieces, limits: Limits) -> ServiceTimes:
    """Read service times from the order in which calls end at each target."""
    count = len(rows)
    observed, idle = np.full(count, np.inf), np.ones(count, np.bool_)
    work = np.zeros(count)
    single = bool((rows.count[~rows.inferred] == 1).all())
    if single and len(pieces.call):
        order = np.lexsort((rows.end[pieces.call], pieces.target))
        call, target = pieces.call[order], pieces.target[order]
        before = np.concatenate(([-np.inf], rows.end[call][:-1]))
        before[first_of_each(target)] = -np.inf
        alone = rows.end[call] - np.maximum(rows.start[call], before)
        np.minimum.at(observed, call, alone)
        work += np.bincount(call, alone, minlength=count)
        idle[call[before > rows.start[call]]] = False
    observed[~np.isfinite(observed)] = np.nan
    classes = size_classes(rows)
    least, likely, most = limits.service_share
    unknown = (least / likely, most / likely)
    if not single:  # sums of calls: how long each waits is not known
        return ServiceTimes(
            observed, work, idle, rows.seconds, likely * rows.total, unknown, classes, False
        )
    uncontended, occupied = np.empty(count), np.empty(count)
    measured = 0.0  # seconds in calls of classes whose service time waiting calls show
    for name in unique(classes):
        some = classes == name
        seconds = rows.mean_seconds[some]
        each, held, known = _class_times(
            seconds, observed[some], idle[some], pieces.group[some], limits
        )
        uncontended[some], occupied[some] = each * rows.count[some], held * rows.count[some]
        measured += float(rows.seconds[some].sum()) if known else 0.0
    moved = float(rows.seconds[rows.moves_data].sum())
    known = measured > 0 and measured >= 0.5 * moved
    doubt = (1 - limits.service_error, 1 + limits.service_error) if known else unknown
    return ServiceTimes(observed, work, idle, uncontended, occupied, doubt, classes, known)


def _class_times(
    seconds: Floats, observed: Floats, idle: Flags, group: Ints, limits: Limits
) -> tuple[float, float, bool]:
    """Seconds of an uncontended call, seconds that it occupies its targets, and whether known."""
    likely = limits.service_share[1]
    waited = ~idle & np.isfinite(observed)
    served = (
        mean_service(observed[waited], group[waited]) if waited.sum() >= limits.min_served else None
    )
    if idle.sum() >= limits.min_served:
        # A call at an idle target takes no longer than others, or it waited elsewhere.
        alone = float(min(median(seconds[idle]), median(seconds)))
        return alone, likely * alone if served is None else min(alone, served), served is not None
    if served is not None:
        return served / likely, served, True
    alone = quantile(seconds, MINOR)
    return alone, likely * alone, False


def mean_service(observed: Floats, group: Ints) -> float:
    """Seconds that a call occupies its targets: the mean at each set of targets, their median.

    The mean, because targets may serve several calls together: those end at the same time, and
    only all seconds over all calls show what one call costs.
    """
    names, place, counts = np.unique(group, return_inverse=True, return_counts=True)
    means = np.bincount(place, observed) / counts
    return median(np.repeat(means, counts)) if len(names) > 1 else float(means[0])
