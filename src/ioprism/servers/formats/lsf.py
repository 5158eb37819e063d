"""Read LSF's jobs: JOB_FINISH records of `lsb.acct`, and what `bacct -l` and `bhist -l` print.

In `lsb.acct` fields are separated by blanks and text is in double quotes, with a double quote
inside written twice. Up to the lists of hosts the order of fields is the same since LSF 6.

The listings have one paragraph per job, its events in order. Long lines are broken at the width
of the screen, also within words, and go on after blanks. Times have no zone and often no year:
the latest year with that weekday is meant.
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
from ioprism.model.counters import EARLIEST, LATEST, SECOND, ReadingOptions, Tally
from ioprism.servers.formats.records import DAMAGED, JobRows, MarkedReader, text_lines

FIELD = re.compile(r'"((?:[^"]|"")*)"|(\S+)')
REPEATED = re.compile(r"(\d+)\*(.+)")
# Places of fields, counted from the record's type.
END, JOB, START, USER, QUEUE, ASKED = 2, 3, 10, 11, 12, 22
USAGE_VALUES = 19  # resource usage between the command and the mail user
DONE = 64
FACT = re.compile(r"\b(Job|Job Name|User|Project|Status|Queue)\s*<([^<>]*)>")
EVENT = re.compile(
    r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([A-Z][a-z]{2})\s+(\d{1,2}) (\d\d):(\d\d):(\d\d)(?: (\d{4}))?: "
)
STARTED = re.compile(r"(?:\[\d+\] )?(?:dispatched|started)\b", re.IGNORECASE)
ENDED = re.compile(r"(?:Completed <|Done successfully|Exited\b|Termin)", re.IGNORECASE)
HOST = re.compile(r"<(?:\d+\*)?([\w.-]+)>")
HOSTS_END = re.compile(r"[,;]\s*(?:Allocated|Effective|Execution|Starting)")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MAX_YEARS_BACK = 40  # to look back for the weekday
MAX_PARAGRAPH = 400_000  # characters of a paragraph


class LsfReader(MarkedReader):
    """Reads `lsb.acct`; other records are ignored."""

    name = "lsf"
    title = "LSF accounting records (lsb.acct)"
    marker = re.compile(rb'^"JOB_FINISH" "[\d.]+" \d+ ', re.MULTILINE)

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
        """Return the jobs that ran; times in these records need no zone."""
        del options
        rows = JobRows(Budget(source))
        for line in text_lines(source, tally):
            if not line.startswith('"JOB_FINISH"'):
                continue
            try:
                _add_record(_fields(line), rows, tally)
            except (ValueError, IndexError):
                tally.leave_out(DAMAGED)
        return rows.table()


def _fields(line: str) -> list[str]:
    return [text.replace('""', '"') if word == "" else word for text, word in FIELD.findall(line)]


def _add_record(fields: list[str], rows: JobRows, tally: Tally) -> None:
    asked = int(fields[ASKED])
    place = ASKED + 1 + _host_count(asked, fields)
    used = _host_count(int(fields[place]), fields)
    hosts = list(dict.fromkeys(_host(text) for text in fields[place + 1 : place + 1 + used]))
    after = fields[place + 1 + used :]  # status, host factor, job name, command, usage, mail user
    index = after[2 + 2 + USAGE_VALUES + 6] if len(after) > 2 + 2 + USAGE_VALUES + 6 else "0"
    rows.add(
        tally,
        job=fields[JOB] if index in ("0", "") else f"{fields[JOB]}[{index}]",
        start_us=_record_time(fields[START]),
        end_us=_record_time(fields[END]),
        servers=hosts,
        nodes=len(hosts) or None,
        user=fields[USER] or None,
        account=after[2 + 2 + USAGE_VALUES + 1] or None if len(after) > 24 else None,
        partition=fields[QUEUE] or None,
        name=after[2] or None,
        state="COMPLETED" if int(after[0]) & DONE else "FAILED",
    )


def _host_count(number: int, fields: list[str]) -> int:
    """Return how many hosts follow.

    Raises:
        ValueError: more than the record has.
    """
    if not 0 <= number <= len(fields):
        raise ValueError(f"{number} hosts in {len(fields)} fields")
    return number


def _host(text: str) -> str:
    """`4*hostA` is the short form of four slots on one host."""
    repeated = REPEATED.fullmatch(text)
    return repeated[2] if repeated else text


def _record_time(text: str) -> int | None:
    time_us = int(text) * SECOND if len(text) < 13 else 0
    return time_us if time_us and EARLIEST <= time_us <= LATEST else None


class LsfTextReader(MarkedReader):
    """Reads the long form of `bacct` and `bhist`."""

    name = "lsf-text"
    title = "LSF listings (bacct -l, bhist -l)"
    marker = re.compile(rb"^Job <\d+(?:\[\d+\])?>, ", re.MULTILINE)

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
        """Return the jobs that have ended."""
        zone = zone_of(options.timezone)
        rows = JobRows(Budget(source))
        for paragraph in _paragraphs(text_lines(source, tally)):
            _add_paragraph(paragraph, rows, zone, tally)
        return rows.table()


def _paragraphs(lines: Iterator[str]) -> Iterator[list[str]]:
    """Yield the lines of each job, broken lines joined."""
    held: list[str] = []
    for line in lines:
        if line.startswith("Job <"):
            if held:
                yield held
            held = [line.rstrip()]
        elif held and line[:1].isspace() and line.strip() and len(held[-1]) < MAX_PARAGRAPH:
            held[-1] += line.strip()
        elif held and EVENT.match(line):
            held.append(line.rstrip())
    if held:
        yield held


def _add_paragraph(paragraph: list[str], rows: JobRows, zone: ZoneInfo, tally: Tally) -> None:
    facts = dict(FACT.findall(paragraph[0]))
    start_us = end_us = None
    hosts: list[str] = []
    state = facts.get("Status")
    for line in paragraph[1:]:
        event = EVENT.match(line)
        said = line[event.end() :] if event else ""
        facts |= {key: text for key, text in FACT.findall(said) if key == "Queue"}
        if event and STARTED.match(said):
            start_us, end_us = _event_time(event, zone), None
            hosts = list(dict.fromkeys(HOST.findall(HOSTS_END.split(said)[0])))
        elif event and ENDED.match(said) and start_us is not None:
            end_us = _event_time(event, zone)
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


def _event_time(event: re.Match[str], zone: ZoneInfo) -> int | None:
    if event[2] not in MONTHS:
        return None
    month = MONTHS.index(event[2]) + 1
    day, hour, minute, second = (int(event[place]) for place in range(3, 7))
    now = datetime.now(zone)
    years = [int(event[7])] if event[7] else range(now.year, now.year - MAX_YEARS_BACK, -1)
    for year in years:
        try:
            moment = datetime(year, month, day, hour, minute, second, tzinfo=zone)
        except ValueError:
            continue
        if event[7] or (moment <= now and moment.weekday() == WEEKDAYS.index(event[1])):
            return round(moment.timestamp() * SECOND)
    return None
