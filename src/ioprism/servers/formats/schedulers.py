"""Read the job lists of Slurm (`sacct`), PBS, LSF (`lsb.acct`, `bacct -l`) and LoadLeveler.

Ask Slurm with: sacct -a -X -P --noconvert -o JobIDRaw,JobID,User,Account,Partition,NodeList,
Start,End,State,JobName. JobName comes last because it may contain the separator.

LoadLeveler prints a job as a block of `key: value` lines; its steps follow, each with its hosts
and times. On a Blue Gene a step names its partition instead of hosts: --server-map gives the
I/O nodes of the partition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl

from ioprism.formats.reading import Budget
from ioprism.formats.text import epoch_us, zone_of
from ioprism.model.counters import EARLIEST, LATEST, SECOND, ReadingOptions, Tally
from ioprism.servers.formats.records import (
    DAMAGED,
    DAMAGED_NODES,
    MOST_HOSTS,
    HostlistError,
    JobRows,
    MarkedReader,
    beginning,
    expand_hosts,
    text_lines,
)

SACCT_COLUMNS = {"Start", "End"}
IDENTIFIERS = ("JobIDRaw", "JobID")
SACCT_ABSENT = frozenset({"", "Unknown", "None", "N/A", "INVALID"})
PBS_PAIR = re.compile(r"""([\w.-]+)=("(?:[^"\\]|\\.)*"|'[^']*'|\S*)""")
HEADING = re.compile(r"([=-])\1+ (Job|Step|Job Step) (\S+) [=-]+\s*")
KEY_VALUE = re.compile(r"\s*([A-Z][\w ./-]{0,40}?)\s*:(?:\s(.*))?")
HOST = re.compile(r"([A-Za-z0-9][\w.-]*)(?::\S*)?")  # `node1::MPI,us`, or a name alone
HOSTS = ("Allocated Hosts", "Allocated Host", "Allocated Machines")
PARTITIONS = ("BG Partition Allocated", "BG Block Allocated", "BG Partition")
STARTS = ("Start Time", "Dispatch Time")
NOT_SET = frozenset({"", "None", "Not set", "unspecified"})
UNIVERSAL = frozenset({"UTC", "GMT"})
# How many words a date has, those that count, and what they mean.
DATES = (
    (6, (1, 2, 3, 5), "%b %d %H:%M:%S %Y"),  # Tue Jul 24 10:19:38 CDT 2007
    (5, (1, 2, 3, 4), "%b %d %H:%M:%S %Y"),  # Tue Jul 24 10:19:38 2007
    (7, (1, 2, 3, 4, 5), "%d %b %Y %I:%M:%S %p"),  # Tue 24 Jul 2007 10:19:38 AM CDT (en_US)
    (6, (1, 2, 3, 4), "%d %b %Y %H:%M:%S"),  # Tue 24 Jul 2007 10:19:38 CEST (other locales)
)


class SlurmReader:
    """Reads what sacct prints with --parsable2 (or --parsable)."""

    name = "slurm"
    title = "Slurm accounting: sacct --parsable2"

    def recognises(self, source: Path) -> bool:
        """Whether the first line names sacct's columns. Never raises."""
        return _is_sacct_heading(
            _split_sacct(beginning(source).decode("utf-8", "replace").partition("\n")[0])
        )

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
        """Return the jobs that ran; steps are left out, they are part of their job."""
        zone = zone_of(options.timezone)
        heading: list[str] = []
        rows = JobRows(Budget(source))
        for line in text_lines(source, tally):
            words = _split_sacct(line)
            if _is_sacct_heading(words):
                heading = words
            elif (values := _sacct_values(heading, words)) is None:
                tally.leave_out(DAMAGED)
            else:
                _add_sacct_job(values, rows, zone, tally)
        return rows.table()


def _split_sacct(line: str) -> list[str]:
    return line.rstrip("\r").split("|")


def _is_sacct_heading(words: list[str]) -> bool:
    return set(words) >= SACCT_COLUMNS and not set(words).isdisjoint(IDENTIFIERS)


def _sacct_values(heading: list[str], words: list[str]) -> dict[str, str] | None:
    """Pair the columns; separators too many belong to JobName, wherever it stands."""
    if len(words) > len(heading) and words[-1] == "" and heading[-1:] != [""]:
        words = words[:-1]  # --parsable ends every line with the separator
    extra = len(words) - len(heading)
    if extra > 0 and "JobName" in heading:
        place = heading.index("JobName")
        joined = "|".join(words[place : place + extra + 1])
        words = [*words[:place], joined, *words[place + extra + 1 :]]
    return dict(zip(heading, words, strict=True)) if len(words) == len(heading) else None


def _add_sacct_job(values: Mapping[str, str], rows: JobRows, zone: ZoneInfo, tally: Tally) -> None:
    job = next(values[name] for name in IDENTIFIERS if name in values)
    if "." in job:
        return
    try:
        servers = expand_hosts(values.get("NodeList", ""))
    except HostlistError:
        tally.leave_out(DAMAGED_NODES)
        return
    moments = {name: _sacct_time(values[name], zone, tally) for name in ("Start", "End")}
    rows.add(
        tally,
        job=job,
        start_us=moments["Start"],
        end_us=moments["End"],
        servers=servers,
        nodes=len(servers) or None,
        user=values.get("User") or None,
        account=values.get("Account") or None,
        partition=values.get("Partition") or None,
        name=values.get("JobName") or None,
        state=values.get("State", "").partition(" ")[0] or None,
    )


