"""Turn a Darshan log into a trace; what needs a table library is read when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ioprism.formats.darshan.decode import (
    FileCodes,
    HeatRecord,
    ModuleRecords,
    decode_apmpi,
    decode_heat_maps,
    decode_lustre,
    first_layouts,
    read_records,
)
from ioprism.formats.darshan.log import Log, Region, is_log, notes, read_job, read_log, read_names
from ioprism.formats.darshan.meaning import (
    DXT_VERSIONS,
    FIXED,
    HEATMAP_LAYERS,
    NOT_FILES,
    dxt_segment_words,
)
from ioprism.formats.reading import Reading
from ioprism.model.trace import (
    MOST_RANKS,
    Completeness,
    FileTableSource,
    Job,
    LazyTables,
    Partition,
    Trace,
)
from ioprism.model.usage import FileFacts, HeatMap, Striping, is_data

if TYPE_CHECKING:  # counters are judged without it
    import numpy.typing as npt
    import polars as pl

DATASETS = ("H5D", "PNETCDF_VAR")


class DarshanReader:
    """Reads `.darshan` logs of Darshan 3.x, whole, partial or of a killed job."""

    name = "darshan"
    title = "Darshan 3.x logs (.darshan), also of killed jobs"
    tells = frozenset(
        {"calls", "offsets", "ranks", "threads", "hosts", "files", "counters", "heatmap",
         "targets", "collective", "layers"}
    )  # fmt: skip

    def __init__(self, reading: Reading | None = None) -> None:
        self.reading = reading or Reading()

    def recognises(self, source: Path) -> bool:
        """Whether the content starts like a Darshan log. Never raises."""
        return is_log(source)

    def read(self, source: Path) -> Trace:
        """Read the job's facts and the names now, everything else when it is asked for.

        Raises:
            BrokenTraceError: this is not a Darshan log, or its header is damaged.
        """
        completeness = Completeness()
        log = read_log(source)
        job = read_job(log, completeness.warn)
        names = read_names(log, completeness.warn)
        for note in notes(log):
            completeness.warn(note)
        return DarshanLog(log, completeness, job, names, self.reading).trace()


@dataclass(frozen=True)
class DarshanLog:
    """One log; its modules are read once, when they are first asked for."""

    log: Log
    completeness: Completeness
    job: Job
    names: Mapping[int, str]
    reading: Reading = field(default_factory=Reading)
    _records: dict[str, ModuleRecords] = field(default_factory=dict, repr=False)

    def trace(self) -> Trace:
        """Return the log as a trace."""
        return Trace(
            format=DarshanReader.name,
            paths=(self.log.path,),
            job=self.job,
            partitions=self._partitions() if self.dxt else (),
            counters=LogTables(self),
            load_files=FileTableSource(lambda: self.files, lambda: self.file_facts),
            load_processes=lambda: self.processes,
            completeness=self.completeness,
        )

    def region(self, module: str) -> Region | None:
        """Where a module is; None where the log has no record of it."""
        region = self.log.modules.get(module)
        return region if region is not None and region.length else None

    @property
    def ranks(self) -> int:
        """How many ranks there can be at most."""
        return self.job.ranks or MOST_RANKS

    @cached_property
    def codes(self) -> FileCodes:
        """The rows of identifiers."""
        return FileCodes.of(self.names, len(self.names))

    def records(self, module: str) -> ModuleRecords:
        """Return the records of a module with counters."""
        if module not in self._records:
            self._records[module] = read_records(
                self.log, self.log.modules[module], self.codes,
                ranks=self.ranks, warn=self.completeness.warn,
            )  # fmt: skip
        return self._records[module]

    @cached_property
    def lustre(self) -> list[dict[str, Any]]:
        """The layout components of all files."""
        region = self.region("LUSTRE")
        return [] if region is None else [*decode_lustre(self.log, region, self.completeness.warn)]

    @cached_property
    def heat_records(self) -> list[HeatRecord]:
        """When each rank moved how many bytes."""
        region = self.region("HEATMAP")
        if region is None:
            return []
        return [*decode_heat_maps(self.log, region, self.completeness.warn)]

    @cached_property
    def mpi_calls(self) -> npt.NDArray[Any]:
        """How often each rank called MPI, and how long it was in it."""
        region = self.log.modules["APMPI"]
        return decode_apmpi(self.log, region, ranks=self.ranks, warn=self.completeness.warn)

    @cached_property
    def file_facts(self) -> FileFacts:
        """Names, mounts and stripe layouts of the files."""
        paths = {row: name for row, name in enumerate(self.names.values()) if name not in NOT_FILES}
        layouts = first_layouts(self.lustre, self.codes)
        targets = [component.get("system_targets", 0) for component in self.lustre]
        return FileFacts(
            paths,
            frozenset(row for row, path in paths.items() if not is_data(path)),
            self.job.mounts,
            {
                row: Striping(layout["stripe_size"], layout["targets"])
                for row, layout in layouts.items()
                if row in paths
            },
            max([0, *targets]) or None,
        )

    @cached_property
    def files(self) -> pl.DataFrame:
        """The names that belong to files, with mount points and stripe layouts."""
        import polars as pl

        from ioprism.formats.darshan.tables import with_datasets, with_layouts
        from ioprism.model.schema import FILES, file_table

        table = file_table(list(self.names.values()), self.job.mounts)
        table = table.with_columns(id=pl.Series(list(self.names), dtype=pl.UInt64))
        table = table.filter(~pl.col("path").is_in(NOT_FILES))
        tables = LogTables(self)
        table = with_datasets(table, [tables[name] for name in DATASETS if name in tables])
        return FILES.conform(with_layouts(table, first_layouts(self.lustre, self.codes)))

    @cached_property
    def processes(self) -> pl.DataFrame:
        """One row per rank, or per thread where DXT distinguishes threads."""
        import polars as pl

        from ioprism.model.schema import PROCESSES

        ranks = pl.int_range(self.job.ranks or 0, dtype=pl.Int32, eager=True)
        processes = pl.DataFrame({"rank": ranks})
        if self.dxt:
            processes = processes.join(self._callers(), on="rank", how="full", coalesce=True)
            processes = processes.sort("rank", "tid")
        program = (self.job.executable or "").split(" ")[0].rsplit("/", 1)[-1] or None
        application = pl.lit(program, dtype=pl.String)
        return PROCESSES.conform(
            processes.with_row_index("process").with_columns(application=application)
        )

    def _callers(self) -> pl.DataFrame:
        """The ranks, hosts and threads that DXT recorded."""
        import polars as pl

        from ioprism.formats.darshan.dxt import survey_processes

        survey = partial(survey_processes, self.log, ranks=self.ranks)
        surveys = self.reading.each(survey, self.dxt_ranges)
        for _, messages in surveys:
            for message in messages:
                self.completeness.warn(message)
        callers = pl.concat([table for table, _ in surveys])
        return callers.unique(["rank", "tid"], keep="first", maintain_order=True)

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
        from ioprism.formats.darshan.dxt import Cutter

        cutter = Cutter(self.log, self.codes, self.ranks)
        return [part for region in self.dxt for part in cutter.ranges(region)]

    def _partitions(self) -> tuple[Partition, ...]:
        from ioprism.formats.darshan.dxt import DxtPartition

        has_threads = any(dxt_segment_words(r.name, r.version) > 4 for r in self.dxt)
        threads = self.processes.select("rank", "tid", "process") if has_threads else None
        return tuple(
            DxtPartition(self.log, region, self.codes, self.ranks, threads)
            for region in self.dxt_ranges
        )


class LogTables(LazyTables):
    """The counters of a log: as tables, and as columns without a table library."""

    def __init__(self, log: DarshanLog) -> None:
        readable = (
            name for name in log.log.modules if name in {*FIXED, "LUSTRE", "HEATMAP", "APMPI"}
        )
        super().__init__(
            {name: partial(self._table, name) for name in readable if log.region(name)}
        )
        self._log = log

    def _table(self, module: str) -> pl.DataFrame:
        from ioprism.formats.darshan.tables import (
            apmpi_table,
            counter_table,
            heat_map_table,
            lustre_table,
        )

        log = self._log
        if module == "LUSTRE":
            return lustre_table(log.lustre, log.codes)
        if module == "HEATMAP":
            return heat_map_table(log.heat_records, log.names)
        if module == "APMPI":
            return apmpi_table(log.mpi_calls)
        return counter_table(log.records(module), module, FIXED[module][max(FIXED[module])])

    def columns(self, module: str) -> ModuleRecords:
        """Return a module's records, column by column."""
        return self._log.records(module)

    def height(self, module: str) -> int:
        """How many records a module has."""
        if module in FIXED:
            return len(self._log.records(module))
        others = {"LUSTRE": "lustre", "HEATMAP": "heat_records", "APMPI": "mpi_calls"}
        return len(getattr(self._log, others[module]))

    def heat_maps(self) -> dict[str, list[HeatMap]]:
        """Return when each rank moved how many bytes, by layer."""
        maps: dict[str, list[HeatMap]] = {}
        for record in self._log.heat_records:
            layer = HEATMAP_LAYERS.get(self._log.names.get(record.id, ""))
            if layer is not None:
                one = HeatMap(record.rank, record.width, record.read, record.write)
                maps.setdefault(layer, []).append(one)
        return maps
