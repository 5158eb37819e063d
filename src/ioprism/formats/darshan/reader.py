"""Turn a Darshan log into a trace."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import polars as pl

from ioprism.formats.darshan.apmpi import read_apmpi
from ioprism.formats.darshan.counters import FileCodes, read_counters
from ioprism.formats.darshan.dxt import DxtPartition, scan_processes
from ioprism.formats.darshan.dxt_ranges import Cutter
from ioprism.formats.darshan.job import Names, read_job, read_names
from ioprism.formats.darshan.log import (
    Log,
    Region,
    is_log,
    notes,
    read_log,
)
from ioprism.formats.darshan.records import (
    DXT_VERSIONS,
    FIXED,
    HEATMAP_LAYERS,
    NOT_FILES,
    dxt_segment_words,
)
from ioprism.formats.darshan.variable_tables import layouts, read_heatmap, read_lustre
from ioprism.formats.surveys import each
from ioprism.model.files import file_table
from ioprism.model.schema import FILES, PROCESSES, Kind, Layer
from ioprism.model.sizes import MOST_RANKS
from ioprism.model.trace import Completeness, Job, LazyTables, Trace

DATASETS = ("H5D", "PNETCDF_VAR")


class DarshanReader:
    """Reads `.darshan` logs of Darshan 3.x, whole, partial or of a killed job."""

    name = "darshan"
    title = "Darshan 3.x logs (.darshan), also of killed jobs"
    tells = frozenset(
        {"calls", "offsets", "ranks", "threads", "hosts", "files", "counters", "heatmap",
         "targets", "collective", "layers"}
    )  # fmt: skip

    def recognises(self, source: Path) -> bool:
        """Whether the content starts like a Darshan log. Never raises."""
        return is_log(source)

    def read(self, source: Path) -> Trace:
        """Read the job's facts and the names now, everything else when it is asked for."""
        completeness = Completeness()
        log = read_log(source)
        job = read_job(log, completeness.warn)
        return _Content(log, completeness, job, read_names(log, completeness.warn)).trace()


