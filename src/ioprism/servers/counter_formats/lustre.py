"""Read what Lustre servers count: `stats`, `md_stats` and `job_stats`, old form and new.

No YAML reader: `job_stats` looks like YAML, but job identifiers such as `no`, `12:30:45` or
`@foo.0` are mistaken or refused by one, and a line parser is 70 times faster.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from ioprism.model.counters import LATEST, TARGET, ReadingOptions, Tally
from ioprism.servers.counter_formats.counter_rows import Rows, microseconds
from ioprism.servers.counter_formats.lines import DAMAGED, beginning, text_lines

PARAMETER = re.compile(r"(?:[\w-]+\.)*?([\w-]+?)\.(exports\..*\.)?(md_stats|stats|job_stats)=(.*)")
STATS_LINE = re.compile(
    r"(\w+)\s+(\d{1,20}) samples \[(\w+)\](?:\s+\d+\s+\d+\s+(\d{1,20})(?:\s+\d+)?)?\s*"
)
TIME_LINE = re.compile(
    r"\s*(snapshot_time|start_time|elapsed_time):?\s+(\d{1,12}(?:\.\d{1,12})?)(?:\s.*)?"
)
JOB_LINE = re.compile(r"- job_id:(.*)")
JOB_VALUE = re.compile(r"\s+(\w+):\s*\{\s*samples:\s*(\d{1,20})(?:,\s*unit:\s*\w+)?(.*)\}\s*")
SUM = re.compile(r"sum:\s*(\d{1,20})\b")
SNIFFED = re.compile(
    rb"^(?:\S+\.)?(?:md_stats|stats|job_stats)=|^snapshot_time\s+\d|^job_stats:", re.MULTILINE
)
# Which counters a Lustre operation adds to: (from its sum of bytes, from its number of samples).
BYTES_OF = {"read_bytes": ("br", "rdc"), "write_bytes": ("bw", "wc")}
SAMPLES_OF = {"open": "oc", "close": "cc"}
NO_TIME = "record without a time"


@dataclass(slots=True)
class Entry:
    """One target's or one job's counters at one moment, as far as they have been read."""

    server: str
    job: str | None
    times: dict[str, int] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)

    def count(self, operation: str, samples: int, total: int | None) -> None:
        """Take one operation's line; a name that comes twice is added up."""
        size, calls = BYTES_OF.get(operation, (None, None))
        if size is not None and calls is not None and total is not None:
            self._add(size, total)
            self._add(calls, samples)
        elif operation in SAMPLES_OF:
            self._add(SAMPLES_OF[operation], samples)

    def _add(self, name: str, amount: int) -> None:
        self.values[name] = self.values.get(name, 0) + amount


class LustreReader:
    """Reads `lctl get_param` output or the files themselves."""

    name = "lustre"
    title = "Lustre counters: stats, md_stats and job_stats"

    def recognises(self, source: Path) -> bool:
        """Whether a line is a Lustre parameter or a time stamp of one. Never raises."""
        return SNIFFED.search(beginning(source)) is not None

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:
        """Yield tables of samples; a file without a parameter's name is named by itself."""
        rows = Rows()
        parser = Parser(Entry(_target_of(source), None), options, tally)
        for line in text_lines(source, tally):
            parser.take(line, rows)
            if rows.full():
                yield rows.table(tally)
        parser.finish(rows)
        yield from rows.rest(tally)


@dataclass(slots=True)
class Held:
    """A job's counters as they were last, and from which to which scrape they stood still."""

    time_us: int
    values: dict[str, int]
    since_us: int | None
    first: int
    last: int


@dataclass(slots=True)
class Scrapes:
    """When the answers in a file were taken, as far as they say.

    `job_stats` tell the time of each job's last I/O, not when they were read. What was read in
    between did not change, and that is information: nothing moved until the last unchanged
    answer. Its time is known from counters that tell theirs (`stats`, other jobs), else answers
    are taken to have been read at equal distances.
    """

    number: int = 0
    latest: int = 0
    blocks: set[str] = field(default_factory=set)  # of this scrape
    ends: list[tuple[int, int]] = field(default_factory=list)  # (scrape, latest) at each advance
    held: dict[tuple[str, str], Held] = field(default_factory=dict)

    def begin(self, block: str) -> None:
        """Begin a block of the text; one that comes again opens the next scrape."""
        if block in self.blocks:
            self.number += 1
            self.blocks = set()
        self.blocks.add(block)

    def note(self, time_us: int) -> None:
        """Hear of a time before the end of this scrape."""
        if time_us <= self.latest:
            return
        self.latest = time_us
        if self.ends and self.ends[-1][0] == self.number:
            self.ends.pop()
        self.ends.append((self.number, time_us))

    def unchanged_until(self, entry: Entry, time_us: int) -> tuple[int, Held] | None:
        """Return when a job's counters that differ now were last seen as before, and how."""
        key = (entry.server, entry.job or "")
        before = self.held.get(key)
        since_us = entry.times.get("start_time")
        now = (time_us, entry.values, since_us)
        if before is not None and now == (before.time_us, before.values, before.since_us):
            before.last = self.number
            return None
        self.held[key] = Held(*now, self.number, self.number)
        if before is None or before.last == before.first:
            return None
        moment = self._time_of(before.last)
        return (moment, before) if before.time_us < moment < time_us else None

    def _time_of(self, scrape: int) -> int:
        """Return when a scrape was taken: between the advances of the clock around it, evenly."""
        place = bisect_right(self.ends, (scrape, LATEST)) - 1
        begun, time_us = self.ends[place]
        if begun == scrape or place + 1 == len(self.ends):
            return time_us
        ended, later = self.ends[place + 1]
        return time_us + (later - time_us) * (scrape - begun) // (ended - begun)


