"""What all readers share: which files may be read, how much of them, and which events are possible.

What streams may be any size: calls are read in pieces, however many there are. What has to be
in memory together (tables of names, inflated blobs, lists that were written in a short form) is
refused before it is allocated if it needs more than `BASE` and `PER_BYTE` times the bytes of the
file. Real inputs stay far below: text and logs compress to a tenth or a twentieth.
`ioprism --reading-budget SIZE`, or the variable IOPRISM_READING_BUDGET, sets another limit.

Traces are untrusted, and a single call of 1e308 seconds or -5 bytes would make every sum of an
answer wrong. Readers pass on what a trace says; what cannot be true is left out here, and counted.

Every command that reads a trace needs this module, so it does not load a table library.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ioprism.errors import BrokenTraceError, NoSuchTraceError, OverBudgetError, UsageError
from ioprism.model.trace import LARGEST_PLAUSIBLE, LATEST, MOST_RANKS, Job, Partition, Trace, Warn
from ioprism.text import read_small_text
from ioprism.units import format_counted, parse_bytes

if TYPE_CHECKING:  # small signals are read without a table library
    import polars as pl

    Batches = Iterator[pl.LazyFrame]
    BatchStep = Callable[[Batches, Warn], Batches]  # partitions travel, so it can be pickled


def check_readable(source: Path) -> None:
    """Refuse what would keep us waiting for ever, or what we are not allowed to read.

    Raises:
        BrokenTraceError: it is neither file nor folder, or closed to us.
    """
    folder = source.is_dir()
    if not folder and source.exists() and not source.is_file():
        raise BrokenTraceError(
            "this is a pipe, socket or device, and it would be read more than once.\n"
            "Hint: write it to a file, and name that.",
            source=source,
        )
    if source.exists() and not os.access(source, os.R_OK | os.X_OK if folder else os.R_OK):
        raise BrokenTraceError(
            "permission denied.\nHint: ask its owner to let you read it.", source=source
        )


def check_file(source: Path) -> None:
    """Refuse anything but a file that can be read again.

    Raises:
        NoSuchTraceError: the path does not exist.
        BrokenTraceError: it is a folder, a pipe or a device, or closed to us.
    """
    if not source.exists():
        raise NoSuchTraceError(source)
    if source.is_dir():
        raise BrokenTraceError(
            "this is a folder, but a file is needed.\nHint: name a file in it.", source=source
        )
    check_readable(source)


def files_below(folder: Path) -> list[Path]:
    """Every file in a folder and its folders, sorted.

    A folder that is closed to us is listed itself, so that opening it gives the reason.
    """
    files: list[Path] = []
    walk = os.walk(folder, onerror=lambda error: files.append(Path(error.filename)))
    for place, _, names in walk:
        files += (path for name in names if (path := Path(place, name)).is_file())
    return sorted(files)


def places_to_cut(
    begin: int, end: int, *, least: int, find: Callable[[int], int | None]
) -> Iterator[int]:
    """Yield where to cut a stretch of bytes, so that no part is shorter than `least`.

    Args:
        begin: of the stretch.
        end: of the stretch.
        least: bytes of a part.
        find: returns the first place from another one on at which a part can begin, if any.
    """
    at = begin + least
    while at < end - least:
        place = find(at)
        if place is None:
            return
        yield place
        at = place + least


VARIABLE = "IOPRISM_READING_BUDGET"
BASE = 256 * 2**20  # bytes that any input may take
PER_BYTE = 200  # bytes of memory for each byte of the file
BLOCK = 512  # bytes, in which stat(2) counts what a file takes on the disk


class Budget:
    """Counts what is held for one input."""

    def __init__(self, source: Path, *, beside: int = 0) -> None:
        """Allow what the sizes of `source` and of its other files (`beside`, bytes) justify."""
        self.source = source
        self.allowed = allowance(source) + PER_BYTE * beside
        self.held = 0

    def take(self, size: int, what: str) -> None:
        """Count what is about to be allocated, in bytes.

        Raises:
            OverBudgetError: that would be more than the input may take.
        """
        self.held += size
        if self.held > self.allowed:
            raise OverBudgetError(self.source, what=what, needed=self.held, allowed=self.allowed)

    def give_back(self, size: int) -> None:
        """Count what was released, in bytes."""
        self.held -= size


@contextmanager
def reading_budget(size: int) -> Iterator[None]:
    """Set the limit, in bytes, here and in processes that are started meanwhile."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(size)
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def allowance(source: Path) -> int:
    """Return how many bytes of memory a file may take.

    Raises:
        UsageError: the variable is set, but not to a size.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return parse_bytes(chosen)
    status = source.stat()
    return BASE + PER_BYTE * min(status.st_size, BLOCK * status.st_blocks)  # holes do not count


def add_step(partition: Partition, step: BatchStep) -> ChangedPartition:
    """Return a partition whose batches pass through a step."""
    kind = ChangedRange if hasattr(partition, "prepare") else ChangedPartition
    return kind(partition, step)


@dataclass(frozen=True, slots=True, eq=False)
class ChangedPartition:
    """A partition whose batches pass through a step."""

    inner: Any
    step: BatchStep

    @property
    def side_by_side(self) -> bool:
        """Whether reading several such partitions in threads gains time."""
        return bool(getattr(self.inner, "side_by_side", False))

    def batches(self, warn: Warn) -> Batches:
        """Yield the changed batches."""
        return self.step(self.inner.batches(warn), warn)


@dataclass(frozen=True, slots=True, eq=False)
class ChangedRange(ChangedPartition):
    """The same for a part of a file for which the parts before it matter."""

    @property
    def continues(self) -> int:
        """How many of the partitions in front of it belong to the same file."""
        return int(self.inner.continues)

    def prepare(self) -> ChangedPreparedRange:
        """Read it as far as that is possible without the parts before it."""
        return ChangedPreparedRange(self.inner.prepare(), self.step)


@dataclass(frozen=True, slots=True, eq=False)
class ChangedPreparedRange:
    """A part that was read without the parts before it."""

    inner: Any
    step: BatchStep

    @property
    def moves(self) -> Any:  # noqa: ANN401 - only the format knows
        """What later parts have to know of this one."""
        return self.inner.moves

    def continue_after(self, earlier: Sequence[Any], warn: Warn) -> Batches:
        """Yield the changed batches, given the moves of the parts before this one."""
        return self.step(self.inner.continue_after(earlier, warn), warn)


SIZES = {  # columns, and the warning about impossible values
    "bytes": "with an impossible size, which is left out",
    "offset": "with an impossible offset, which is left out",
}


def leave_out_impossible(batches: Batches, warn: Warn, *, source: str) -> Batches:
    """Pass on what is plausible; warn about what was left out of a trace."""
    import polars as pl

    start, end = pl.col("start"), pl.col("end")
    # NaN compares as larger than every number.
    timed = (start.abs() < LATEST) & (end.abs() < LATEST) & (end >= start)
    timed = timed.fill_null(False)
    possible = {name: pl.col(name).is_between(0, LARGEST_PLAUSIBLE) for name in SIZES}
    wrong = {name: timed & ~sound.fill_null(True) for name, sound in possible.items()}
    sound_sizes = {name: pl.when(sound).then(name) for name, sound in possible.items()}
    impossible = Counter[str]()
    for batch in batches:
        counted = batch.select(times=~timed, **wrong).sum().collect().row(0, named=True)
        impossible.update({name: number or 0 for name, number in counted.items()})
        yield batch.filter(timed).with_columns(**sound_sizes) if any(counted.values()) else batch
    for name, what in (("times", "with impossible times left out"), *SIZES.items()):
        if impossible[name]:
            warn(f"{source}: {format_counted(impossible[name], 'call')} {what}")


def _plausible_job(job: Job, warn: Warn) -> Job:
    for name in ("runtime", "start_time", "end_time"):
        value = getattr(job, name)
        if value is not None and not 0 <= value < LATEST:
            what = name.replace("_", " ")
            warn(f"the job's {what} of {value:g} s is impossible; it is left out")
            changed: dict[str, Any] = {name: None}
            job = replace(job, **changed)
    if job.ranks is not None and not 0 <= job.ranks <= MOST_RANKS:
        warn("the job's number of ranks is impossible; it is left out")
        job = replace(job, ranks=None)
    return job


def check_plausibility(trace: Trace) -> Trace:
    """Return a trace without events and facts about the job that cannot be true."""
    name = trace.paths[0].name if trace.paths else trace.format
    check = partial(leave_out_impossible, source=name)
    return trace.derive(
        job=_plausible_job(trace.job, trace.completeness.warn),
        partitions=tuple(
            # Some readers have judged every event themselves.
            one if getattr(one, "judged", False) else add_step(one, check)
            for one in trace.partitions
        ),
    )


Item = TypeVar("Item")
Result = TypeVar("Result")
Workers = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

THREADS = max(1, min(8, os.cpu_count() or 1))


@dataclass(frozen=True, slots=True)
class Reading:
    """What the user knows about the clocks, and who looks through the files."""

    clock_offsets: Mapping[str, float] | None = None  # seconds ahead, by host, rank or file
    workers: Workers | None = None  # None: threads of this process
    indexes_beside_files: bool = False  # where indexes of compressed files are kept

    def each(self, look: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return what `look` returns for each item, in their order."""
        if self.workers is not None:
            return self.workers(look, items)
        if THREADS == 1 or len(items) == 1:
            return list(map(look, items))
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(THREADS, thread_name_prefix="survey") as pool:
            return list(pool.map(look, items))


def read_clock_offsets(path: Path) -> dict[str, float]:
    """Read lines of a host, a rank (`rank3`) or a trace file, and the seconds its clock is ahead.

    Raises:
        UsageError: the file cannot be read, or has a line of another kind.
    """
    try:
        lines = read_small_text(path).splitlines()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path}: the clock offsets cannot be read ({error}).\n"
            "Hint: give a text file with lines such as `node2 60.0`."
        ) from error
    offsets = {}
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            host, ahead = words
            offsets[host] = float(ahead)
            if not math.isfinite(offsets[host]):
                raise ValueError
        except ValueError:
            raise UsageError(
                f"{path}, line {number}: this is not a host and a number of seconds: {line!r}.\n"
                "Hint: write lines such as `node2 60.0`."
            ) from None
    return offsets
