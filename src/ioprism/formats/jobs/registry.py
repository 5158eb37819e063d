"""Find the reader that understands a file of jobs, and read it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Protocol

import polars as pl

from ioprism.errors import NoSuchTraceError, UnknownFormatError
from ioprism.model.counters import ReadingOptions, Tally, each_run_once
from ioprism.plugins import declared, load

BUILT_IN = {
    "slurm": "ioprism.formats.jobs.slurm:SlurmReader",
    "pbs": "ioprism.formats.jobs.pbs:PbsReader",
    "lsf": "ioprism.formats.jobs.lsf:LsfReader",
    "lsf-text": "ioprism.formats.jobs.lsf_text:LsfTextReader",
    "loadleveler": "ioprism.formats.jobs.loadleveler:LoadLevelerReader",
    "job-table": "ioprism.formats.jobs.table:JobTableReader",
}
GROUP = "ioprism.job_readers"


class JobReader(Protocol):
    """Turns one format into jobs."""

    name: str
    title: str

    def recognises(self, source: Path) -> bool:
        """Whether the content, not the file name, is this format. Never raises."""
        ...

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
        """Return a table with the columns of JOBS; count what is left out."""
        ...


def job_readers() -> Iterator[JobReader]:
    """Every reader of jobs, those of plug-ins last."""
    for path in BUILT_IN.values():
        reader: JobReader = resolve_name(path)()
        yield reader
    for plugin in declared(GROUP):
        yield load(plugin)()


def find_job_reader(source: Path) -> JobReader | None:
    """Return the reader that recognises the content, if any does."""
    return next((reader for reader in job_readers() if reader.recognises(source)), None)


def read_jobs(source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
    """Read jobs of any known format, each run once.

    Raises:
        NoSuchTraceError: there is no such file.
        UnknownFormatError: no reader recognises the content.
    """
    if not source.is_file():
        raise NoSuchTraceError(source)
    reader = find_job_reader(source)
    if reader is None:
        raise UnknownFormatError(source, tried=tuple(BUILT_IN))
    return each_run_once(reader.read(source, options, tally))
