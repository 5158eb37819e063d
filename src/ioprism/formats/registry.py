"""Find the reader that understands a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal, Protocol, runtime_checkable

from ioprism.errors import (
    BrokenTraceError,
    NoSuchTraceError,
    ReaderUnavailableError,
    SeveralJobsError,
    TraceError,
    UnknownFormatError,
    UsageError,
)
from ioprism.formats.darshan.log import is_log
from ioprism.formats.job_groups import (
    PER_PROCESS,
    Group,
    ProcessFile,
    describe_trace,
    group_files,
    killed_job,
    tracer_of,
)
from ioprism.formats.reading import Reading, check_plausibility, check_readable
from ioprism.formats.unrecognised import unrecognised
from ioprism.model.pseudonyms import anonymise_trace, chosen_pseudonyms
from ioprism.model.trace import Trace
from ioprism.plugins import declared
from ioprism.storage.recordings import RecordedRun, exists, recorded_runs
from ioprism.text import address_of

GROUP = "ioprism.readers"
OWN_STORE = "store"  # its events have passed the gate when they were written

OWN_LOGS = "darshan"  # recognised without loading a reader

# What several paths mean: by the rule of `job_groups`, one job or workflow, or a job each.
Grouping = Literal["auto", "one", "each"]
SETS_CLOCKS = ("dftracer", "recorder")  # readers that bring clocks together themselves
TAKES_READING = ("darshan", *SETS_CLOCKS)  # readers whose instances know how to read

# Loaded only when tried, so that `import ioprism` never imports a trace library.
# Those that need no table library come first: a small signal is read before one is loaded.
BUILT_IN = {
    "tmio": "ioprism.formats.signals.tmio:TmioReader",
    "gekkofs": "ioprism.formats.signals.monitors:GekkoReader",
    "metric-proxy": "ioprism.formats.signals.monitors:MetricProxyReader",
    "ftio-text": "ioprism.formats.signals.monitors:FtioTextReader",
    "store": "ioprism.storage.trace_store:StoreReader",
    "darshan": "ioprism.formats.darshan.reader:DarshanReader",
    "dftracer": "ioprism.formats.dftracer.reader:DftracerReader",
    "recorder": "ioprism.formats.recorder.reader:RecorderReader",
    "strace": "ioprism.formats.strace.reader:StraceReader",
    "chrome": "ioprism.formats.chrome:ChromeReader",
    "recorder-parquet": "ioprism.formats.recorder.converted:RecorderParquetReader",
    "recorder-text": "ioprism.formats.recorder.converted:RecorderTextReader",
    "otf2": "ioprism.formats.otf2:Otf2Reader",
    "table": "ioprism.formats.tables.reader:TableReader",
}

# What a trace format can tell; readers name the facts they fill.
FACTS: Mapping[str, str] = {
    "calls": "single reads and writes with start and end",
    "metadata": "single metadata calls (open, stat, …)",
    "offsets": "where in the file a call reads or writes",
    "ranks": "which process did it",
    "threads": "which thread did it",
    "hosts": "on which node",
    "files": "on which file",
    "counters": "totals per file and process",
    "heatmap": "bytes over time per process",
    "targets": "storage targets behind a file",
    "collective": "collective or independent calls",
    "layers": "several interfaces, from MPI-IO or HDF5 down to POSIX",
}


class Reader(Protocol):
    """Turns one trace format into events. Implement it, then declare an entry point."""

    name: str
    title: str
    tells: frozenset[str]  # keys of FACTS

    def recognises(self, source: Path) -> bool:
        """Whether the content, not the file name, is this format. Never raises."""
        ...

    def read(self, source: Path) -> Trace:
        """Read a trace of this format."""
        ...


@runtime_checkable
class JoinsFiles(Reader, Protocol):
    """A reader of per-process files that joins those of a job by itself."""

    def files_of(self, source: Path) -> list[Path]:
        """Return the files of a folder, or the file itself."""
        ...

    def survey(self, paths: Sequence[Path]) -> list[Any]:
        """Look through files before they are read."""
        ...

    def describe(self, surveys: Sequence[Any]) -> list[ProcessFile]:
        """Return what the files say about their processes."""
        ...

    def join(self, sources: Sequence[Path], surveys: Sequence[Any]) -> Trace:
        """Return one trace of files that are one job."""
        ...


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A declared reader that cannot be loaded, and the package it lacks."""

    name: str
    missing: str


