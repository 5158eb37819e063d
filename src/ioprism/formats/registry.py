"""Find the reader that understands a trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal, Protocol

from ioprism.errors import (
    BrokenTraceError,
    NoSuchTraceError,
    ReaderUnavailableError,
    SeveralJobsError,
    TraceError,
    UnknownFormatError,
    UsageError,
)
from ioprism.formats.clock_offsets import said_offsets
from ioprism.formats.darshan.log import is_log
from ioprism.formats.files import check_readable
from ioprism.formats.plausibility import gated
from ioprism.formats.unrecognised import unrecognised
from ioprism.model.trace import Trace
from ioprism.plugins import declared
from ioprism.storage.recordings import recorded_runs
from ioprism.storage.remote import exists
from ioprism.text import address_of

GROUP = "ioprism.readers"
OWN_STORE = "store"  # its events have passed the gate when they were written

# What several paths mean: by the rule of `_jobs`, one job or workflow, or a job each.
Grouping = Literal["auto", "one", "each"]
SETS_CLOCKS = ("dftracer", "recorder")  # readers that bring clocks together themselves
# These write a file for each process of a run.
PER_PROCESS = ("dftracer", "strace", "recorder-text", "gekkofs")

# Loaded only when tried, so that `import ioprism` never imports a trace library.
# Those that need no table library come first: a small signal is read before one is loaded.
BUILT_IN = {
    "tmio": "ioprism.formats.signals.tmio:TmioReader",
    "gekkofs": "ioprism.formats.signals.gekkofs:GekkoReader",
    "metric-proxy": "ioprism.formats.signals.metric_proxy:MetricProxyReader",
    "ftio-text": "ioprism.formats.signals.ftio_text:FtioTextReader",
    "store": "ioprism.storage.trace_store:StoreReader",
    "darshan": "ioprism.formats.darshan.reader:DarshanReader",
    "dftracer": "ioprism.formats.dftracer.reader:DftracerReader",
    "recorder": "ioprism.formats.recorder.reader:RecorderReader",
    "strace": "ioprism.formats.strace.reader:StraceReader",
    "chrome": "ioprism.formats.chrome.reader:ChromeReader",
    "recorder-parquet": "ioprism.formats.recorder.parquet_reader:RecorderParquetReader",
    "recorder-text": "ioprism.formats.recorder.text_reader:RecorderTextReader",
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


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A declared reader that cannot be loaded, and the package it lacks."""

    name: str
    missing: str


def readers() -> Iterator[Reader | Unavailable]:
    """Built-in readers first, then those of installed plugins."""
    for name, path in BUILT_IN.items():
        yield _loaded(name, partial(resolve_name, path))
    # Asked for only when no built-in reader was enough: looking for plugins reads many files.
    for plugin in declared(GROUP):
        yield _loaded(plugin.name, plugin.load)


def _named(format_name: str | None) -> list[Reader | Unavailable]:
    """The built-in reader of a format, alone; nothing for other names."""
    path = BUILT_IN.get(format_name or "")
    return [] if path is None else [_loaded(format_name or "", partial(resolve_name, path))]


def _loaded(name: str, load: Callable[[], Any]) -> Reader | Unavailable:
    try:
        reader: Reader = load()()
    except ImportError as error:
        return Unavailable(name, error.name or str(error))
    return reader


def find_reader(source: Path, *, format_name: str | None = None) -> Reader:
    """Return the reader of this file or folder, by its content unless the format is named.

    Raises:
        NoSuchTraceError: there is nothing at this path.
        BrokenTraceError: it is a pipe, or not for us to read.
        ReaderUnavailableError: the named format's reader lacks a package.
        UnknownFormatError: no reader recognises the content.
        TraceError: it lies in object storage, and is no store.
        UsageError: no format has this name.
    """
    if not exists(source):
        raise NoSuchTraceError(source)
    check_readable(source)
    if format_name is None and is_log(source):  # without loading the readers before it
        format_name = "darshan"
    tried = []
    for reader in _named(format_name) or readers():
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
    *sources: Path, format_name: str | None = None, grouping: Grouping = "auto"
) -> list[Trace]:
    """Read files and folders of any known formats: one trace per job.

    A folder that `record` made holds one job for each run. Any other folder that is not itself a
    trace is searched for traces; what is no trace in it is skipped, what is damaged is skipped with
    a warning.

    Args:
        sources: files and folders.
        format_name: their format; recognised from their content if None.
        grouping: which of them are one job (see `Grouping`).
    """
    traces: list[Trace] = []
    for source in sources:
        runs = recorded_runs(source)  # all processes of a recorded run are one job
        traces += [_merged(_read_one(run, format_name)) for run in runs or ()]
        traces += [] if runs else _read_one(source, format_name)
    if said_offsets():
        from ioprism.formats.clocks import warn_of_unused

        warn_of_unused(traces)
    if grouping == "one":
        return [_merged(traces)]
    return traces if grouping == "each" else [_merged(group) for group in _jobs(traces)]


