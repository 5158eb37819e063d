"""Read Slurm's accounting: `sacct --parsable2` with any columns in any order.

Ask for it with: sacct -a -X -P --noconvert -o JobIDRaw,JobID,User,Account,Partition,NodeList,
Start,End,State,JobName. JobName comes last because it may hold the separator.
"""

from __future__ import annotations

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

NEEDED = {"Start", "End"}
IDENTIFIERS = ("JobIDRaw", "JobID")
FACTS = {"User": "user", "Account": "account", "Partition": "partition", "JobName": "name"}
ABSENT = frozenset({"", "Unknown", "None", "N/A", "INVALID"})


class SlurmReader:
    """Reads what sacct prints with --parsable2 (or --parsable)."""

    name = "slurm"
    title = "Slurm accounting: sacct --parsable2"

    def recognises(self, source: Path) -> bool:
        """Whether the first line names sacct's columns. Never raises."""
        return _is_heading(_split(beginning(source).decode("utf-8", "replace").partition("\n")[0]))

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
        """Return the jobs that ran; steps are left out, they are part of their job."""
        zone = zone_of(options.timezone)
        heading: list[str] = []
        rows = JobRows(Budget(source))
        for line in text_lines(source, tally):
            words = _split(line)
            if _is_heading(words):
                heading = words
            elif (values := _values(heading, words)) is None:
                tally.leave_out(DAMAGED)
            else:
                _add(values, rows, zone, tally)
        return rows.table()


def _split(line: str) -> list[str]:
    return line.rstrip("\r").split("|")


def _is_heading(words: list[str]) -> bool:
    return set(words) >= NEEDED and not set(words).isdisjoint(IDENTIFIERS)


def _values(heading: list[str], words: list[str]) -> dict[str, str] | None:
    """Pair the columns; separators too many belong to JobName, wherever it stands."""
    if len(words) > len(heading) and words[-1] == "" and heading[-1:] != [""]:
        words = words[:-1]  # --parsable ends every line with the separator
    extra = len(words) - len(heading)
    if extra > 0 and "JobName" in heading:
        place = heading.index("JobName")
        joined = "|".join(words[place : place + extra + 1])
        words = [*words[:place], joined, *words[place + extra + 1 :]]
    return dict(zip(heading, words, strict=True)) if len(words) == len(heading) else None


def _add(values: Mapping[str, str], rows: JobRows, zone: ZoneInfo, tally: Tally) -> None:
    job = next(values[name] for name in IDENTIFIERS if name in values)
    if "." in job:
        return
    try:
        servers = expand_hosts(values.get("NodeList", ""))
    except HostlistError:
        tally.leave_out(DAMAGED_NODES)
        return
    moments = {name: _moment(values[name], zone, tally) for name in ("Start", "End")}
    facts = {ours: values.get(theirs) or None for theirs, ours in FACTS.items()}
    rows.add(
        tally,
        job=job,
        start_us=moments["Start"],
        end_us=moments["End"],
        servers=servers,
        nodes=len(servers) or None,
        state=values.get("State", "").partition(" ")[0] or None,
        **facts,
    )


def _moment(text: str, zone: ZoneInfo, tally: Tally) -> int | None:
    if text in ABSENT:
        return None
    if "T" in text and zone.key == "UTC" and "+" not in text and "Z" not in text:
        tally.note("Slurm's local times are taken as UTC; set --timezone if they are not")
    return epoch_us(text, zone)
