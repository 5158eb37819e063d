"""Which files are one job: the rule that all commands and the library share.

Tracers that write a file for each process leave a run as many files. What is in them decides:
who started whom, which program ran, on which host, and when. Names are only a hint, for files
whose content leaves two answers.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from ioprism.errors import TraceError
from ioprism.formats.darshan.log import read_job, read_log
from ioprism.model.trace import Trace

Group = tuple[Path, ...]

# These write a file for each process of a run.
PER_PROCESS = ("dftracer", "strace", "recorder-text", "gekkofs")
# Linux counts to at least 32,768 before it uses a process id again (proc(5), pid_max): within
# a minute, one id is one process.
SAME_PROCESS_SECONDS = 60.0

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
# Hashes, process ids, and what DFTracer adds to say how it was loaded.
_OF_ONE_FILE = re.compile(
    r"(?<![0-9a-z])[0-9a-f]{8,}(?![0-9a-z])|\d+|(?<![a-z])(?:preload|app|fork)(?![a-z])"
)
_ENDINGS = re.compile(r"(?:\.(?:gz|pfw|strace|txt|log|out|json|msgpack))+$")
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)[_T ](\d\d:\d\d:\d\d)")

Process = tuple[str, int]  # host and process id


@dataclass(frozen=True, slots=True)
class ProcessFile:
    """What a file says about the processes in it, as far as it tells which job they are of."""

    path: Path
    format: str
    span: tuple[float, float] | None = None  # first and last call, seconds since 1970
    hosts: frozenset[str] = frozenset()  # names, to recognise them in names of files
    processes: frozenset[Process] = frozenset()
    parents: frozenset[Process] = frozenset()
    children: frozenset[Process] = frozenset()
    program: str | None = None  # its command line, where the file tells

    @property
    def command(self) -> str | None:
        """The command line without its numbers: ranks of one job differ in them."""
        return None if self.program is None else _NUMBER.sub("#", self.program)

    @property
    def name_hint(self) -> tuple[str, str]:
        """Folder and name without what differs between the processes of one run."""
        name = _ENDINGS.sub("", self.path.name.lower())
        folder = str(self.path.parent).lower()
        for host in sorted(self.hosts, key=len, reverse=True):
            if len(host) > 1:
                name, folder = name.replace(host.lower(), ""), folder.replace(host.lower(), "")
        return folder, re.sub(r"[\W_]+", "-", _OF_ONE_FILE.sub("", name)).strip("-")


def describe_trace(trace: Trace) -> ProcessFile:
    """Return what a trace of one file says about its processes."""
    path, job = trace.paths[0], trace.job
    rows = trace.processes.select("host", "pid").drop_nulls("pid").unique().rows()
    start = _named_date(path) if job.start_time is None else job.start_time
    return ProcessFile(
        path,
        trace.format,
        span=None if start is None else (start, start + (job.runtime or 0.0)),
        hosts=frozenset(host for host, _ in rows if host),
        processes=frozenset((host or "", pid) for host, pid in rows if pid > 0),
        parents=tracer_of(path, trace.format),
        children=frozenset(("", pid) for pid in trace.children),
        program=job.executable,
    )


def _named_date(path: Path) -> float | None:
    """When a file was begun, as its name says; no zone is needed to compare names."""
    dated = _DATE.search(path.name)
    try:
        moment = datetime.fromisoformat("T".join(dated.groups())) if dated else None
    except ValueError:
        return None
    return None if moment is None else moment.replace(tzinfo=UTC).timestamp()


def tracer_of(path: Path, format_name: str) -> frozenset[Process]:
    """`strace -ff -o NAME` writes NAME.PID for all processes below it: it is their ancestor."""
    below = format_name == "strace" and path.suffix.removeprefix(".").isdecimal()
    return frozenset({(str(path.with_suffix("")), 0)} if below else ())


def group_files(files: Sequence[ProcessFile]) -> list[list[int]]:
    """Return which files are one job, each by its place.

    Files are one job if a process of one started a process of the other; or if they overlap in
    time and run the same command below the same parent, or the same command under names that
    differ only by process; or if one parent started them at the same time under such names.
    """
    above = list(range(len(files)))
    alike = _alike(files).values()
    overlapping = (some for numbers in alike for some in _overlapping(files, numbers))
    for numbers in chain(_related_groups(files), overlapping):
        first, *others = sorted({_root(above, number) for number in numbers})
        for root in others:
            above[root] = first
    groups: dict[int, list[int]] = defaultdict(list)
    for number in range(len(files)):
        groups[_root(above, number)].append(number)
    return list(groups.values())


def _root(above: list[int], number: int) -> int:
    """Return the number that stands for a set; the way to it becomes shorter."""
    while above[number] != number:
        above[number] = above[above[number]]
        number = above[number]
    return number


def _related_groups(files: Sequence[ProcessFile]) -> Iterator[Sequence[int]]:
    """Files with one process in all of them, or with a process and its parent.

    Files of one process that overlap are one stretch of time, so that not every pair of files
    is looked at: in containers, thousands of files have the same process ids.
    """
    homes: dict[tuple[str, Process], list[int]] = defaultdict(list)
    kin: dict[tuple[str, Process], list[int]] = defaultdict(list)
    for number, file in enumerate(files):
        for process in file.processes:
            homes[file.format, process].append(number)
        for process in file.parents | file.children:
            kin[file.format, process].append(number)
    for key, numbers in homes.items():
        undated = any(files[number].span is None for number in numbers)
        stretches = [numbers] if undated else list(_overlapping(files, numbers))
        yield from stretches
        yield from _near(files, kin.get(key, ()), stretches, undated=undated)


def _near(
    files: Sequence[ProcessFile],
    kin: Sequence[int],
    stretches: Sequence[Sequence[int]],
    *,
    undated: bool,
) -> Iterator[tuple[int, int]]:
    """Pairs of a file and a stretch that lie close together, or have no date."""
    spans = [] if undated else [[files[n].span or (0.0, 0.0) for n in one] for one in stretches]
    starts, ends = [min(one)[0] for one in spans], [max(e for _, e in one) for one in spans]
    together = list(range(len(stretches)))  # up to which one it is joined with those behind it
    for number in kin:
        span = files[number].span
        first, behind = 0, len(stretches)
        if span is not None and not undated:
            first = bisect_left(ends, span[0] - SAME_PROCESS_SECONDS)
            behind = bisect_right(starts, span[1] + SAME_PROCESS_SECONDS)
        if first >= behind:
            continue
        yield number, stretches[first][0]
        place = _root(together, first)
        while place < behind - 1:
            yield stretches[place][0], stretches[place + 1][0]
            together[place] = place + 1
            place = _root(together, place)


def _alike(files: Sequence[ProcessFile]) -> dict[Hashable, list[int]]:
    """Files that are one job if they overlap, by what they have in common."""
    alike: dict[Hashable, list[int]] = defaultdict(list)
    for number, file in enumerate(files):
        alike[file.format, file.command, file.name_hint].append(number)
        for parent in file.parents:
            alike[file.format, parent, "name", file.name_hint].append(number)
            if file.command is not None:
                alike[file.format, parent, "command", file.command].append(number)
    return alike


def _overlapping(files: Sequence[ProcessFile], numbers: Sequence[int]) -> Iterator[list[int]]:
    """Part files of processes that never ran at the same time.

    Those without a date stay together, with the first that have one.
    """
    group = [number for number in numbers if files[number].span is None]
    until = math.inf
    dated = [(span, number) for number in numbers if (span := files[number].span) is not None]
    for (start, end), number in sorted(dated):
        if start > until:
            yield group
            group, until = [], end
        until = end if math.isinf(until) else max(until, end)
        group.append(number)
    yield group


def killed_job(path: Path) -> Hashable | None:
    """Return what the logs that the ranks of a killed job left have in common; None for others.

    Darshan writes them while the job runs, uncompressed.
    """
    try:
        log = read_log(path)
        job = read_job(log, lambda _: None) if log.compression == "none" else None
    except TraceError:
        return None
    if job is None or job.end_time is not None or (job.ranks or 1) < 2:
        return None
    return path.parent, job.user, job.executable, job.ranks, int(job.start_time or 0)