def read_trace(*sources: Path, format_name: str | None = None, grouping: Grouping = "one") -> Trace:
    """Read files and folders as one trace: a job, or a workflow of several.

    Raises:
        SeveralJobsError: they are several jobs, and were not said to be one.
        UsageError: nothing was given.
    """
    if not sources:
        raise UsageError("no trace was given.\nHint: name a file or a folder.")
    traces = read_traces(*sources, format_name=format_name, grouping=grouping)
    if len(traces) > 1:
        raise SeveralJobsError([trace.paths[0].name for trace in traces])
    return traces[0]


def _merged(traces: list[Trace]) -> Trace:
    if len(traces) == 1:
        return traces[0]
    from ioprism.model.merge import merge

    return merge(traces)


def _read_one(source: Path, format_name: str | None) -> list[Trace]:
    try:
        return [_read(find_reader(source, format_name=format_name), source)]
    except UnknownFormatError as unknown:
        if not source.is_dir():
            raise
        traces = _read_folder(source)
        if not traces:
            raise unrecognised(source, unknown.tried) from None
        return traces


def _read(reader: Reader, source: Path) -> Trace:
    trace = reader.read(source)
    if reader.name != OWN_STORE:
        trace = gated(trace)
    elif trace.counters:
        from ioprism.formats.stored_counters import with_checked_counters

        trace = with_checked_counters(trace)
    if said_offsets() is None or reader.name in SETS_CLOCKS:
        return trace
    from ioprism.formats.clocks import moved_as_said

    return moved_as_said(trace)


def _read_folder(folder: Path) -> list[Trace]:
    traces: list[Trace] = []
    broken: list[BrokenTraceError | NoSuchTraceError] = []
    waiting = [folder]
    while waiting:
        for path in sorted(waiting.pop().iterdir()):
            try:
                traces.append(_read(find_reader(path), path))
            except UnknownFormatError:
                waiting += [path] if path.is_dir() and not path.is_symlink() else []
            except (BrokenTraceError, NoSuchTraceError) as error:
                broken.append(error)
    if broken and not traces:
        raise broken[0]
    for damage in broken:
        traces[0].completeness.warn(str(damage).partition("\n")[0])
    return traces


def _jobs(traces: list[Trace]) -> list[list[Trace]]:
    """Group the traces of one job.

    A Darshan log is a job; the logs that the ranks of a killed job left are one. Files that a
    tracer writes for each process are one job where they lie together, are named alike and
    overlap in time.
    """
    groups: dict[object, list[Trace]] = {}
    for number, trace in enumerate(traces):
        groups.setdefault(_job_key(trace) or number, []).append(trace)
    return [job for group in groups.values() for job in _overlapping(group)]


def _job_key(trace: Trace) -> object:
    job, path = trace.job, trace.paths[0]
    if trace.format in PER_PROCESS:
        return trace.format, path.parent, re.split(r"\d", path.name)[0].rstrip("-_.")
    if job.end_time is None and job.start_time is not None:
        # Each rank of a killed job leaves its own log, under its own process id.
        return trace.format, job.user, job.executable, job.ranks, int(job.start_time)
    return None


def _overlapping(traces: list[Trace]) -> Iterator[list[Trace]]:
    """Part traces of processes that never ran at the same time; those of unknown time stay."""
    if traces[0].format not in PER_PROCESS or any(t.job.start_time is None for t in traces):
        yield traces
        return
    group: list[Trace] = []
    until = 0.0
    for trace in sorted(traces, key=lambda t: t.job.start_time or 0.0):
        start = trace.job.start_time or 0.0
        if group and start > until:
            yield group
            group = []
        group.append(trace)
        until = max(until if len(group) > 1 else 0.0, start + (trace.job.runtime or 0.0))
    yield group
