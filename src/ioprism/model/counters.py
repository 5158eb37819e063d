"""Counters of file-system servers and the jobs that ran beside them, as tables.

Times are whole microseconds since 1970 (so that shifting them loses nothing); counters are
cumulative and never interpolated here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from ioprism.model.schema import Column, Table

SECOND = 1_000_000  # microseconds
# 1900 to 2200: a time outside is damage, and would only litter the store with months.
EARLIEST = -2_208_988_800 * SECOND
LATEST = 7_258_118_400 * SECOND

BYTES = {"read": "br", "write": "bw"}
OPERATIONS = {"read": "rdc", "write": "wc"}
DIRECTIONS = ("read", "write")
VALUES = ("br", "bw", "rdc", "wc", "oc", "cc")

# What a record counts; it decides what a decrease means and what would be counted twice.
NODE_TOTAL = "gpfs-node"  # all file systems of a node: an unmount takes its share away
FILE_SYSTEM = "gpfs-filesystem"
TARGET = "lustre-target"
TABLE = "table"

COUNTERS = Table(
    "counters",
    "One row for every sample of a server's cumulative counters.",
    (
        Column("server", pl.String(), "the server, or the storage target of a Lustre server"),
        Column("part", pl.String(), "what of the server is counted: a file system, or empty"),
        Column("job", pl.String(), "the job identifier of a per-job counter", nullable=True),
        Column("source", pl.String(), "what kind of record it is"),
        Column("since_us", pl.Int64(), "when the counter last started from 0", "µs", nullable=True),
        Column("time_us", pl.Int64(), "when the sample was taken, since 1970", "µs"),
        Column("br", pl.Int64(), "bytes read", "B", nullable=True),
        Column("bw", pl.Int64(), "bytes written", "B", nullable=True),
        Column("rdc", pl.Int64(), "read operations", nullable=True),
        Column("wc", pl.Int64(), "write operations", nullable=True),
        Column("oc", pl.Int64(), "files opened", nullable=True),
        Column("cc", pl.Int64(), "files closed", nullable=True),
    ),
)
SERIES_KEY = ("server", "part", "job", "source")
RECORD_KEY = (*SERIES_KEY, "since_us", "time_us")

JOBS = Table(
    "jobs",
    "One row for every finished run of a job.",
    (
        Column("job", pl.String(), "the scheduler's identifier"),
        Column("start_us", pl.Int64(), "when it began, since 1970", "µs"),
        Column("end_us", pl.Int64(), "when it ended; after `start_us`", "µs"),
        Column("servers", pl.List(pl.String()), "the I/O servers it used, once for each node"),
        Column("nodes", pl.Int64(), "how many compute nodes it had", nullable=True),
        Column("user", pl.String(), "who ran it", nullable=True),
        Column("account", pl.String(), "who pays for it", nullable=True),
        Column("partition", pl.String(), "the partition or queue", nullable=True),
        Column("name", pl.String(), "what its user called it", nullable=True),
        Column("state", pl.String(), "how it ended", nullable=True),
    ),
)


class Tally:
    """How many records a reader found, and why it left others out."""

    def __init__(self) -> None:
        self.records = 0
        self.left_out: Counter[str] = Counter()
        self.notes: dict[str, None] = {}

    def leave_out(self, reason: str, *, count: int = 1) -> None:
        """Count records that are not used, and why."""
        if count:
            self.left_out[reason] += count

    def note(self, message: str) -> None:
        """Keep a message once."""
        self.notes[message] = None

    def warnings(self) -> list[str]:
        """Say what was left out, most frequent first."""
        counted = [f"{count} × {reason}" for reason, count in self.left_out.most_common()]
        return [*counted, *self.notes]


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """What a file cannot tell by itself."""

    time_us: int | None = None  # when a scrape without time stamps was taken
    timezone: str = "UTC"  # of local times without a zone


class CounterSource(Protocol):
    """Counters that can be asked for by server and time."""

    def servers(self) -> Sequence[str]:
        """Name every server, sorted."""
        ...

    def per_job_servers(self) -> Sequence[str]:
        """Name the servers that keep counters for each job, sorted."""
        ...

    def span(self) -> tuple[int, int] | None:
        """Return when the first and the last sample of any server was taken, if there are any."""
        ...

    def counters(
        self, server: str, *, start_us: int, end_us: int, per_job: bool = False
    ) -> pl.DataFrame:
        """Return a server's samples in this span: its own counters, or those of each job."""
        ...


def each_run_once(jobs: pl.DataFrame) -> pl.DataFrame:
    """Keep one row a run, whatever order they came in: the one that tells the latest end."""
    ordered = JOBS.conform(jobs).sort(
        "start_us", "job", "end_us", "state", pl.col("servers").list.join(" "), "nodes", "user",
        "account", "partition", "name", nulls_last=False,
    )  # fmt: skip
    return ordered.unique(["job", "start_us"], keep="last", maintain_order=True)
