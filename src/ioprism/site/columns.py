"""The tables of a site store: every job of a centre, what it lost, and to what.

Each table is a folder of Parquet files that polars, pandas and DuckDB open as they are.
"""

from __future__ import annotations

import polars as pl

from ioprism.model.schema import Column, Table

_JOB = Column("job", pl.String(), "the log, by a digest of its content")

SITE_JOBS = Table(
    "jobs",
    "One row for every job.",
    (
        _JOB,
        Column("path", pl.String(), "where the log was"),
        Column("job_id", pl.String(), "the scheduler's number of the job", nullable=True),
        Column("user", pl.String(), "who ran it", nullable=True),
        Column("application", pl.String(), "the program, without its folder", nullable=True),
        Column("start", pl.Float64(), "when it started, since 1970", "s", nullable=True),
        Column("runtime", pl.Float64(), "how long it ran", "s"),
        Column("ranks", pl.Int64(), "MPI ranks or processes"),
        Column("nodes", pl.Int64(), "nodes that the log names", nullable=True),
        Column(
            "cores_per_node",
            pl.Int64(),
            "as `add --cores-per-node` said, to estimate nodes",
            nullable=True,
        ),
        Column("status", pl.String(), "cause, possible, none or cannot-judge"),
        Column("io_stall", pl.Float64(), "I/O stall time; null if not judged", "s", nullable=True),
        Column("first_cause", pl.String(), "the main cause; null if there is none", nullable=True),
        Column(
            "saving",
            pl.Float64(),
            "what removing all causes saves; null if not judged",
            "s",
            nullable=True,
        ),
        Column("bytes_read", pl.Int64(), "bytes read", "B"),
        Column("bytes_written", pl.Int64(), "bytes written", "B"),
        Column("operations", pl.Int64(), "reads and writes"),
        Column("metadata", pl.Int64(), "metadata calls"),
        Column("request_bytes", pl.Float64(), "mean size of a read or write", "B", nullable=True),
        Column("collective", pl.Float64(), "share of collective MPI-IO calls", nullable=True),
        Column("rate", pl.Float64(), "bytes over the time in calls", "B/s", nullable=True),
        Column("layers", pl.String(), "interfaces used, joined by +"),
        Column("files", pl.Int64(), "files touched"),
        Column("stripe_count", pl.Float64(), "mean stripe count of its files", nullable=True),
        Column("warnings", pl.Int64(), "what is missing from the log"),
        Column("pattern", pl.String(), "periodic, possible, slotted or none", nullable=True),
        Column("period", pl.Float64(), "distance of its I/O phases", "s", nullable=True),
        Column("period_of", pl.String(), "read, write or both", nullable=True),
        Column("duty_cycle", pl.Float64(), "share of a period with I/O", nullable=True),
        Column("phase_bytes", pl.Float64(), "bytes of a phase", "B", nullable=True),
        Column("period_confidence", pl.Float64(), "from 0 to 1", nullable=True),
    ),
)

SITE_CAUSES = Table(
    "causes",
    "One row for every cause of I/O stall time of a job.",
    (
        _JOB,
        Column("code", pl.String(), "the cause"),
        Column("subject", pl.String(), "the culprit, in words"),
        Column("culprit", pl.String(), "the culprit, as JSON"),
        Column("saving", pl.Float64(), "what removing it saves", "s"),
        Column("low", pl.Float64(), "lower end of the 90 % interval", "s"),
        Column("high", pl.Float64(), "upper end of the 90 % interval", "s"),
        Column("confidence", pl.Float64(), "from 0 to 1"),
        Column("title", pl.String(), "the cause in a sentence"),
        Column("advice", pl.String(), "what to do first", nullable=True),
    ),
)


_FILE_SYSTEM = Column("file_system", pl.String(), "mount point of the file system")


def _parts(name: str, key: str, meaning: str, *where: Column) -> Table:
    return Table(
        name,
        f"One row for every {meaning} that a job used.",
        (
            _JOB,
            Column("start", pl.Float64(), "when the job started, since 1970", "s", nullable=True),
            *where,
            Column(key, pl.String(), f"the {meaning}"),
            Column("operations", pl.Int64(), "reads and writes"),
            Column("bytes", pl.Int64(), "bytes moved", "B"),
            Column("seconds", pl.Float64(), "time in calls", "s"),
            Column("rate", pl.Float64(), "bytes over time", "B/s"),
            Column(
                "relative",
                pl.Float64(),
                "its rate over the median of the job's others; null where the log cannot tell",
                nullable=True,
            ),
        ),
    )


SITE_TARGETS = _parts("targets", "target", "storage target", _FILE_SYSTEM)
SITE_HOSTS = _parts("hosts", "host", "node")

SITE_FILES = Table(
    "files",
    "The files of a job that take longest, one row each, and the others by kind.",
    (
        _JOB,
        _FILE_SYSTEM,
        Column("pattern", pl.String(), "the path with every run of digits replaced by `#`"),
        Column("file", pl.String(), "the path; null for several files of a kind", nullable=True),
        Column("files", pl.Int64(), "files of this row"),
        Column("operations", pl.Int64(), "reads and writes"),
        Column("bytes_read", pl.Int64(), "bytes read", "B"),
        Column("bytes_written", pl.Int64(), "bytes written", "B"),
        Column("seconds", pl.Float64(), "time in calls", "s"),
    ),
)

SITE_RATES = Table(
    "rates",
    "One row for every way in which a job moved data, with the rate that it reached.",
    (
        _JOB,
        _FILE_SYSTEM,
        Column("operation", pl.String(), "read or write"),
        Column("size_class", pl.Int64(), "class of the mean request, 0 to 9 as Darshan's"),
        Column("shared", pl.Boolean(), "whether several ranks use each file"),
        Column("ranks", pl.Int64(), "ranks that move it"),
        Column("targets", pl.Int64(), "storage targets of its files", nullable=True),
        Column("requests", pl.Int64(), "reads or writes"),
        Column("bytes", pl.Int64(), "bytes moved", "B"),
        Column("seconds", pl.Float64(), "of the slowest rank, with syncs", "s"),
        Column("synced", pl.Boolean(), "whether written data was forced to storage"),
    ),
)

SITE_TABLES = {
    table.name: table
    for table in (SITE_JOBS, SITE_CAUSES, SITE_TARGETS, SITE_HOSTS, SITE_FILES, SITE_RATES)
}