def _sacct_time(text: str, zone: ZoneInfo, tally: Tally) -> int | None:
    if text in SACCT_ABSENT:
        return None
    if "T" in text and zone.key == "UTC" and "+" not in text and "Z" not in text:
        tally.note("Slurm's local times are taken as UTC; set --timezone if they are not")
    return epoch_us(text, zone)


class PbsReader(MarkedReader):
    """Reads `date time;E;job;key=value …`; other records are ignored."""

    name = "pbs"
    title = "PBS accounting records (PBS Professional, OpenPBS, Torque)"
    marker = re.compile(rb"^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d(?:\.\d+)?;[A-Za-z];", re.MULTILINE)

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
        """Return the jobs that ended."""
        zone = zone_of(options.timezone)
        rows = JobRows(Budget(source))
        for line in text_lines(source, tally):
            fields = line.split(";", 3)
            if len(fields) < 4:
                tally.leave_out(DAMAGED)
            elif fields[1] == "E":
                values = {key: text.strip("\"'") for key, text in PBS_PAIR.findall(fields[3])}
                hosts = _pbs_hosts(values.get("exec_host", ""))
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
                    state=_pbs_state(values.get("Exit_status")),
                )
        return rows.table()


def _pbs_hosts(text: str) -> list[str]:
    """`node1/0-1+node2/0*4` names node1 and node2."""
    names = (place.partition("/")[0] for place in text.split("+", MOST_HOSTS))
    return list(dict.fromkeys(name for name in names if name))


def _pbs_state(status: str | None) -> str | None:
    if status is None:
        return None
    return "COMPLETED" if status == "0" else f"FAILED ({status[:20]})"


class LoadLevelerReader(MarkedReader):
    """Reads the long form of `llsummary` and `llq`."""

    name = "loadleveler"
    title = "LoadLeveler listings (llsummary -l, llq -l)"
    marker = re.compile(rb"^=+ Job (?:Step )?\S+ =+\s*$", re.MULTILINE)

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
        """Return the steps that have ended."""
        blocks = _LoadLevelerBlocks(zone_of(options.timezone), JobRows(Budget(source)), tally)
        for line in text_lines(source, tally):
            blocks.take(line)
        blocks.finish()
        return blocks.rows.table()


class _LoadLevelerBlocks:
    """Where in the text the reader is: a job's facts, and those of its step."""

    def __init__(self, zone: ZoneInfo, rows: JobRows, tally: Tally) -> None:
        self._zone, self.rows, self._tally = zone, rows, tally
        self._job: dict[str, str] = {}
        self._step: dict[str, str] = {}
        self._in_step = False
        self._key = ""

    def take(self, line: str) -> None:
        """Understand one line."""
        heading = HEADING.fullmatch(line)
        pair = KEY_VALUE.fullmatch(line)
        if heading is not None:
            self.finish()
            if heading[2] != "Step":
                self._job = {}
            self._in_step = heading[2] != "Job"
            self._step = {"Step Id": heading[3]} if self._in_step else {}
        elif line.lstrip().startswith("+") and self._key in HOSTS:  # a list of hosts goes on
            self._facts[self._key] += f" {line.strip(' +')}"
        elif pair is not None:
            self._key = pair[1]
            self._facts.setdefault(pair[1], (pair[2] or "").strip())

    @property
    def _facts(self) -> dict[str, str]:
        return self._step if self._in_step else self._job

    def finish(self) -> None:
        """Add the step that is complete now."""
        if not self._in_step:
            return
        facts = {**self._job, **{key: text for key, text in self._step.items() if text}}
        servers = _allocated_servers(facts)
        self.rows.add(
            self._tally,
            job=facts.get("Job Step Id") or facts["Step Id"],
            start_us=next(filter(None, (self._moment(facts, name) for name in STARTS)), None),
            end_us=self._moment(facts, "Completion Date"),
            servers=servers,
            nodes=len(servers) or None,
            user=facts.get("Owner"),
            account=_set_value(facts.get("Account")),
            partition=_set_value(facts.get("Class")),
            name=_set_value(facts.get("Job Name")),
            state=(facts.get("Status") or "").upper() or None,
        )
        self._step, self._in_step = {}, False

    def _moment(self, facts: dict[str, str], name: str) -> int | None:
        """Return microseconds since 1970; abbreviations of time zones are ignored."""
        words = facts.get(name, "").split()
        zone = self._zone
        if UNIVERSAL.intersection(words):
            zone = ZoneInfo("UTC")
        for count, kept, layout in DATES:
            if len(words) == count:
                try:
                    moment = datetime.strptime(" ".join(words[n] for n in kept), layout)
                except ValueError:
                    continue
                return round(moment.replace(tzinfo=zone).timestamp() * SECOND)
        return None


def _allocated_servers(facts: dict[str, str]) -> list[str]:
    listed = next((facts[key] for key in HOSTS if facts.get(key)), "")
    hosts = list(dict.fromkeys(HOST.findall(listed)))
    partition = next((facts[key] for key in PARTITIONS if facts.get(key)), "")
    return hosts or ([partition] if partition not in NOT_SET else [])


def _set_value(text: str | None) -> str | None:
    return None if text is None or text in NOT_SET else text


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
LSF_HOST = re.compile(r"<(?:\d+\*)?([\w.-]+)>")
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
            hosts = list(dict.fromkeys(LSF_HOST.findall(HOSTS_END.split(said)[0])))
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
