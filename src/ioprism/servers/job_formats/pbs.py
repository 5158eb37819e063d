"""Read the accounting of PBS Professional, OpenPBS and Torque: the E records of ended jobs."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from ioprism.formats.budget import Budget
from ioprism.formats.local_time import epoch_us, zone_of
from ioprism.model.counters import ReadingOptions, Tally
from ioprism.servers.counter_formats.lines import DAMAGED, beginning, text_lines
from ioprism.servers.job_formats.hostlist import MOST_HOSTS
from ioprism.servers.job_formats.job_rows import JobRows

SNIFFED = re.compile(rb"^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d(?:\.\d+)?;[A-Za-z];", re.MULTILINE)
PAIR = re.compile(r"""([\w.-]+)=("(?:[^"\\]|\\.)*"|'[^']*'|\S*)""")


class PbsReader:
    """Reads `date time;E;job;key=value …`; other records are passed over."""

    name = "pbs"
    title = "PBS accounting records (PBS Professional, OpenPBS, Torque)"

    def recognises(self, source: Path) -> bool:
        """Whether a line begins as an accounting record does. Never raises."""
        return SNIFFED.search(beginning(source)) is not None

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
        """Return the jobs that ended."""
        zone = zone_of(options.timezone)
        rows = JobRows(Budget(source))
        for line in text_lines(source, tally):
            fields = line.split(";", 3)
            if len(fields) < 4:
                tally.leave_out(DAMAGED)
            elif fields[1] == "E":
                values = {key: text.strip("\"'") for key, text in PAIR.findall(fields[3])}
                hosts = _hosts(values.get("exec_host", ""))
                rows.add(
                    tally,
                    job=fields[2],
                    start_us=epoch_us(values.get("start", ""), zone),
                    end_us=epoch_us(values.get("end", ""), zone),
                    servers=hosts,
                    nodes=len(hosts) or None,
                    user=values.get("user"),
                    account=values.get("account") or values.get("group"),
                    partition=values.get("queue"),
                    name=values.get("jobname"),
                    state=_state(values.get("Exit_status")),
                )
        return rows.table()


def _hosts(text: str) -> list[str]:
    """`node1/0-1+node2/0*4` names node1 and node2."""
    names = (place.partition("/")[0] for place in text.split("+", MOST_HOSTS))
    return list(dict.fromkeys(name for name in names if name))


def _state(status: str | None) -> str | None:
    if status is None:
        return None
    return "COMPLETED" if status == "0" else f"FAILED ({status[:20]})"