def readers(reading: Reading | None = None) -> Iterator[Reader | Unavailable]:
    """Built-in readers first, then those of installed plugins."""
    for name in BUILT_IN:
        yield from _built_in(name, reading)
    # Asked for only when no built-in reader was enough: looking for plugins reads many files.
    for plugin in declared(GROUP):
        yield _load_reader(plugin.name, plugin.load)


def _built_in(name: str | None, reading: Reading | None) -> list[Reader | Unavailable]:
    """The built-in reader of a format, alone; nothing for other names."""
    if name is None or name not in BUILT_IN:
        return []
    given = (reading,) if name in TAKES_READING else ()
    return [_load_reader(name, partial(resolve_name, BUILT_IN[name]), *given)]


def _load_reader(name: str, load: Callable[[], Any], *given: object) -> Reader | Unavailable:
    try:
        reader: Reader = load()(*given)
    except ImportError as error:
        return Unavailable(name, error.name or str(error))
    return reader


def find_reader(
    source: Path, *, format_name: str | None = None, reading: Reading | None = None
) -> Reader:
    """Return the reader of this file or folder, by its content unless the format is named.

    Raises:
        NoSuchTraceError: there is nothing at this path.
        BrokenTraceError: it is a pipe, or not for us to read.
        ReaderUnavailableError: the named format's reader lacks a package.
        UnknownFormatError: no reader recognises the content.
        TraceError: it is in object storage, but is not a store.
        UsageError: no format has this name.
    """
    if not exists(source):
        raise NoSuchTraceError(source)
    check_readable(source)
    if format_name is None and is_log(source):  # without loading the readers before it
        format_name = "darshan"
    tried = []
    for reader in _built_in(format_name, reading) or readers(reading):
        tried.append(reader.name)
        if isinstance(reader, Unavailable):
            if reader.name == format_name:
                raise ReaderUnavailableError(source, reader=reader.name, missing=reader.missing)
        elif reader.name == format_name or (format_name is None and reader.recognises(source)):
            return reader
    if format_name is not None:
        raise UsageError(
            f"there is no format {format_name!r} (there are {', '.join(tried)}).\n"
            "Hint: `ioprism formats` lists them."
        )
    if address_of(source) is not None:
        raise TraceError(
            "only stores are read from object storage, and this is none.\n"
            "Hint: copy the trace to this machine; `ioprism convert` makes a store of it.",
            source=source,
        )
    raise unrecognised(source, tried)


def read_traces(
    *sources: Path,
    format_name: str | None = None,
    grouping: Grouping = "auto",
    reading: Reading | None = None,
) -> list[Trace]:
    """Read files and folders of any known formats: one trace per job.

    Other files in a folder are skipped, damaged traces with a warning.

    Args:
        sources: files and folders.
        format_name: their format; recognised from their content if None.
        grouping: which of them are one job (see `Grouping`).
        reading: how to read them.
    """
    traces: list[Trace] = []
    damage: list[BrokenTraceError | NoSuchTraceError] = []
    for job in find_jobs(sources, format_name=format_name, grouping=grouping, reading=reading):
        try:
            traces.append(job.read())
        except (BrokenTraceError, NoSuchTraceError) as error:
            if not job.in_folder:
                raise
            damage.append(error)
    if damage and not traces:
        raise damage[0]
    for reason in damage:
        traces[0].completeness.warn(str(reason).partition("\n")[0])
    if reading is not None and reading.clock_offsets:
        from ioprism.formats.clocks import warn_of_unused

        warn_of_unused(reading.clock_offsets, traces)
    return traces


def read_trace(
    *sources: Path,
    format_name: str | None = None,
    grouping: Grouping = "auto",
    reading: Reading | None = None,
) -> Trace:
    """Read files and folders as one trace: a job, or with grouping "one" a workflow of several.

    Raises:
        SeveralJobsError: they are several jobs, and were not said to be one.
        UsageError: nothing was given.
    """
    if not sources:
        raise UsageError("no trace was given.\nHint: name a file or a folder.")
    traces = read_traces(*sources, format_name=format_name, grouping=grouping, reading=reading)
    if len(traces) > 1:
        raise SeveralJobsError([trace.paths[0].name for trace in traces])
    return traces[0]


def job_groups(
    sources: Sequence[Path],
    *,
    format_name: str | None = None,
    grouping: Grouping = "auto",
    reading: Reading | None = None,
) -> list[Group]:
    """Return the paths of each job; those of a job are read with grouping "one".

    Darshan logs are recognised without reading them, so that thousands cost little.
    """
    jobs = find_jobs(sources, format_name=format_name, grouping=grouping, reading=reading)
    return [job.paths for job in jobs]


