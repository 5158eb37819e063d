"""Read what LSF's `bacct -l` and `bhist -l` print: a paragraph a job, its events in order.

Long lines are broken at the screen's width, also within words, and go on after blanks. Times
carry no zone and often no year: the latest year with that weekday is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl

from ioprism.formats.budget import Budget
from ioprism.formats.local_time import zone_of
from ioprism.model.counters import SECOND, ReadingOptions, Tally
from ioprism.servers.counter_formats.lines import beginning, text_lines
from ioprism.servers.job_formats.job_rows import JobRows

SNIFFED = re.compile(rb"^Job <\d+(?:\[\d+\])?>, ", re.MULTILINE)
FACT = re.compile(r"\b(Job|Job Name|User|Project|Status|Queue)\s*<([^<>]*)>")
EVENT = re.compile(
    r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([A-Z][a-z]{2})\s+(\d{1,2}) (\d\d):(\d\d):(\d\d)(?: (\d{4}))?: "
)
STARTED = re.compile(r"(?:\[\d+\] )?(?:dispatched|started)\b", re.IGNORECASE)
ENDED = re.compile(r"(?:Completed <|Done successfully|Exited\b|Termin)", re.IGNORECASE)
HOST = re.compile(r"<(?:\d+\*)?([\w.-]+)>")
HOSTS_END = re.compile(r"[,;]\s*(?:Allocated|Effective|Execution|Starting)")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
YEARS = 40  # to look back for the weekday
LONGEST = 400_000  # characters of a paragraph


class LsfTextReader:
    """Reads the long form of `bacct` and `bhist`."""

    name = "lsf-text"
    title = "LSF listings (bacct -l, bhist -l)"

    def recognises(self, source: Path) -> bool:
        """Whether a line names a job as these commands do. Never raises."""
        return SNIFFED.search(beginning(source)) is not None

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
        """Return the jobs that have ended."""
        zone = zone_of(options.timezone)
        rows = JobRows(Budget(source))
        for paragraph in _paragraphs(text_lines(source, tally)):
            _add(paragraph, rows, zone, tally)
        return rows.table()


def _paragraphs(lines: Iterator[str]) -> Iterator[list[str]]:
    """Yield the lines of each job, broken lines joined."""
    held: list[str] = []
    for line in lines:
        if line.startswith("Job <"):
            if held:
                yield held
            held = [line.rstrip()]
        elif held and line[:1].isspace() and line.strip() and len(held[-1]) < LONGEST:
            held[-1] += line.strip()
        elif held and EVENT.match(line):
            held.append(line.rstrip())
    if held:
        yield held


def _add(paragraph: list[str], rows: JobRows, zone: ZoneInfo, tally: Tally) -> None:
    facts = dict(FACT.findall(paragraph[0]))
    start_us = end_us = None
    hosts: list[str] = []
    state = facts.get("Status")
    for line in paragraph[1:]:
        event = EVENT.match(line)
        said = line[event.end() :] if event else ""
        facts |= {key: text for key, text in FACT.findall(said) if key == "Queue"}
        if event and STARTED.match(said):
            start_us, end_us = _moment(event, zone), None
            hosts = list(dict.fromkeys(HOST.findall(HOSTS_END.split(said)[0])))
        elif event and ENDED.match(said) and start_us is not None:
            end_us = _moment(event, zone)
            state = state or ("EXIT" if said.lower().startswith(("exit", "term")) else "DONE")
    rows.add(
        tally,
        job=facts.get("Job", ""),
        start_us=start_us,
        end_us=end_us,
        servers=hosts,
        nodes=len(hosts) or None,
        user=facts.get("User"),
        account=facts.get("Project"),
        partition=facts.get("Queue"),
        name=facts.get("Job Name"),
        state={"DONE": "COMPLETED", "EXIT": "FAILED"}.get(state or "", state),
    )


def _moment(event: re.Match[str], zone: ZoneInfo) -> int | None:
    if event[2] not in MONTHS:
        return None
    month = MONTHS.index(event[2]) + 1
    day, hour, minute, second = (int(event[place]) for place in range(3, 7))
    now = datetime.now(zone)
    years = [int(event[7])] if event[7] else range(now.year, now.year - YEARS, -1)
    for year in years:
        try:
            moment = datetime(year, month, day, hour, minute, second, tzinfo=zone)
        except ValueError:
            continue
        if event[7] or (moment <= now and moment.weekday() == DAYS.index(event[1])):
            return round(moment.timestamp() * SECOND)
    return None
