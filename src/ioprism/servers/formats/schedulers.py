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

from ioprism.formats.text import epoch_us
from ioprism.model.counters import EARLIEST, LATEST, SECOND, Tally
from ioprism.servers.formats.records import (
    BLOCK,
    DAMAGED,
    DAMAGED_NODES,
    MOST_HOSTS,
    HostlistError,
    JobLinesReader,
    JobRows,
    beginning,
    expand_hosts,
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


class SlurmReader(JobLinesReader):
    """Reads what sacct prints with --parsable2 (or --parsable); steps are part of their job."""

    name = "slurm"
    title = "Slurm accounting: sacct --parsable2"

    def recognises(self, source: Path) -> bool:
        """Whether the first line names sacct's columns. Never raises."""
        first = beginning(source).decode("utf-8", "replace").partition("\n")[0]
        return _is_sacct_heading(first.rstrip("\r").split("|"))

    def add_jobs(self, lines: Iterator[str], rows: JobRows, zone: ZoneInfo) -> None:
        """Add the jobs that ran."""
        heading: list[str] = []
        for line in lines:
            words = line.rstrip("\r").split("|")
            if _is_sacct_heading(words):
                heading = words
            elif (values := _sacct_values(heading, words)) is None:
                rows.tally.leave_out(DAMAGED)
            else:
                _add_sacct_job(values, rows, zone)


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


def _add_sacct_job(values: Mapping[str, str], rows: JobRows, zone: ZoneInfo) -> None:
    job = next(values[name] for name in IDENTIFIERS if name in values)
    if "." in job:
        return
    try:
        servers = expand_hosts(values.get("NodeList", ""))
    except HostlistError:
        rows.tally.leave_out(DAMAGED_NODES)
        return
    rows.add(
        job,
        _sacct_time(values["Start"], zone, rows.tally),
        _sacct_time(values["End"], zone, rows.tally),
        servers,
        user=values.get("User"),
        account=values.get("Account"),
        partition=values.get("Partition"),
        name=values.get("JobName"),
        state=values.get("State", "").partition(" ")[0],
    )


def _sacct_time(text: str, zone: ZoneInfo, tally: Tally) -> int | None:
    if text in SACCT_ABSENT:
        return None
    if "T" in text and zone.key == "UTC" and "+" not in text and "Z" not in text:
        tally.note("Slurm's local times are taken as UTC; set --timezone if they are not")
    return epoch_us(text, zone)


class PbsReader(JobLinesReader):
    """Reads `date time;E;job;key=value …`; other records are ignored."""

    name = "pbs"
    title = "PBS accounting records (PBS Professional, OpenPBS, Torque)"
    marker = re.compile(rb"^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d(?:\.\d+)?;[A-Za-z];", re.MULTILINE)

    def add_jobs(self, lines: Iterator[str], rows: JobRows, zone: ZoneInfo) -> None:
        """Add the jobs that ended."""
        for line in lines:
            fields = line.split(";", 3)
            if len(fields) < 4:
                rows.tally.leave_out(DAMAGED)
            elif fields[1] == "E":
                values = {key: text.strip("\"'") for key, text in PBS_PAIR.findall(fields[3])}
                # `node1/0-1+node2/0*4` names node1 and node2.
                places = values.get("exec_host", "").split("+", MOST_HOSTS)
                state = values.get("Exit_status")
                if state is not None:
                    state = "COMPLETED" if state == "0" else f"FAILED ({state[:20]})"
                rows.add(
                    fields[2],
                    epoch_us(values.get("start", ""), zone),
                    epoch_us(values.get("end", ""), zone),
                    filter(None, (place.partition("/")[0] for place in places)),
                    user=values.get("user"),
                    account=values.get("account") or values.get("group"),
                    partition=values.get("queue"),
                    name=values.get("jobname"),
                    state=state,
                )


class LoadLevelerReader(JobLinesReader):
    """Reads the long form of `llsummary` and `llq`: the steps that have ended."""

    name = "loadleveler"
    title = "LoadLeveler listings (llsummary -l, llq -l)"
    marker = re.compile(rb"^=+ Job (?:Step )?\S+ =+\s*$", re.MULTILINE)

    def add_jobs(self, lines: Iterator[str], rows: JobRows, zone: ZoneInfo) -> None:
        """Add the steps that have ended."""
        job: dict[str, str] = {}
        step: dict[str, str] | None = None
        key = ""
        for line in lines:
            facts = job if step is None else step
            heading = HEADING.fullmatch(line)
            pair = KEY_VALUE.fullmatch(line)
            if heading is not None:
                _add_step(job, step, rows, zone)
                if heading[2] != "Step":
                    job = {}
                step = {"Step Id": heading[3]} if heading[2] != "Job" else None
            elif line.lstrip().startswith("+") and key in facts and key in HOSTS:  # it goes on
                facts[key] += f" {line.strip(' +')}"
            elif pair is not None:
                key = pair[1]
                facts.setdefault(key, (pair[2] or "").strip())
        _add_step(job, step, rows, zone)


def _add_step(
    job: dict[str, str], step: dict[str, str] | None, rows: JobRows, zone: ZoneInfo
) -> None:
    if step is None:
        return
    facts = {**job, **{key: text for key, text in step.items() if text}}
    stated = {key: text for key, text in facts.items() if text not in NOT_SET}
    hosts = HOST.findall(next((facts[key] for key in HOSTS if facts.get(key)), ""))
    partition = next((facts[key] for key in PARTITIONS if facts.get(key)), "")
    rows.add(
        facts.get("Job Step Id") or facts["Step Id"],
        next(filter(None, (_step_time(facts.get(name, ""), zone) for name in STARTS)), None),
        _step_time(facts.get("Completion Date", ""), zone),
        hosts or ([partition] if partition not in NOT_SET else []),
        user=facts.get("Owner"),
        account=stated.get("Account"),
        partition=stated.get("Class"),
        name=stated.get("Job Name"),
        state=facts.get("Status", "").upper(),
    )


def _step_time(text: str, zone: ZoneInfo) -> int | None:
    """Return microseconds since 1970; abbreviations of time zones are ignored."""
    words = text.split()
    known = ZoneInfo("UTC") if UNIVERSAL.intersection(words) else zone
    for count, kept, layout in DATES:
        if len(words) == count:
            try:
                moment = datetime.strptime(" ".join(words[n] for n in kept), layout)
            except ValueError:
                continue
            return round(moment.replace(tzinfo=known).timestamp() * SECOND)
    return None


FIELD = re.compile(r'"((?:[^"]|"")*)"|(\S+)')
REPEATED = re.compile(r"^(\d+)\*(.+)$")  # `4*hostA`: four slots on one host
# Fields before the lists of hosts, and after them; usage is 19 values.
LSF_HEAD = (
    "event", "version", "end", "job", "user_id", "options", "processors", "submitted", "begin",
    "term", "start", "user", "queue", "resources", "depends", "prepared", "from_host", "cwd",
    "input", "output", "errors", "job_file", "asked",
)  # fmt: skip
LSF_TAIL = ("status", "host_factor", "name", "command", *(f"usage{n}" for n in range(19)),
            "mail_user", "project", "exit_status", "max_processors", "login_shell", "time_event",
            "index")  # fmt: skip
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


class LsfReader(JobLinesReader):
    """Reads `lsb.acct`, whose times need no zone; other records are ignored."""

    name = "lsf"
    title = "LSF accounting records (lsb.acct)"
    marker = re.compile(rb'^"JOB_FINISH" "[\d.]+" \d+ ', re.MULTILINE)

    def add_jobs(self, lines: Iterator[str], rows: JobRows, zone: ZoneInfo) -> None:  # noqa: ARG002
        """Add the jobs that ran."""
        for line in lines:
            if not line.startswith('"JOB_FINISH"'):
                continue
            pairs = FIELD.findall(line)
            fields = [word or text.replace('""', '"') for text, word in pairs]
            try:
                _add_record(fields, rows)
            except (ValueError, LookupError):
                rows.tally.leave_out(DAMAGED)


def _add_record(fields: list[str], rows: JobRows) -> None:
    head = dict(zip(LSF_HEAD, fields, strict=False))
    place = len(LSF_HEAD) + _host_count(head["asked"], fields)
    used = _host_count(fields[place], fields)
    hosts = fields[place + 1 : place + 1 + used]
    tail = dict(zip(LSF_TAIL, fields[place + 1 + used :], strict=False))
    index = tail.get("index", "0")
    rows.add(
        head["job"] if index in ("0", "") else f"{head['job']}[{index}]",
        _record_time(head["start"]),
        _record_time(head["end"]),
        (REPEATED.sub(r"\2", host) for host in hosts),
        user=head["user"],
        account=tail.get("project"),
        partition=head["queue"],
        name=tail["name"],
        state="COMPLETED" if int(tail["status"]) & DONE else "FAILED",
    )


def _record_time(text: str) -> int | None:
    time_us = int(text) * SECOND if len(text) < 13 else 0
    return time_us if time_us and EARLIEST <= time_us <= LATEST else None


def _host_count(text: str, fields: list[str]) -> int:
    """Return how many hosts follow; raise ValueError if those are more than the record has."""
    if not 0 <= int(text) <= len(fields):
        raise ValueError(f"{text} hosts in {len(fields)} fields")
    return int(text)


class LsfTextReader(JobLinesReader):
    """Reads the long form of `bacct` and `bhist`."""

    name = "lsf-text"
    title = "LSF listings (bacct -l, bhist -l)"
    marker = re.compile(rb"^Job <\d+(?:\[\d+\])?>, ", re.MULTILINE)

    def add_jobs(self, lines: Iterator[str], rows: JobRows, zone: ZoneInfo) -> None:
        """Add the jobs that have ended."""
        for paragraph in _paragraphs(lines):
            _add_paragraph(paragraph, rows, zone)


def _paragraphs(lines: Iterator[str]) -> Iterator[list[str]]:
    """Yield the lines of each job, broken lines joined."""
    held: list[str] = []
    for line in lines:
        if line.startswith("Job <"):
            if held:
                yield held
            held = [line.rstrip()]
        elif held and line[:1].isspace() and line.strip() and len(held[-1]) < BLOCK:
            held[-1] += line.strip()
        elif held and EVENT.match(line):
            held.append(line.rstrip())
    if held:
        yield held


def _add_paragraph(paragraph: list[str], rows: JobRows, zone: ZoneInfo) -> None:
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
            hosts = LSF_HOST.findall(HOSTS_END.split(said)[0])
        elif event and ENDED.match(said) and start_us is not None:
            end_us = _event_time(event, zone)
            state = state or ("EXIT" if said.lower().startswith(("exit", "term")) else "DONE")
    rows.add(
        facts.get("Job", ""),
        start_us,
        end_us,
        hosts,
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
