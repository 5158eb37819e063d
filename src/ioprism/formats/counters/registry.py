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
    "mmpmon": "ioprism.formats.counters.mmpmon:MmpmonReader",
    "mmpmon-text": "ioprism.formats.counters.mmpmon_human:MmpmonHumanReader",
    "lustre": "ioprism.formats.counters.lustre:LustreReader",
    "prometheus": "ioprism.formats.counters.prometheus:PrometheusReader",
    "lmt": "ioprism.formats.counters.lmt:LmtReader",
    "tokio": "ioprism.formats.counters.tokio:TokioReader",
    "counter-table": "ioprism.formats.counters.table:CounterTableReader",
}
JOB_READERS = {
    "slurm": "ioprism.formats.jobs.slurm:SlurmReader",
    "pbs": "ioprism.formats.jobs.pbs:PbsReader",
    "lsf": "ioprism.formats.jobs.lsf:LsfReader",
    "lsf-text": "ioprism.formats.jobs.lsf_text:LsfTextReader",
    "loadleveler": "ioprism.formats.jobs.loadleveler:LoadLevelerReader",
    "job-table": "ioprism.formats.jobs.table:JobTableReader",
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