@dataclass(slots=True)
class Parser:
    """Where in the text the reader is."""

    entry: Entry
    options: ReadingOptions
    tally: Tally
    scrapes: Scrapes = field(default_factory=Scrapes)
    per_job: bool = False
    skipping: bool = False  # inside the counters of one client, which its target counts as well

    def take(self, line: str, rows: Rows) -> None:
        """Understand one line."""
        parameter = PARAMETER.fullmatch(line)
        if parameter is not None:
            self._begin_parameter(parameter, rows)
        elif self.skipping or not line.strip():
            return
        elif line.startswith("job_stats:"):
            self.finish(rows)
            self.per_job = True
            self.entry = Entry(self.entry.server, None)
            self.scrapes.begin(f"{self.entry.server} job_stats:")
        elif (job := JOB_LINE.fullmatch(line)) is not None:
            self.finish(rows)
            self.per_job = True
            self.entry = Entry(self.entry.server, job[1].strip().strip("\"'"))
        else:
            self._take_value(line, rows)

    def _begin_parameter(self, parameter: re.Match[str], rows: Rows) -> None:
        self.finish(rows)
        self.entry = Entry(parameter[1], None)
        self.scrapes.begin(f"{parameter[1]}.{parameter[3]}")
        self.skipping = parameter[2] is not None
        self.per_job = parameter[3] == "job_stats"

    def _take_value(self, line: str, rows: Rows) -> None:
        moment = TIME_LINE.fullmatch(line)
        if moment is not None:
            if moment[1] in self.entry.times:  # the file holds one answer after another
                self.finish(rows)
                self.entry = Entry(self.entry.server, self.entry.job)
            self.entry.times[moment[1]] = microseconds(moment[2])
            return
        value = JOB_VALUE.fullmatch(line) if self.per_job else STATS_LINE.fullmatch(line)
        if value is None:
            self.tally.leave_out(DAMAGED)
            return
        self.entry.count(value[1], int(value[2]), _total(value, per_job=self.per_job))

    def finish(self, rows: Rows) -> None:
        """Add the entry that is complete now."""
        entry = self.entry
        if not entry.values and "snapshot_time" not in entry.times:
            return
        time_us = entry.times.get("snapshot_time", self.options.time_us)
        if time_us is None:
            self.tally.leave_out(NO_TIME)
        else:
            self._add(rows, entry, time_us)
        self.entry = Entry(entry.server, entry.job)

    def _add(self, rows: Rows, entry: Entry, time_us: int) -> None:
        self.scrapes.note(time_us)
        since_us = entry.times.get("start_time")
        if entry.job is not None:
            still = self.scrapes.unchanged_until(entry, time_us)
            if still is not None:
                moment, before = still
                self._row(rows, entry, moment, before.values, before.since_us)
            read_us = self.options.time_us
            if read_us is not None and read_us > time_us:
                self._row(rows, entry, read_us, entry.values, since_us)
        self._row(rows, entry, time_us, entry.values, since_us)

    def _row(
        self, rows: Rows, entry: Entry, time_us: int, values: dict[str, int], since_us: int | None
    ) -> None:
        rows.add(
            self.tally,
            server=entry.server,
            part="",
            job=entry.job,
            source=TARGET,
            since_us=since_us,
            time_us=time_us,
            **_complete(values, metadata="MDT" in entry.server),
        )


def _total(value: re.Match[str], *, per_job: bool) -> int | None:
    """Return the sum of bytes of an operation's line, if it has one."""
    if per_job:
        total = SUM.search(value[3])
        return None if total is None else int(total[1])
    return None if value[4] is None else int(value[4])


def _complete(values: dict[str, int], *, metadata: bool) -> dict[str, int]:
    """A line that is absent is a counter that is still 0; other targets count other things."""
    names = ("oc", "cc") if metadata else ("br", "bw", "rdc", "wc")
    return dict.fromkeys(names, 0) | values


def _target_of(source: Path) -> str:
    """The target a file under /proc or /sys belongs to is the folder it is in."""
    if source.name in ("stats", "md_stats", "job_stats"):
        return source.parent.name or source.name
    return source.stem
