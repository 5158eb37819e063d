"""Everything that checks look at, derived once from a per-call trace or from counters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ioprism.diagnosis.heat import HeatPhases
from ioprism.diagnosis.late_ranks import LateRanks
from ioprism.diagnosis.limits import MINOR, NEARLY_ALL, Limits
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
    own_time,
    repeat_test,
    single_calls,
    unique,
)
from ioprism.diagnosis.targets import (
    Files,
    ServiceTimes,
    TargetPieces,
    service_times,
    target_pieces,
)
from ioprism.model.arrays import unite
from ioprism.model.trace import LARGEST_IN_BIN, Mount, file_system_of
from ioprism.model.verdict import AchievedRate

if TYPE_CHECKING:
    from ioprism.diagnosis.training import Training


@dataclass(frozen=True, slots=True)
class LibraryFile:
    """One file that the program reads or writes through MPI-IO."""

    file: int
    asked: tuple[int, int]  # bytes read, written by the program
    calls: int
    collective: bool
    ranks: int  # that call MPI-IO on it
    seconds: float  # of the slowest rank in MPI-IO calls on it


@dataclass(frozen=True, slots=True, eq=False)
class LibraryCalls:
    """Calls of MPI-IO and the libraries above it, by rank and start."""

    start: Floats
    end: Floats
    rank: Ints
    file: Ints
    bytes: Ints  # negative for reads
    collective: Flags
    data: Flags  # reads and writes
    mpiio: Flags

    def __len__(self) -> int:
        return len(self.start)

    def rows(self) -> CallRows:
        """Return them as calls without bytes."""
        nothing = np.zeros(len(self), np.int64)
        times = self.start, self.end, self.rank
        return single_calls(*times, self.file, nothing + METADATA, nothing + UNKNOWN, nothing)


@dataclass(frozen=True, eq=False)
class Observed:
    """A job's I/O as checks see it."""

    runtime: float  # seconds
    ranks: int  # of the job
    rank_numbers: Ints  # the log's number of each rank that does I/O
    host_of: Ints  # index into `hosts`, by rank that does I/O; -1 unknown
    hosts: tuple[str, ...]
    rows: CallRows
    phases: IoPhases
    phase: Ints  # of each row
    stall: Floats  # seconds that I/O stalls the job, by phase
    library: Floats  # of them, seconds inside MPI-IO and libraries while nothing reaches storage
    files: Files
    limits: Limits
    basis: str  # phases, ranks, alone, counters, heatmap, exposed: how stall time was measured
    detail: frozenset[str]  # calls, offsets, hosts, layout, times, application, heatmap
    above: LibraryCalls | None = None
    library_files: tuple[LibraryFile, ...] = ()
    syncs: Floats = field(default_factory=lambda: np.zeros(0))  # sync calls of each rank
    opens: Floats = field(default_factory=lambda: np.zeros(0))  # opens of each rank
    applications: tuple[str, ...] = ()  # by rank that does I/O; empty where there is one program
    program: str = ""  # command line
    share: float = 1.0  # of the job's I/O time that the rows stand for
    system_targets: int = 0  # storage targets that the file system has; 0 unknown
    synchronised: bool = True  # whether ranks wait for each other between phases
    late: LateRanks | None = None  # ranks that delay the others by computing
    heat: HeatPhases | None = None
    training: Training | None = None  # where the application records its stages
    extent: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # up to the last byte
    backward: Floats = field(default_factory=lambda: np.zeros(0))  # counted requests that go back
    jumps: Floats = field(default_factory=lambda: np.zeros(0))  # counted ones that do not continue
    streams: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # files only used by stdio

    @property
    def io_ranks(self) -> int:
        """How many ranks have rows of their own; at least 1."""
        return max(1, len(self.rank_numbers))

    @property
    def per_call(self) -> bool:
        """Whether there is a row per call."""
        return "calls" in self.detail

    @cached_property
    def own(self) -> Floats:
        """Seconds by which each row prolongs its rank's I/O."""
        if not self.per_call:
            return self.rows.seconds
        return own_time(self.rows)

    @cached_property
    def pieces(self) -> TargetPieces:
        """Which targets the rows touch."""
        return target_pieces(self.rows, self.files)

    @cached_property
    def service(self) -> ServiceTimes:
        """How long rows occupy their targets."""
        times = service_times(self.rows, self.pieces, self.limits)
        if self.per_call or not len(self.pieces.call):
            return times
        return replace(times, occupied=times.occupied * self._used_share(times.occupied))

    def _used_share(self, occupied: Floats) -> Floats:
        """The part of each row's service that fits into the time in which its targets are used.

        Ranks of a counters-only log wait for each other at a target, so their seconds add up to
        more than the target was busy.
        """
        pieces, rows = self.pieces, self.rows
        key = self.phase[pieces.call] * len(pieces.targets) + pieces.target
        size = len(self.phases) * len(pieces.targets)
        first, last = np.full(size, np.inf), np.zeros(size)
        end = np.maximum(rows.end, rows.start + rows.seconds)  # counters do not time syncs
        np.minimum.at(first, key, rows.start[pieces.call])
        np.maximum.at(last, key, end[pieces.call])
        total = np.maximum(self.by_target(occupied).ravel(), 1e-12)
        share = np.where((first > 0) & (last > first), np.minimum(1.0, (last - first) / total), 1.0)
        weight = np.bincount(pieces.call, pieces.weight, minlength=len(rows))
        fits = np.bincount(pieces.call, pieces.weight * share[key], minlength=len(rows))
        return np.divide(fits, weight, out=np.ones(len(rows)), where=weight > 0)

    @cached_property
    def waiting(self) -> Floats:
        """Seconds of each phase outside the busiest rank's calls."""
        return np.maximum(0.0, self.stall - self.busiest_rank(self.own))

    @property
    def nodes(self) -> int:
        """How many nodes the ranks run on; 1 where the log has no host names."""
        return max(1, len(unique(self.host_of[self.host_of >= 0])))

    @property
    def targets_known(self) -> int:
        """How many targets the file system has at least; Lustre numbers them from 0."""
        names = self.pieces.targets
        if self.system_targets:
            return max(self.system_targets, len(names))
        numbers = [name for name in names if isinstance(name, int)]
        return max(len(names), max(numbers, default=-1) + 1)

    def by_rank(self, values: Floats, where: Flags | None = None) -> Floats:
        """Sum a value of rows by phase and rank; records of all ranks are left out."""
        some = self.rows.rank >= 0 if where is None else where & (self.rows.rank >= 0)
        place = self.phase[some] * self.io_ranks + self.rows.rank[some]
        total = np.bincount(place, values[some], minlength=len(self.phases) * self.io_ranks)
        return np.asarray(total, np.float64).reshape(len(self.phases), self.io_ranks)

    def busiest_rank(self, values: Floats, where: Flags | None = None) -> Floats:
        """The largest sum of any one rank in each phase, with what all ranks share."""
        own = np.asarray(self.by_rank(values, where).max(axis=1), np.float64)
        return own + self.by_phase(values, self.shared_records(where))

    def shared_records(self, where: Flags | None = None) -> Flags:
        """Rows that sum up all ranks."""
        shared = self.rows.rank == ALL_RANKS
        return shared if where is None else np.asarray(shared & where)

    def by_phase(self, values: Floats, where: Flags) -> Floats:
        """Sum a value of rows by phase."""
        total = np.bincount(self.phase[where], values[where], minlength=len(self.phases))
        return np.asarray(total, np.float64)

    def seconds_alone(self, where: Flags) -> Floats:
        """Seconds of each phase in which only these rows are under way."""
        return self._busy(np.ones(len(self.rows), np.bool_)) - self._busy(~where)

    def _busy(self, where: Flags) -> Floats:
        begin, end = unite(self.rows.start[where], self.rows.end[where])
        total = np.bincount(self.phases.find(begin), end - begin, minlength=len(self.phases))
        return np.asarray(total, np.float64)

    def by_target(self, values: Floats) -> Floats:
        """Sum a value of rows by phase and target."""
        pieces = self.pieces
        count = len(pieces.targets)
        key = self.phase[pieces.call] * count + pieces.target
        total = np.bincount(
            key, values[pieces.call] * pieces.weight, minlength=len(self.phases) * count
        )
        return np.asarray(total, np.float64).reshape(len(self.phases), count)

    def busiest_target(self, values: Floats) -> Floats:
        """The largest sum of any one target in each phase; 0 where no target is known."""
        if not len(self.pieces.targets):
            return np.zeros(len(self.phases))
        return np.asarray(self.by_target(values).max(axis=1), np.float64)

    def even_target(self, values: Floats) -> Floats:
        """What each target has in each phase if all of it is spread evenly."""
        if not len(self.pieces.targets):
            return np.zeros(len(self.phases))
        return np.asarray(self.by_target(values).mean(axis=1), np.float64)

    def waiting_after(self, seconds: Floats) -> Floats:
        """Seconds of each phase outside the busiest rank's calls, when rows take these seconds.

        The busiest rank waits for other ranks' calls, which change as its own do, or inside a
        library.
        """
        inside = np.minimum(self.waiting, self.library)
        before = self.by_rank(self.own).sum(axis=1) + self.by_phase(self.own, self.shared_records())
        after = self.by_rank(seconds).sum(axis=1) + self.by_phase(seconds, self.shared_records())
        part = after / np.maximum(before, 1e-12)
        return np.asarray(inside + (self.waiting - inside) * np.minimum(1.0, part), np.float64)

    @property
    def file_count(self) -> int:
        """Up to which row files are used; at least 1."""
        return max(1, int(self.rows.file.max(initial=-1)) + 1)

    def by_file(self, values: Floats | Ints, where: Flags) -> Floats:
        """Sum a value of rows by file; those without a known file are left out."""
        some = where & (self.rows.file >= 0)
        total = np.bincount(self.rows.file[some], values[some], minlength=self.file_count)
        return np.asarray(total, np.float64)

    def ranks_of_files(self, where: Flags) -> Floats:
        """How many ranks have such rows on each file."""
        rows, known = self.rows, where & (self.rows.file >= 0)
        own = known & (rows.rank >= 0)
        pairs = unique(rows.file[own] * self.io_ranks + rows.rank[own])
        ranks = np.bincount(pairs // self.io_ranks, minlength=self.file_count).astype(np.float64)
        ranks[rows.file[known & (rows.rank == ALL_RANKS)]] = self.ranks
        return ranks

    def of_sessions(self, values: Floats, otherwise: float) -> Floats:
        """A value by phase and rank, for each row; records of all ranks have another one."""
        rank = self.rows.rank
        return np.where(rank >= 0, values[self.phase, np.maximum(rank, 0)], otherwise)

    @cached_property
    def rank_file(self) -> Ints:
        """A number for the rank and file of each row, below the number of rows."""
        files = int(self.rows.file.max(initial=0)) + 2
        pairs = (self.rows.rank + 1) * files + self.rows.file + 1
        numbers: Ints = np.unique(pairs, return_inverse=True)[1]
        return numbers

    @cached_property
    def users(self) -> Floats:
        """How many ranks read or write each file."""
        return self.ranks_of_files(self.rows.moves_data & (self.rows.bytes > 0))

    @cached_property
    def shared_file(self) -> Flags:
        """Rows on files that several ranks read or write."""
        return (self.rows.file >= 0) & (self.users[np.maximum(self.rows.file, 0)] > 1)

    @cached_property
    def of_programs(self) -> Flags:
        """Rows on files of programs and of the system that the job does not write."""
        rows = self.rows
        named = self.files.of_programs(unique(rows.file[rows.file >= 0]))
        named -= set(rows.file[(rows.kind == WRITE) & (rows.bytes > 0)].tolist())
        return np.isin(rows.file, np.fromiter(named, np.int64, len(named)))

    @cached_property
    def library_rows(self) -> Flags:
        """Rows that a library makes of the program's calls, rather than passing them on.

        An independent MPI-IO call that reaches storage with the same bytes is the program's, in
        one piece or in the pieces of its layout: the library neither joins nor adds any.
        """
        rows, above = self.rows, self.above
        below = np.isin(rows.file, [entry.file for entry in self.library_files])
        if above is None:
            for entry in self.library_files:
                mine = below & (rows.file == entry.file) & rows.moves_data
                asked = sum(entry.asked)
                same = abs(int(rows.bytes[mine].sum()) - asked) <= MINOR * asked
                passed = abs(rows.count[mine].sum() - entry.calls) <= MINOR * entry.calls
                if passed or (same and not entry.collective):
                    below[mine] = False
            return below
        chosen = above.mpiio & ~above.collective
        if not below.any() or not chosen.any():
            return below
        start, end, rank, moved = (
            x[chosen] for x in (above.start, above.end, above.rank, above.bytes)
        )
        span = 1.0 + max(float(rows.end.max()), float(end.max()))
        place = np.flatnonzero(below)
        mine = rows.rank[place] * span + rows.start[place]
        around = np.maximum(0, np.searchsorted(rank * span + start, mine, side="right") - 1)
        inside = (rank[around] == rows.rank[place]) & (end[around] >= rows.end[place])
        pieces = np.bincount(around[inside], rows.bytes[place[inside]], minlength=len(moved))
        below[place[inside & (np.abs(moved[around]) == pieces[around])]] = False
        return below

    def share_of_stall(self, where: Flags) -> float:
        """Stall seconds that fall to some rows, by their part of all ranks' I/O time."""
        total = float(self.own.sum())
        return float(self.stall.sum()) * float(self.own[where].sum()) / max(total, 1e-12)

    @property
    def least_saving(self) -> float:
        """Seconds that are worth a change: a share of the run, or many core-hours."""
        limits = self.limits
        hours = limits.min_core_hours * 3600 / max(1, self.ranks)
        return min(limits.min_share * self.runtime, hours) * self.share

    def repeat_probability(self, where: Flags) -> float:
        """How likely the busiest rank's calls among these cost next to nothing when made again.

        For causes whose calls have no peers in the trace.
        """
        least = self.least_saving
        rows = self.rows
        shared = where & (rows.rank == ALL_RANKS)
        own = where & (rows.rank >= 0)
        spent = np.bincount(rows.rank[own], self.own[own], minlength=self.io_ranks)
        chosen = (own & (rows.rank == int(np.argmax(spent)))) | shared
        test = repeat_test(
            self.own[chosen], rows.count[chosen], least, trimmed=self.limits.trimmed_calls
        )
        ranks = np.asarray(spent[spent > 0], np.float64)
        if len(ranks) > 1:  # all ranks do the same: each of them shows what the calls cost
            every = repeat_test(
                ranks, np.ones(len(ranks)), least * len(ranks), trimmed=self.limits.trimmed_calls
            )
            test = min(test, every)
        return min(1.0, self.limits.checks_without_peers * test)

    def main_file(self, where: Flags) -> int:
        """The file on which these rows spend most time; UNKNOWN where no file is known."""
        some = where & (self.rows.file >= 0)
        if not some.any():
            return UNKNOWN
        return int(self.by_file(self.own + 1e-12, some).argmax())

    def file_culprit(self, where: Flags) -> dict[str, object]:
        """The name of that file, where it is known."""
        file = self.main_file(where)
        return {} if file == UNKNOWN else {"file": self.files.path(file)}

    def directory(self, where: Flags) -> str:
        """The directory in which most seconds of some rows are spent."""
        spent = self.by_file(self.own + 1e-12, where)
        files = np.flatnonzero(spent)
        return self.files.common_directory(files.tolist(), spent[files].tolist())

    def few_ranks(self, where: Flags) -> Ints:
        """The ranks that make nearly all of these calls; none where they are many."""
        own = where & (self.rows.rank >= 0)
        made = np.bincount(self.rows.rank[own], self.rows.count[own], minlength=self.io_ranks)
        if (where & (self.rows.rank == ALL_RANKS)).any() or not made.sum():
            return np.empty(0, np.int64)
        most = np.argsort(-made, kind="stable")
        reach = int(np.searchsorted(made[most].cumsum(), NEARLY_ALL * made.sum()))
        makers = most[: 1 + reach]
        return np.sort(makers if len(makers) <= self.limits.few * self.io_ranks else makers[:0])

    def numbers(self, ranks: Ints) -> list[int]:
        """The log's numbers of some ranks."""
        return [int(self.rank_numbers[rank]) for rank in ranks]

    def task(self, where: Flags) -> dict[str, object]:
        """The application of a workflow that spends most time in these rows, and when."""
        names = self.applications
        if len(set(names)) < 2 or not where.any():
            return {}
        spent = np.bincount(self.rows.rank[where], self.own[where], minlength=self.io_ranks)
        totals: dict[str, float] = {}
        for name, seconds in zip(names, spent, strict=True):
            totals[name] = totals.get(name, 0.0) + float(seconds)
        task = max(totals, key=lambda name: totals[name])
        theirs = where & np.array([name == task for name in names])[self.rows.rank]
        return {
            "application": task,
            "from": float(self.rows.start[theirs].min()),
            "to": float(self.rows.end[theirs].max()),
        }

    def bytes_moved(self, kind: int) -> int:
        """Bytes read (READ) or written (WRITE)."""
        return int(self.rows.bytes[self.rows.kind == kind].sum())


DIRECTION = {READ: "read", WRITE: "write", SYNC: "sync"}


MAX_WAYS = 20  # of a job: those that move most


def achieved_rates(observed: Observed, mounts: Sequence[Mount]) -> list[AchievedRate]:
    """Return one entry for each way in which the job moves data, most bytes first."""
    rows = observed.rows
    data = rows.moves_data & (rows.bytes > 0) & (rows.file >= 0) & ~observed.of_programs
    if not data.any():  # signals name no files
        return []
    systems, system = _file_systems(observed, mounts)
    way = (
        (np.searchsorted(np.array(LARGEST_IN_BIN), rows.mean_bytes) * 2 + observed.shared_file)
        * len(systems)
        + system[np.maximum(rows.file, 0)]
    ) * 2 + (rows.kind == WRITE)
    # Time that a buffered write leaves to a sync belongs to the writes of that file.
    synced = (rows.kind == SYNC) & (rows.file >= 0) & (rows.seconds > 0)
    way[synced] = _way_of_writes(observed, data, way)[rows.file[synced]]
    entries = [
        _entry(observed, data & (way == one), synced & (way == one), systems, system)
        for one in unique(way[data])
    ]
    return sorted(entries, key=lambda entry: -entry.bytes)[:MAX_WAYS]


def size_class(size: float) -> int:
    """Return the place of a size among Darshan's classes."""
    return bisect_left(LARGEST_IN_BIN, size)


def _file_systems(observed: Observed, mounts: Sequence[Mount]) -> tuple[list[str], Ints]:
    """Names of the file systems, and the place among them of each file."""
    rows = observed.rows
    place = np.zeros(int(rows.file.max(initial=-1)) + 1, np.int64)
    names: dict[str, int] = {}
    for file in unique(rows.file[rows.file >= 0]).tolist():
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
    files = unique(rows.file[data]).tolist()
    targets = {name for file in files for name in observed.files.targets(file)}
    return AchievedRate(
        operation=DIRECTION[kind],
        size_class=size_class(float(rows.mean_bytes[first])),
        shared=shared,
        file_system=systems[int(system[rows.file[first]])],
        ranks=observed.ranks if every else len(unique(rows.rank[data])),
        targets=len(targets) or None,
        requests=round(requests / observed.share),
        bytes=round(moved / observed.share),
        seconds=float(observed.busiest_rank(observed.own, data | syncs).sum()) / observed.share,
        synced=bool(syncs.any()),
    )
