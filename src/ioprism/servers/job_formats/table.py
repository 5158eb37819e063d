"""Read jobs from a plain CSV table: `job_id,start,end,servers` and, if known, who ran them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl

from ioprism.formats.budget import Budget
from ioprism.formats.local_time import epoch_us, zone_of
from ioprism.model.counters import ReadingOptions, Tally
from ioprism.servers.counter_formats.lines import DAMAGED, beginning, text_lines
from ioprism.servers.job_formats.hostlist import HostlistError, expand_hosts
from ioprism.servers.job_formats.job_rows import DAMAGED_NODES, JobRows

NEEDED = {"job_id", "start", "end"}
FACTS = ("user", "account", "partition", "name", "state")


class JobTableReader:
    """Reads a CSV with a heading; servers are separated by blanks, ranges may be in brackets."""

    name = "job-table"
    title = "jobs as CSV: job_id,start,end,servers[,nodes,user,account,partition,name,state]"

    def recognises(self, source: Path) -> bool:
        """Whether the heading names a job, a start and an end. Never raises."""
        first = beginning(source, size=4096).decode("utf-8", "replace").partition("\n")[0]
        return set(first.lstrip("\ufeff").strip().split(",")) >= NEEDED

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
        """Return the jobs."""
        zone = zone_of(options.timezone)
        lines = text_lines(source, tally)
        heading = next(lines, "").lstrip("\ufeff").strip().split(",")
        rows = JobRows(Budget(source))
        for line in lines:
            words = _words(line)
            if words is None or len(words) != len(heading):
                tally.leave_out(DAMAGED)
            else:
                _add(dict(zip(heading, words, strict=True)), rows, zone, tally)
        return rows.table()


def _words(line: str) -> list[str] | None:
    try:
        return next(csv.reader([line]), None)
    except csv.Error:
        return None


def _add(values: Mapping[str, str], rows: JobRows, zone: ZoneInfo, tally: Tally) -> None:
    try:
        given = [expand_hosts(word) for word in values.get("servers", "").split()]
    except HostlistError:
        tally.leave_out(DAMAGED_NODES)
        return
    servers = list(dict.fromkeys(name for names in given for name in names))
    rows.add(
        tally,
        job=values["job_id"],
        start_us=epoch_us(values["start"], zone),
        end_us=epoch_us(values["end"], zone),
        servers=servers,
        nodes=_count(values.get("nodes", "")),
        **{name: values.get(name) or None for name in FACTS},
    )


def _count(text: str) -> int | None:
    return int(text) if text.isdecimal() and 0 < len(text) < 8 and int(text) else None