@dataclass(frozen=True)
class _Content:
    """One log, and what its parts need to know of each other."""

    log: Log
    completeness: Completeness
    job: Job
    names: Names

    def trace(self) -> Trace:
        for note in notes(self.log):
            self.completeness.warn(note)
        has_threads = any(dxt_segment_words(r.name, r.version) > 4 for r in self.dxt)
        threads = self.processes.select("rank", "tid", "process") if has_threads else None
        return Trace(
            format=DarshanReader.name,
            paths=(self.log.path,),
            job=self.job,
            partitions=tuple(
                DxtPartition(self.log, r, self.codes, self.ranks, threads) for r in self.dxt_ranges
            ),
            counters=self.tables,
            load_files=lambda: self.files,
            load_processes=lambda: self.processes,
            completeness=self.completeness,
        )

    @property
    def dxt(self) -> list[Region]:
        """The modules that hold single reads and writes."""
        return [
            region
            for name, region in self.log.modules.items()
            if region.length and region.version in DXT_VERSIONS.get(name, ())
        ]

    @cached_property
    def dxt_ranges(self) -> list[Region]:
        """Those modules, large ones cut into ranges of whole records."""
        cutter = Cutter(self.log, self.codes, self.ranks)
        return [part for region in self.dxt for part in cutter.ranges(region)]

    @property
    def ranks(self) -> int:
        """How many ranks there can be at most."""
        return self.job.ranks or MOST_RANKS

    @cached_property
    def codes(self) -> FileCodes:
        return FileCodes.of(self.names.ids)

    @cached_property
    def tables(self) -> LazyTables:
        """The modules that hold counters, read when asked for."""
        readable = {*FIXED, "LUSTRE", "HEATMAP", "APMPI"}
        return LazyTables(
            {
                name: partial(self._table, region)
                for name, region in self.log.modules.items()
                if name in readable and region.length
            }
        )

    def _table(self, region: Region) -> pl.DataFrame:
        warn = self.completeness.warn
        if region.name == "LUSTRE":
            return read_lustre(self.log, region, self.codes, warn)
        if region.name == "HEATMAP":
            return self._heatmap(region)
        if region.name == "APMPI":
            return read_apmpi(self.log, region, ranks=self.ranks, warn=warn)
        return read_counters(self.log, region, self.codes, ranks=self.ranks, warn=warn)

    def _heatmap(self, region: Region) -> pl.DataFrame:
        """The heat maps with the interface they count, which their record's name says."""
        table = read_heatmap(self.log, region, self.completeness.warn)
        names = dict(zip(self.names.ids.tolist(), self.names.names, strict=True))
        layers = [HEATMAP_LAYERS.get(names.get(i, "")) for i in table["id"].to_list()]
        return table.drop("id").insert_column(0, pl.Series("layer", layers, dtype=Layer))

    @cached_property
    def files(self) -> pl.DataFrame:
        """The names that belong to files, with mount points and stripe layouts."""
        table = file_table(self.names.names, self.job.mounts)
        table = table.with_columns(id=pl.Series(self.names.ids))
        table = self._with_datasets(table.filter(~pl.col("path").is_in(NOT_FILES)))
        if "LUSTRE" in self.tables:
            table = table.drop("stripe_size", "stripe_count", "targets").join(
                layouts(self.tables["LUSTRE"]), on="file", how="left", maintain_order="left"
            )
        return FILES.conform(table)

    def _with_datasets(self, files: pl.DataFrame) -> pl.DataFrame:
        """Mark data sets, and the file each is in."""
        datasets = [self.tables[name] for name in DATASETS if name in self.tables]
        if not datasets:
            return files
        parents = (
            pl.concat(table.select("file", "parent") for table in datasets)
            .drop_nulls("file")
            .unique("file", keep="first", maintain_order=True)
            .with_columns(kind=pl.lit("dataset", dtype=Kind))
        )
        return _named_parents(files.update(parents, on="file", how="left"))

    @cached_property
    def processes(self) -> pl.DataFrame:
        """One row per rank, or per thread where DXT tells threads apart."""
        ranks = pl.DataFrame(
            {"rank": pl.int_range(self.job.ranks or 0, dtype=pl.Int32, eager=True)}
        )
        if not self.dxt:
            return PROCESSES.conform(self._numbered(ranks))
        scanned = each(partial(_scanned, self.log, ranks=self.ranks), self.dxt_ranges)
        for _, messages in scanned:
            for message in messages:
                self.completeness.warn(message)
        seen = pl.concat([table for table, _ in scanned])
        seen = seen.unique(["rank", "tid"], keep="first", maintain_order=True)
        everyone = ranks.join(seen, on="rank", how="full", coalesce=True).sort("rank", "tid")
        return PROCESSES.conform(self._numbered(everyone))

    def _numbered(self, processes: pl.DataFrame) -> pl.DataFrame:
        program = (self.job.executable or "").split(" ")[0].rsplit("/", 1)[-1] or None
        return processes.with_row_index("process").with_columns(
            application=pl.lit(program, dtype=pl.String)
        )


def _scanned(log: Log, region: Region, *, ranks: int) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Who is in a range, and what was wrong with it; any worker can do it."""
    noted = Completeness()
    return scan_processes(log, region, ranks=ranks, warn=noted.warn), noted.warnings


def _named_parents(files: pl.DataFrame) -> pl.DataFrame:
    """Old logs do not say which file a data set is in, but its name does: `file:data set`."""
    orphans = (
        files.filter((pl.col("kind") == "dataset") & pl.col("parent").is_null())
        .select("file", parent_path=pl.col("path").str.extract(r"^(.*):[^:]*$", 1))
        .join(files.select(parent="file", parent_path="path"), on="parent_path")
        .select("file", "parent")
    )
    return files.update(orphans, on="file", how="left") if orphans.height else files
