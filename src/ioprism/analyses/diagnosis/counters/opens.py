"""Opens, stats and closes in counters: how many the data needs, and what the others cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ioprism.analyses.diagnosis.attribution import Candidate
from ioprism.analyses.diagnosis.counters.counted import Counted, group
from ioprism.analyses.diagnosis.counters.records import Record
from ioprism.analyses.diagnosis.directories import common_directory
from ioprism.analyses.diagnosis.limits import LIBRARY, MANY, MANY_FILES, TINY
from ioprism.analyses.diagnosis.result import CallGroup, Contrast
from ioprism.records import dataclass

HANDFUL = 10  # calls of a rank beyond what its data needs: fewer are no load
MANY_TINY = 10  # tiny files for each rank
NEARLY_ALL = 0.8  # of the seconds: one file is to blame


def find(at: Counted) -> Iterator[Candidate]:
    """Find opens that hold the job up: of the same files by every rank, or more than needed."""
    library = library_files(at)
    yield from _library_start(at, library)
    yield from _metadata(at, library)


def library_files(at: Counted) -> frozenset[int]:
    """Small files that most ranks read and none writes, where there are many."""
    if len({one.file for one in at.records}) == len(at.records) and not at.any_shared:
        return frozenset()
    users: dict[int, int] = {}
    reads: dict[int, int] = {}
    written = set()
    for one in at.records:
        users[one.file] = users.get(one.file, 0) + (at.ranks if one.shared else 1)
        reads[one.file] = reads.get(one.file, 0) + one.bytes_read
        if one.bytes_written:
            written.add(one.file)
    most = max(2, 0.5 * at.ranks)
    wanted = frozenset(
        file
        for file, count in users.items()
        if count >= most and file not in written and reads[file] < LIBRARY * count
    )
    return wanted if sum(reads[file] > 0 for file in wanted) >= MANY_FILES else frozenset()


def _library_start(at: Counted, library: frozenset[int]) -> Iterator[Candidate]:
    """Every rank loads the same small files: one could, and hand them on.

    Counters do not tell nodes: from one rank alone to each node's own, all is possible.
    """
    if not library or at.ranks < MANY:
        return
    some = [one for one in at.records if one.file in library]
    spent = at.busiest(lambda one: one.seconds, some)
    rest = max(0.0, at.held - spent)
    yield at.candidate(
        "library-start", {"directory": _directory(at, _by_file((o, o.seconds) for o in some))},
        (rest + spent / MANY, rest + spent / at.ranks, rest + spent / 2), some,
        files=len(library), ranks=at.ranks,
    )  # fmt: skip


def is_tiny(one: Record) -> bool:
    """Whether one rank's file holds next to nothing."""
    return 0 < one.moved < TINY and not one.shared


@dataclass(frozen=True, slots=True, eq=False)
class _Needed:
    """Which part of the metadata calls of a record its data needs."""

    at: Counted
    library: frozenset[int]
    tiny: bool  # whether files that hold next to nothing need not be there
    asked: Mapping[int, int]  # opens of files through MPI-IO
    empty_once: bool = False  # files without data may be there for others to see: made once

    def is_tiny(self, one: Record) -> bool:
        """Whether the file need not be there at all."""
        return self.tiny and is_tiny(one) and one.file not in self.library

    def is_empty(self, one: Record) -> bool:
        """Whether it is opened, and holds nothing."""
        return not one.moved and one.opens > 0 and one.file not in self.library

    def part(self, one: Record) -> float:
        """The part of its metadata calls.

        One open for each rank, or as the program asked: of files that it opens through MPI-IO,
        it is the library that opens them again.
        """
        if one.file in self.library:
            return 1.0
        if self.empty_once and self.is_empty(one):
            return max(self._opened(one), 1 / one.opens)
        return self._opened(one)

    def _opened(self, one: Record) -> float:
        if self.tiny and self.is_tiny(one):
            return 0.0
        moving = (self.at.ranks if one.shared else 1) if one.moved else 0
        needed = max(moving, self.asked.get(one.file, 0))
        return min(1.0, needed / max(one.opens, 1))

    def stays(self, one: Record) -> float:
        """Seconds that the data needs."""
        data = 0.0 if self.is_tiny(one) else one.busy
        return data + one.meta_seconds * self.part(one)

    def goes(self, one: Record) -> float:
        """Seconds that it does not."""
        return one.seconds - self.stays(one)


def _metadata(at: Counted, library: frozenset[int]) -> Iterator[Candidate]:
    """More opens, stats and closes than the data needs."""
    many_tiny = sum(map(is_tiny, at.records)) >= MANY_TINY * at.ranks
    needed = _Needed(at, library, many_tiny, _asked_opens(at))
    beyond = at.by_rank(lambda one: (one.opens + one.stats) * (1 - needed.part(one)))
    if max(beyond) < HANDFUL:
        return
    least = at.work_left(needed.stays, at.busiest(needed.goes))[1]
    needed = replace(needed, empty_once=True)
    once, _, most = at.work_left(needed.stays, at.busiest(needed.goes))
    likely = (once + least) / 2 if any(map(needed.is_empty, at.records)) else once
    gone = [(one, needed.goes(one)) for one in at.records]
    some = [one for one, seconds in gone if seconds > 0 and one.file not in library]
    number = sum(one.opens + one.stats for one in some)
    weight = sum(seconds + 1e-12 for _, seconds in gone)
    cause = at.candidate(
        "metadata", {"operation": "open", **_where(at, _by_file(gone))}, (likely, least, most),
        some, files=len({one.file for one in some}), calls=float(number),
        calls_per_file=sum((o.opens + o.stats) * (s + 1e-12) for o, s in gone) / weight,
    )  # fmt: skip
    each = sum(one.meta_seconds for one in some) / max(1, number)
    moving = [one for one in at.records if one.busy > 0]
    peers = group(moving) if moving else None
    slow = CallGroup(number, None, each, None)
    yield replace(cause, contrast=Contrast("metadata", slow, peers))


def _asked_opens(at: Counted) -> dict[int, int]:
    """Opens of each file through MPI-IO."""
    asked: dict[int, int] = {}
    if at.mpiio is not None:
        for file, opens in zip(at.mpiio.file, at.mpiio.opens, strict=True):
            asked[file] = asked.get(file, 0) + opens
    return asked


def _by_file(spent: Iterable[tuple[Record, float]]) -> dict[int, float]:
    seconds: dict[int, float] = {}
    for one, own in spent:
        seconds[one.file] = seconds.get(one.file, 0.0) + own
    return seconds


def _where(at: Counted, seconds: dict[int, float]) -> dict[str, object]:
    """The file on which nearly all of these seconds are spent, or the directory of many files."""
    worst = max(seconds, key=lambda file: seconds[file])
    if seconds[worst] >= NEARLY_ALL * sum(seconds.values()) > 0:
        return {"file": at.path(worst)}
    if sum(map(bool, seconds.values())) <= 2 * at.ranks:
        return {}
    directory = _directory(at, seconds)
    return {"directory": directory} if directory not in ("", "/") else {}


def _directory(at: Counted, seconds: dict[int, float]) -> str:
    """The directory in which most of some seconds are spent."""
    spent = sorted((file, own) for file, own in seconds.items() if own)
    return common_directory([at.path(file) for file, _ in spent], [own for _, own in spent])
