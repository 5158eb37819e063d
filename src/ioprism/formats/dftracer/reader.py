"""Turn DFTracer files, one or a whole workflow of them, into a trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.formats.clocks import align_clocks
from ioprism.formats.dftracer.calls import Aggregates, FileIndex
from ioprism.formats.dftracer.checkpoints import OWN, SQLITE, index_place, make_index
from ioprism.formats.dftracer.events import (
    CallSource,
    DftracerPartition,
    DftracerRange,
    Relay,
)
from ioprism.formats.dftracer.lines import Range, Trouble, chunks, compact, lacks_index, ranges
from ioprism.formats.dftracer.survey import Segment, Survey, join_surveys, survey
from ioprism.formats.job_groups import ProcessFile
from ioprism.formats.reading import Reading, check_readable, files_below
from ioprism.model.schema import PROCESSES, file_table
from ioprism.model.trace import Completeness, Job, LazyTables, Trace
from ioprism.units import format_counted

HEAD = 4096  # bytes that show what a file is
MOST_FILES = 1_000_000
MOST_NAMED = 4  # programs of a workflow
INIT = 1  # takes in processes whose parent has ended, or is outside their container
PARTITION = 32 * 2**20  # bytes of text that are worth a separate partition
_FIRST = re.compile(
    rb'\s*(?:\[\s*)?\{(?:"id":"?\d+"?,)?"name":"[^"]*","cat":"[^"]*",(?:"type":\d+,)?'
    rb'(?:"ts":"?\d+"?,"ph":"?\w"?,)?"pid":"?\d+"?,"tid":"?\d+"?,'
)
_NO_TRACE = (".md", ".txt", ".json", ".yaml", ".yml", ".log", ".out", ".err", ".sh", ".py",
             ".sst", OWN, *SQLITE)  # fmt: skip
_SUFFIXES = (".pfw", ".pfw.gz")


class DftracerReader:
    """Reads `.pfw` and `.pfw.gz`, one file or a folder of them, of DFTracer 0.x to 2.x."""

    name = "dftracer"
    title = "DFTracer traces (.pfw, .pfw.gz), one file or a folder"
    tells = frozenset(
        {"calls", "metadata", "offsets", "ranks", "threads", "hosts", "files", "layers"}
    )

    def __init__(self, reading: Reading | None = None) -> None:
        self.reading = reading or Reading()

    def recognises(self, source: Path) -> bool:
        """Whether the content is lines as DFTracer writes them. Never raises."""
        try:
            return _is_folder(source) if source.is_dir() else _is_trace(source)
        except (OSError, EOFError, ValueError):
            return False

    def read(self, source: Path) -> Trace:
        """Survey all files now; calls are read when they are asked for."""
        return self.join([source], self.survey(self.files_of(source)))

    def files_of(self, source: Path) -> list[Path]:
        """Return the files of a folder, or the file itself."""
        paths = [source]
        if source.is_dir():  # a folder that is closed to us is listed itself
            paths = [p for p in files_below(source) if p.name.endswith(_SUFFIXES) or p.is_dir()]
        if not paths:
            raise BrokenTraceError(
                "there are no .pfw files in this folder.\nHint: name the folder that holds them.",
                source=source,
            )
        return paths

    def survey(self, paths: Sequence[Path]) -> list[Survey]:
        """Look through files, to find out which are one job and to join them."""
        for path in paths:
            check_readable(path)
        reading = self.reading
        whole = [path.absolute() for path in paths if lacks_index(path)] if reading.workers else []
        if whole:
            beside = reading.indexes_beside_files
            reading.each(_index, [(path, index_place(path, beside=beside)) for path in whole])
        parts = [part for path in paths for part in ranges(path)]
        by_file: dict[Path, list[Survey]] = {path: [] for path in paths}
        for part, part_survey in zip(parts, reading.each(survey, parts), strict=True):
            by_file[part.path].append(part_survey)
        return [_join_parts(surveys) for surveys in by_file.values()]

    def describe(self, surveys: Sequence[Survey]) -> list[ProcessFile]:
        """Return what the files say about their processes."""
        content = _DftracerContent((), list(surveys))
        return [content.process_file(one) for one in surveys]

    def join(self, sources: Sequence[Path], surveys: Sequence[Survey]) -> Trace:
        """Return one trace of files that are one job; `sources` are the paths it is known by."""
        content = _DftracerContent(tuple(sources), list(surveys))
        return align_clocks(content.trace(), content.spans, self.reading.clock_offsets)


def _is_trace(path: Path) -> bool:
    for chunk in chunks(path, Trouble()):
        return isinstance(chunk, bytes) and _FIRST.match(compact(chunk[:HEAD])) is not None
    return False


def _is_folder(folder: Path) -> bool:
    """Whether there are DFTracer files in a folder and no files that may be other traces."""
    last_trace = None
    for number, path in enumerate(folder.rglob("*")):
        if number > MOST_FILES:
            return False
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if hidden or not path.is_file():  # dftracer-utils keeps its index in such a folder
            continue
        if path.name.endswith(_SUFFIXES):
            last_trace = path
        elif path.suffix and path.suffix not in _NO_TRACE:
            return False
    return last_trace is not None and _is_trace(last_trace)


def _index(given: tuple[Path, Path]) -> bool:
    return make_index(*given)


def _join_parts(parts: list[Survey]) -> Survey:
    """Join the parts of a file; an index that leads astray is left aside."""
    path = parts[0].path
    if any(s.stretch for part in parts for s in part.segments) and any(
        part.trouble.cut for part in parts
    ):
        return survey(Range(path, 0, path.stat().st_size))
    return join_surveys(parts)


@dataclass(frozen=True)
class _DftracerContent:
    """All files, and what they need to know of each other."""

    sources: tuple[Path, ...]
    surveys: list[Survey]

    @cached_property
    def completeness(self) -> Completeness:
        noted, preloaded = Completeness(), self._continued_files()
        for one in self.surveys:
            name = one.path.name
            earlier = preloaded.get(name)
            missing = one.missing_lines - ((earlier.numbering.highest or 0) if earlier else 0)
            if one.trouble.cut:
                noted.warn(f"{name}: the compressed data are cut short or damaged")
            if one.trouble.endless:
                noted.warn(f"{name}: a line is implausibly long; the rest is left out")
            if missing > 0:
                noted.warn(f"{name}: {format_counted(missing, 'line')} missing by number")
            if one.begun and not one.ended and one not in preloaded.values():
                noted.warn(
                    f"{name}: the end mark is missing: the program was killed, or became another "
                    "one (exec), or the rest is lost"
                )
        self._warn_of_collisions(noted)
        return noted

    def _continued_files(self) -> dict[str, Survey]:
        """Return files that another one continues, by its name: `initialize_log` opens it."""
        names = {one.path.name for one in self.surveys}
        later = ((one.path.name.replace("-preload.pfw", "-app.pfw"), one) for one in self.surveys)
        return {name: one for name, one in later if name in names and name != one.path.name}

    def _warn_of_collisions(self, noted: Completeness) -> None:
        """One message for all files: a job has thousands."""
        ambiguous = [one for one in self.surveys if one.collisions]
        total = sum(one.collisions for one in ambiguous)
        if total:
            files = ambiguous[0].path.name if len(ambiguous) == 1 else f"{len(ambiguous)} files"
            noted.warn(f"{files}: {format_counted(total, 'name')} with another name's hash")

    def trace(self) -> Trace:
        with_calls = [one for one in self.surveys if one.has_calls and one.processes]
        counted = [one for one in self.surveys if one.has_counters and not one.has_calls]
        if not with_calls and not counted:
            raise BrokenTraceError(
                "no call could be read from it.\nHint: check that the trace was copied completely.",
                source=self.sources[0],
            )
        return Trace(
            format=DftracerReader.name,
            paths=self.sources,
            job=self._job(),
            partitions=tuple(self._partitions(with_calls)),
            counters=LazyTables(self._counters(counted, beside_calls=bool(with_calls))),
            load_files=lambda: self.files,
            load_processes=lambda: self.processes,
            completeness=self.completeness,
        )

    def _counters(
        self, counted: Sequence[Survey], *, beside_calls: bool
    ) -> dict[str, Callable[[], pl.DataFrame]]:
        """The sums of aggregated files; beside files with calls they would hide the calls."""
        if not counted:
            return {}
        if beside_calls:
            names = ", ".join(one.path.name for one in counted[:3])
            self.completeness.warn(
                f"{format_counted(len(counted), 'file')} with sums instead of calls "
                f"left out ({names})"
            )
            return {}
        first = counted[0]
        ranks = {pid: rank for (_, pid), rank in self.rank_of.items()}
        paths = [one.path for one in counted]
        origin = self.origin // 1_000_000_000
        return Aggregates(paths, ranks, origin, first.per_second, self.completeness.warn).tables()

    @cached_property
    def origin(self) -> int:
        """When the first file began, in nanoseconds since 1970."""
        return min((one.times[0] for one in self.surveys if one.times), default=0)

    @cached_property
    def spans(self) -> dict[str, tuple[float, float]]:
        """First and last time on every host, in seconds since the job's start."""
        spans: dict[str, tuple[float, float]] = {}
        for one in self.surveys:
            if one.times is None or not one.processes:
                continue
            host = self._host(one, next(iter(one.processes))[0]) or ""
            begin, end = ((moment - self.origin) / 1e9 for moment in one.times)
            before = spans.get(host, (begin, end))
            spans[host] = min(before[0], begin), max(before[1], end)
        return spans

    def _job(self) -> Job:
        end = max((one.times[1] for one in self.surveys if one.times), default=0)
        commands = list(dict.fromkeys(filter(None, map(self._command, self.surveys))))
        others = f" and {len(commands) - MOST_NAMED} more" if len(commands) > MOST_NAMED else ""
        return Job(
            ranks=len(set(self.rank_of.values())) or None,
            start_time=self.origin / 1e9,
            end_time=end / 1e9,
            runtime=(end - self.origin) / 1e9,
            executable=" + ".join(commands[:MOST_NAMED]) + others or None,
        )

    def process_file(self, one: Survey) -> ProcessFile:
        """What a file says about its processes."""
        return ProcessFile(
            one.path,
            DftracerReader.name,
            span=one.times and (one.times[0] / 1e9, one.times[1] / 1e9),
            hosts=frozenset((*one.hosts.values(), *one.named_host_of.values())),
            processes=frozenset((self._host(one, pid) or "", pid) for pid, _ in one.processes),
            parents=frozenset(
                (self._host(one, pid) or "", parent)
                for pid, parent in one.parent_of.items()
                if parent > INIT
            ),
            program=self._command(one),
        )

    def _command(self, one: Survey) -> str | None:
        known = {**self.strings, **one.strings}
        names = [known.get(code) for code in one.command_of.values()]
        return next((name.replace(";", " ") for name in names if name), None)

    @cached_property
    def strings(self) -> dict[str, str]:
        return {key: text for one in self.surveys for key, text in one.strings.items()}

    @cached_property
    def hosts(self) -> dict[str, str]:
        return {key: text for one in self.surveys for key, text in one.hosts.items()}

    def _host(self, one: Survey, pid: int) -> str | None:
        host = one.host_of.get(pid)
        return one.named_host_of.get(pid) if host is None else self.hosts.get(host)

    @cached_property
    def rows(self) -> dict[tuple[str, int, int], int]:
        """Row of the process table by host, pid and tid."""
        seen = {
            (self._host(one, pid) or "", pid, tid)
            for one in self.surveys
            for pid, tid in one.processes
        }
        return {key: row for row, key in enumerate(sorted(seen))}

    @cached_property
    def rank_of(self) -> dict[tuple[str, int], int]:
        """A process's index by host and pid."""
        processes = dict.fromkeys((host, pid) for host, pid, _ in self.rows)
        return {key: rank for rank, key in enumerate(processes)}

    @cached_property
    def processes(self) -> pl.DataFrame:
        programs = self._programs()
        keys = list(self.rows)
        table = pl.DataFrame(
            {
                "process": range(len(keys)),
                "rank": [self.rank_of[host, pid] for host, pid, _ in keys],
                "application": [programs.get((host, pid)) for host, pid, _ in keys],
                "host": [host or None for host, _, _ in keys],
                "pid": [pid for _, pid, _ in keys],
                "tid": [tid if tid >= 0 else None for _, _, tid in keys],
            },
            schema_overrides={"application": pl.String, "host": pl.String, "tid": pl.UInt64},
        )
        return PROCESSES.conform(table)

    def _programs(self) -> dict[tuple[str, int], str]:
        return {
            (self._host(one, pid) or "", pid): name
            for one in self.surveys
            for pid, code in one.program_of.items()
            if (name := one.strings.get(code) or self.strings.get(code)) is not None
        }

    @cached_property
    def paths(self) -> dict[str, int]:
        """Row of the file table by path."""
        every = (p for one in self.surveys for p in (*one.files.values(), *one.paths))
        return {path: row for row, path in enumerate(dict.fromkeys(every))}

    @cached_property
    def files(self) -> pl.DataFrame:
        return file_table(list(self.paths))

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Path by hash: the first meaning, for files that do not define it."""
        known: dict[str, str] = {}
        for one in self.surveys:
            for key, path in one.files.items():
                known.setdefault(key, path)
        return known

    def _partitions(self, surveys: Sequence[Survey]) -> Iterator[DftracerPartition]:
        """Small files share a partition, large ones are cut."""
        old = any(one.paths for one in self.surveys)
        index = FileIndex(self._rows_of(self.hashes), self.paths if old else {})
        held: list[CallSource] = []
        size = 0
        for one in surveys:
            stretches = _stretches(one.segments)
            if len(stretches) > 1:
                yield from self._ranges(one, stretches, index)
                continue
            held.append(self._source(one, one.segments))
            size += sum(segment.size for segment in one.segments)
            if size >= PARTITION:
                yield DftracerPartition(tuple(held), index)
                held, size = [], 0
        if held:
            yield DftracerPartition(tuple(held), index)

    def _ranges(
        self, one: Survey, stretches: Sequence[Sequence[Segment]], index: FileIndex
    ) -> Iterator[DftracerRange]:
        sources = tuple(self._source(one, stretch) for stretch in stretches)
        relay = Relay()
        for number, source in enumerate(sources):
            yield DftracerRange((source,), index, earlier=sources[:number], relay=relay)

    def _rows_of(self, names: Mapping[str, str]) -> dict[str, int]:
        """Row of the file table by hash."""
        return {key: self.paths[path] for key, path in names.items()}

    def _source(self, one: Survey, segments: Sequence[Segment]) -> CallSource:
        keys = [(self._host(one, pid) or "", pid, tid) for pid, tid in one.processes]
        processes = pl.DataFrame(
            {
                "pid": [pid for _, pid, _ in keys],
                "tid": [tid for *_, tid in keys],
                "process": [self.rows[key] for key in keys],
                "rank": [self.rank_of[host, pid] for host, pid, _ in keys],
            },
            schema={"pid": pl.Int64, "tid": pl.Int64, "process": pl.UInt32, "rank": pl.Int32},
        )
        own = {key: path for key, path in one.files.items() if self.hashes[key] != path}
        origin = self.origin // (1_000_000_000 // one.per_second)
        return CallSource(
            one.path, tuple(segments), origin, one.per_second, processes, self._rows_of(own)
        )


def _stretches(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Put neighbouring segments together until they are worth a partition."""
    stretches: list[list[Segment]] = [[]]
    for segment in segments:
        if sum(held.size for held in stretches[-1]) >= PARTITION:
            stretches.append([])
        stretches[-1].append(segment)
    return stretches