@dataclass(slots=True)
class TraceFile:
    """A file or folder that one reader reads, and what was read of it so far."""

    path: Path
    reader: Reader | None  # None: a Darshan log, whose reader is loaded when it is read
    given: Path  # itself, or the folder in which it was found
    error: BrokenTraceError | NoSuchTraceError | None = None  # why it cannot be read
    trace: Trace | None = None
    survey: Any = None  # of a reader that joins files by itself
    reading: Reading | None = None

    @property
    def format(self) -> str:
        """The name of its format."""
        return OWN_LOGS if self.reader is None else self.reader.name

    def read(self) -> Trace:
        """Return its trace."""
        if self.error is not None:
            raise self.error
        if self.trace is None:
            reader = self.reader or find_reader(
                self.path, format_name=OWN_LOGS, reading=self.reading
            )
            self.trace = _check_trace(reader, reader.read(self.path), self.reading)
        return self.trace


@dataclass(frozen=True, slots=True)
class JobFiles:
    """The files of one job."""

    files: tuple[TraceFile, ...]
    folder: Path | None = None  # that holds nothing else
    in_folder: bool = False  # found there: what is damaged among others is left out
    run: RecordedRun | None = None  # of `record`, which knows when the program ended

    @property
    def paths(self) -> Group:
        """What to name to read this job."""
        return tuple(file.path for file in self.files) if self.folder is None else (self.folder,)

    def read(self) -> Trace:
        """Read them as one trace."""
        sound = [file for file in self.files if file.error is None] or self.files
        joined = [file for file in sound if isinstance(file.reader, JoinsFiles)]
        traces = [file.read() for file in sound if not isinstance(file.reader, JoinsFiles)]
        if joined and isinstance(joiner := joined[0].reader, JoinsFiles):
            paths = self.paths if self.folder else [file.path for file in joined]
            trace = joiner.join(paths, _surveys(joiner, joined))
            traces.insert(0, _check_trace(joiner, trace, joined[0].reading))
        trace = traces[0]
        if len(traces) > 1:
            from ioprism.model.merge import merge

            trace = merge(traces)
        if self.run is not None:
            trace = _until_end(trace, self.run)
        for file in self.files:
            if file.error is not None:
                trace.completeness.warn(str(file.error).partition("\n")[0])
        names = chosen_pseudonyms()
        return trace if names is None else anonymise_trace(trace, names)


def _until_end(trace: Trace, run: RecordedRun) -> Trace:
    """Let a job last until its program ended, rather than until its last call on a file."""
    job = trace.job
    if job.start_time is None or trace.format == "darshan":  # which notes the end itself
        return trace
    end = max(run.started + run.seconds, job.end_time or 0.0)
    return replace(trace, job=replace(job, end_time=end, runtime=end - job.start_time))


def find_jobs(
    sources: Sequence[Path],
    *,
    format_name: str | None = None,
    grouping: Grouping = "auto",
    reading: Reading | None = None,
) -> list[JobFiles]:
    """Find the files of each job, by the rule of `job_groups` unless `grouping` says otherwise.

    A folder that `record` made holds one job for each run. Any other folder that is not itself a
    trace is searched for traces.

    Raises:
        NoSuchTraceError: there is nothing at a path.
        UnknownFormatError: a file is not a trace, or a folder does not contain one.
    """
    jobs: list[JobFiles] = []
    files: list[TraceFile] = []
    for source in sources:
        runs = recorded_runs(source) if exists(source) else {}  # all processes of a run are one job
        jobs += [
            replace(_job_of(trace_files(folder, format_name, reading)), run=run)
            for folder, run in runs.items()
        ]
        files += [] if runs else trace_files(source, format_name, reading)
    if grouping == "one" and (files or len(jobs) > 1):
        return [_job_of([*(file for job in jobs for file in job.files), *files])]
    groups = [[file] for file in files] if grouping == "each" else _group(files)
    size = Counter(file.given for file in files)
    return [*jobs, *(_job_of(group, size) for group in groups)]


def _job_of(files: Sequence[TraceFile], size: Mapping[Path, int] | None = None) -> JobFiles:
    """A job; it is known by its folder where that is what was given and holds nothing else."""
    given = files[0].given
    alone = all(file.given == given and isinstance(file.reader, JoinsFiles) for file in files)
    whole = alone and given.is_dir() and (size is None or size[given] == len(files))
    in_folder = any(file.given != file.path for file in files)
    return JobFiles(tuple(files), given if whole else None, in_folder)


