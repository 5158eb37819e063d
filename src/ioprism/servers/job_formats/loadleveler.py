"""Read LoadLeveler's long listings: `llsummary -l` of ended jobs, `llq -l` of others.

A job is a block of `key: value` lines, keys set flush right; its steps follow, each with hosts
and times of its own. On a Blue Gene a step names its partition instead of hosts: --server-map
tells the I/O nodes behind it.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl

from ioprism.formats.budget import Budget
from ioprism.formats.local_time import zone_of
from ioprism.model.counters import SECOND, ReadingOptions, Tally
from ioprism.servers.counter_formats.lines import beginning, text_lines
from ioprism.servers.job_formats.job_rows import JobRows

SNIFFED = re.compile(rb"^=+ Job (?:Step )?\S+ =+\s*$", re.MULTILINE)
HEADING = re.compile(r"([=-])\1+ (Job|Step|Job Step) (\S+) [=-]+\s*")
PAIR = re.compile(r"\s*([A-Z][\w ./-]{0,40}?)\s*:(?:\s(.*))?")
HOST = re.compile(r"([A-Za-z0-9][\w.-]*)(?::\S*)?")  # `node1::MPI,us`, or a name alone
HOSTS = ("Allocated Hosts", "Allocated Host", "Allocated Machines")
PARTITIONS = ("BG Partition Allocated", "BG Block Allocated", "BG Partition")
STARTS = ("Start Time", "Dispatch Time")
ABSENT = frozenset({"", "None", "Not set", "unspecified"})
UNIVERSAL = frozenset({"UTC", "GMT"})
# How many words a date has, those that count, and what they mean.
DATES = (
    (6, (1, 2, 3, 5), "%b %d %H:%M:%S %Y"),  # Tue Jul 24 10:19:38 CDT 2007
    (5, (1, 2, 3, 4), "%b %d %H:%M:%S %Y"),  # Tue Jul 24 10:19:38 2007
    (7, (1, 2, 3, 4, 5), "%d %b %Y %I:%M:%S %p"),  # Tue 24 Jul 2007 10:19:38 AM CDT (en_US)
    (6, (1, 2, 3, 4), "%d %b %Y %H:%M:%S"),  # Tue 24 Jul 2007 10:19:38 CEST (other locales)
)


class LoadLevelerReader:
    """Reads the long form of `llsummary` and `llq`."""

    name = "loadleveler"
    title = "LoadLeveler listings (llsummary -l, llq -l)"

    def recognises(self, source: Path) -> bool:
        """Whether a line is the heading of a job. Never raises."""
        return SNIFFED.search(beginning(source)) is not None

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
        """Return the steps that have ended."""
        blocks = _Blocks(zone_of(options.timezone), JobRows(Budget(source)), tally)
        for line in text_lines(source, tally):
            blocks.take(line)
        blocks.finish()
        return blocks.rows.table()


class _Blocks:
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
        pair = PAIR.fullmatch(line)
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
        servers = _servers(facts)
        self.rows.add(
            self._tally,
            job=facts.get("Job Step Id") or facts["Step Id"],
            start_us=next(filter(None, (self._moment(facts, name) for name in STARTS)), None),
            end_us=self._moment(facts, "Completion Date"),
            servers=servers,
            nodes=len(servers) or None,
            user=facts.get("Owner"),
            account=_present(facts.get("Account")),
            partition=_present(facts.get("Class")),
            name=_present(facts.get("Job Name")),
            state=(facts.get("Status") or "").upper() or None,
        )
        self._step, self._in_step = {}, False

    def _moment(self, facts: dict[str, str], name: str) -> int | None:
        """Return microseconds since 1970; the abbreviation of a zone is no zone."""
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


def _servers(facts: dict[str, str]) -> list[str]:
    listed = next((facts[key] for key in HOSTS if facts.get(key)), "")
    hosts = list(dict.fromkeys(HOST.findall(listed)))
    partition = next((facts[key] for key in PARTITIONS if facts.get(key)), "")
    return hosts or ([partition] if partition not in ABSENT else [])


def _present(text: str | None) -> str | None:
    return None if text is None or text in ABSENT else text
