"""Find the reader that understands a file of counters or of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

import polars as pl

from ioprism.errors import UnknownFormatError
from ioprism.formats.files import check_file
from ioprism.model.counters import ReadingOptions, Tally, each_run_once
from ioprism.plugins import declared, load

HINT = "`ioprism servers ingest --help` lists what can be read."
# Loaded only when tried: a reader may need a library of its own.
COUNTER_READERS = {
    "mmpmon": "ioprism.servers.counter_formats.mmpmon:MmpmonReader",
    "mmpmon-text": "ioprism.servers.counter_formats.mmpmon_human:MmpmonHumanReader",
    "lustre": "ioprism.servers.counter_formats.lustre:LustreReader",
    "prometheus": "ioprism.servers.counter_formats.prometheus:PrometheusReader",
    "lmt": "ioprism.servers.counter_formats.lmt:LmtReader",
    "tokio": "ioprism.servers.counter_formats.tokio:TokioReader",
    "counter-table": "ioprism.servers.counter_formats.table:CounterTableReader",
}
JOB_READERS = {
    "slurm": "ioprism.servers.job_formats.slurm:SlurmReader",
    "pbs": "ioprism.servers.job_formats.pbs:PbsReader",
    "lsf": "ioprism.servers.job_formats.lsf:LsfReader",
    "lsf-text": "ioprism.servers.job_formats.lsf_text:LsfTextReader",
    "loadleveler": "ioprism.servers.job_formats.loadleveler:LoadLevelerReader",
    "job-table": "ioprism.servers.job_formats.table:JobTableReader",
}


class Recogniser(Protocol):
    """What every reader can do."""

    name: str
    title: str

    def recognises(self, source: Path) -> bool:
        """Whether the content, not the file name, is this format. Never raises."""
        ...


class CounterReader(Recogniser, Protocol):
    """Turns one format into samples of counters."""

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:
        """Yield tables with the columns of COUNTERS; count what is left out."""
        ...


class JobReader(Recogniser, Protocol):
    """Turns one format into jobs."""

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
        """Return a table with the columns of JOBS; count what is left out."""
        ...


def counter_readers() -> Iterator[CounterReader]:
    """Every reader of counters, those of plug-ins last."""
    yield from _readers(COUNTER_READERS, "ioprism.counter_readers")


def job_readers() -> Iterator[JobReader]:
    """Every reader of jobs, those of plug-ins last."""
    yield from _readers(JOB_READERS, "ioprism.job_readers")


def _readers(built_in: Mapping[str, str], group: str) -> Iterator[Any]:
    for path in built_in.values():
        yield resolve_name(path)()
    for plugin in declared(group):
        yield load(plugin)()


def find_counter_reader(source: Path) -> CounterReader | None:
    """Return the reader that recognises the content, if any does."""
    return next((reader for reader in counter_readers() if reader.recognises(source)), None)


def find_job_reader(source: Path) -> JobReader | None:
    """Return the reader that recognises the content, if any does."""
    return next((reader for reader in job_readers() if reader.recognises(source)), None)


def read_jobs(source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
    """Read jobs of any known format, each run once.

    Raises:
        NoSuchTraceError: there is no such file.
        UnknownFormatError: no reader recognises the content.
    """
    check_file(source)
    reader = find_job_reader(source)
    if reader is None:
        raise UnknownFormatError(source, tried=tuple(JOB_READERS), hint=HINT)
    return each_run_once(reader.read(source, options, tally))