def _group(files: Sequence[TraceFile]) -> list[list[TraceFile]]:
    """Group files by what they say about their processes; each other trace is a job."""
    groups: dict[Hashable, list[TraceFile]] = {}
    described = _describe([file for file in files if file.format in PER_PROCESS])
    for number, numbers in enumerate(group_files([facts for _, facts in described])):
        groups[number] = [described[place][0] for place in numbers]
    known = {id(file) for file, _ in described}
    for file in files:
        if id(file) not in known:
            is_sound_log = file.format == OWN_LOGS and file.error is None  # not a pipe
            killed = killed_job(file.path) if is_sound_log else None
            groups.setdefault(killed or file.path, []).append(file)
    order = {id(file): number for number, file in enumerate(files)}
    return sorted(groups.values(), key=lambda group: order[id(group[0])])


def group_paths(paths: Sequence[Path]) -> list[Group]:
    """Return which files are one job; a file that is not a trace stays alone."""
    files, others = [], []
    for path in paths:
        try:
            files += trace_files(path)
        except TraceError:
            others.append((path,))
    return [*(tuple(file.path for file in group) for group in _group(files)), *others]


def _describe(files: Sequence[TraceFile]) -> list[tuple[TraceFile, ProcessFile]]:
    """What per-process files say about their processes."""
    if len(files) < 2:
        return []
    described: list[tuple[TraceFile, ProcessFile]] = []
    joined = [file for file in files if isinstance(file.reader, JoinsFiles)]
    if joined and isinstance(joiner := joined[0].reader, JoinsFiles):
        described += zip(joined, joiner.describe(_surveys(joiner, joined)), strict=True)
    for file in files:
        if not isinstance(file.reader, JoinsFiles):
            try:
                described.append((file, describe_trace(file.read())))
            except BrokenTraceError as error:
                file.error = error
                parents = tracer_of(file.path, file.format)
                described.append((file, ProcessFile(file.path, file.format, parents=parents)))
    return described


def _surveys(joiner: JoinsFiles, files: Sequence[TraceFile]) -> list[Any]:
    """Look through each file once."""
    unread = [file for file in files if file.survey is None]
    if unread:
        for file, survey in zip(unread, joiner.survey([f.path for f in unread]), strict=True):
            file.survey = survey
    return [file.survey for file in files]


def trace_files(
    source: Path, format_name: str | None = None, reading: Reading | None = None
) -> list[TraceFile]:
    """Return the traces at a path: itself, or those in a folder.

    Raises:
        NoSuchTraceError: there is nothing at this path.
        UnknownFormatError: it is not a trace, and does not contain one.
    """
    if format_name in (None, OWN_LOGS) and is_log(source):
        return [TraceFile(source, None, source, reading=reading)]
    try:
        reader = find_reader(source, format_name=format_name, reading=reading)
        return _files_of(source, reader, reading)
    except UnknownFormatError as unknown:
        if not source.is_dir():
            raise
        files = list(_files_below(source, reading))
        if not files:
            raise unrecognised(source, unknown.tried) from None
        return files


def _files_of(source: Path, reader: Reader, reading: Reading | None) -> list[TraceFile]:
    paths = reader.files_of(source) if isinstance(reader, JoinsFiles) else [source]
    return [TraceFile(path, reader, source, reading=reading) for path in paths]


def _files_below(folder: Path, reading: Reading | None) -> Iterator[TraceFile]:
    waiting = [folder]
    while waiting:
        for path in sorted(waiting.pop().iterdir()):
            try:
                if is_log(path):
                    yield TraceFile(path, None, folder, reading=reading)
                    continue
                inner = _files_of(path, find_reader(path, reading=reading), reading)
                yield from (replace(file, given=folder) for file in inner)
            except UnknownFormatError:
                waiting += [path] if path.is_dir() and not path.is_symlink() else []
            except (BrokenTraceError, NoSuchTraceError) as error:
                yield TraceFile(path, None, folder, error)


def _check_trace(reader: Reader, trace: Trace, reading: Reading | None) -> Trace:
    """The trace without what cannot be true, on the clocks that the user gave."""
    if reader.name != OWN_STORE:
        trace = check_plausibility(trace)
    elif trace.counters:
        from ioprism.formats.darshan.tables import check_counters

        trace = check_counters(trace)
    offsets = None if reading is None else reading.clock_offsets
    if offsets is None or reader.name in SETS_CLOCKS:
        return trace
    from ioprism.formats.clocks import apply_offsets

    return apply_offsets(trace, offsets)
