"""Read Lustre's counters: `stats`, `md_stats`, `job_stats`, and the text of Prometheus exporters.

No YAML reader: `job_stats` looks like YAML, but job identifiers such as `no`, `12:30:45` or
`@foo.0` are mistaken or refused by one, and a line parser is 70 times faster.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.model.counters import LATEST, TARGET, ReadingOptions, Tally
from ioprism.servers.formats.records import (
    DAMAGED,
    CounterRows,
    MarkedReader,
    microseconds,
    text_lines,
)

PARAMETER = re.compile(
    r"(?:[\w-]+\.)*?([\w-]+?)\.(exports\.[^=]*\.)?(md_stats|stats|job_stats)=(.*)"
)
LONGEST_PARAMETER = 1024  # characters of its name; matching it takes their square
STATS_LINE = re.compile(
    r"(\w+)\s+(\d{1,20}) samples \[(\w+)\](?:\s+\d+\s+\d+\s+(\d{1,20})(?:\s+\d+)?)?\s*"
)
TIME_LINE = re.compile(
    r"\s*(snapshot_time|start_time|elapsed_time):?\s+(\d{1,12}(?:\.\d{1,12})?)(?:\s.*)?"
)
JOB_LINE = re.compile(r"- job_id:(.*)")
JOB_VALUE = re.compile(r"\s+(\w+):\s*\{\s*samples:\s*(\d{1,20})(?:,\s*unit:\s*\w+)?(.*)\}\s*")
SUM = re.compile(r"sum:\s*(\d{1,20})\b")
# Which counters a Lustre operation adds to: (from its sum of bytes, from its number of samples).
BYTES_OF = {"read_bytes": ("br", "rdc"), "write_bytes": ("bw", "wc")}
SAMPLES_OF = {"open": "oc", "close": "cc"}
NO_TIME = "record without a time"
SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})?\s+(\S+)(?:\s+(-?\d+))?\s*")
LABEL = re.compile(r'(?<!\w)(\w++)="((?:[^"\\]|\\.)*)"')
ESCAPE = re.compile(r"\\(.)")
# Metric -> counter, for the target as a whole (lustre_) and for one job (lustre_job_).
METRICS = {
    "read_bytes_total": "br",
    "write_bytes_total": "bw",
    "read_samples_total": "rdc",
    "write_samples_total": "wc",
}
METADATA_OPERATIONS = {"open": "oc", "close": "cc"}
EXACT = 2**53

MetricKey = tuple[str, str | None, int]


@dataclass(slots=True)
class CounterEntry:
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


class LustreReader(MarkedReader):
    """Reads `lctl get_param` output or the files themselves."""

    name = "lustre"
    title = "Lustre counters: stats, md_stats and job_stats"
    marker = re.compile(
        rb"^(?:\S+\.)?(?:md_stats|stats|job_stats)=|^snapshot_time\s+\d|^job_stats:", re.MULTILINE
    )

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:
        """Yield tables of samples; a file without a parameter's name is named by itself."""
        rows = CounterRows()
        parser = StatsParser(CounterEntry(_target_of(source), None), options, tally)
        for line in text_lines(source, tally):
            parser.take(line, rows)
            if rows.full():
                yield rows.table(tally)
        parser.finish(rows)
        yield from rows.rest(tally)


@dataclass(slots=True)
class LastCounters:
    """A job's last counters, and from which to which scrape they did not change."""

    time_us: int
    values: dict[str, int]
    since_us: int | None
    first: int
    last: int


@dataclass(slots=True)
class Scrapes:
    """When the answers in a file were taken, as far as it is known.

    `job_stats` give the time of each job's last I/O, not the time of the scrape. Counters that
    are unchanged in a scrape are information: nothing moved until the last unchanged answer. Its
    time is known from counters with a time (`stats`, other jobs); otherwise scrapes are assumed
    to be equally far apart.
    """

    number: int = 0
    latest: int = 0
    blocks: set[str] = field(default_factory=set)  # of this scrape
    ends: list[tuple[int, int]] = field(default_factory=list)  # (scrape, latest) at each advance
    held: dict[tuple[str, str], LastCounters] = field(default_factory=dict)

    def begin(self, block: str) -> None:
        """Begin a block of the text; one that comes again opens the next scrape."""
        if block in self.blocks:
            self.number += 1
            self.blocks = set()
        self.blocks.add(block)

    def note(self, time_us: int) -> None:
        """Note a time before the end of this scrape."""
        if time_us <= self.latest:
            return
        self.latest = time_us
        if self.ends and self.ends[-1][0] == self.number:
            self.ends.pop()
        self.ends.append((self.number, time_us))

    def unchanged_until(self, entry: CounterEntry, time_us: int) -> tuple[int, LastCounters] | None:
        """Return when a job's counters that differ now were last seen as before, and how."""
        key = (entry.server, entry.job or "")
        before = self.held.get(key)
        since_us = entry.times.get("start_time")
        now = (time_us, entry.values, since_us)
        if before is not None and now == (before.time_us, before.values, before.since_us):
            before.last = self.number
            return None
        self.held[key] = LastCounters(*now, self.number, self.number)
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
class StatsParser:
    """Where in the text the reader is."""

    entry: CounterEntry
    options: ReadingOptions
    tally: Tally
    scrapes: Scrapes = field(default_factory=Scrapes)
    per_job: bool = False
    skipping: bool = False  # inside the counters of one client, which its target counts as well

    def take(self, line: str, rows: CounterRows) -> None:
        """Understand one line."""
        named = "=" in line[:LONGEST_PARAMETER]
        parameter = PARAMETER.fullmatch(line) if named else None
        if parameter is not None:
            self._begin_parameter(parameter, rows)
        elif self.skipping or not line.strip():
            return
        elif line.startswith("job_stats:"):
            self.finish(rows)
            self.per_job = True
            self.entry = CounterEntry(self.entry.server, None)
            self.scrapes.begin(f"{self.entry.server} job_stats:")
        elif (job := JOB_LINE.fullmatch(line)) is not None:
            self.finish(rows)
            self.per_job = True
            self.entry = CounterEntry(self.entry.server, job[1].strip().strip("\"'"))
        else:
            self._take_value(line, rows)

    def _begin_parameter(self, parameter: re.Match[str], rows: CounterRows) -> None:
        self.finish(rows)
        self.entry = CounterEntry(parameter[1], None)
        self.scrapes.begin(f"{parameter[1]}.{parameter[3]}")
        self.skipping = parameter[2] is not None
        self.per_job = parameter[3] == "job_stats"

    def _take_value(self, line: str, rows: CounterRows) -> None:
        moment = TIME_LINE.fullmatch(line)
        if moment is not None:
            if moment[1] in self.entry.times:  # the file holds one answer after another
                self.finish(rows)
                self.entry = CounterEntry(self.entry.server, self.entry.job)
            self.entry.times[moment[1]] = microseconds(moment[2])
            return
        value = JOB_VALUE.fullmatch(line) if self.per_job else STATS_LINE.fullmatch(line)
        if value is None:
            self.tally.leave_out(DAMAGED)
            return
        self.entry.count(value[1], int(value[2]), _bytes_of_line(value, per_job=self.per_job))

    def finish(self, rows: CounterRows) -> None:
        """Add the entry that is complete now."""
        entry = self.entry
        if not entry.values and "snapshot_time" not in entry.times:
            return
        time_us = entry.times.get("snapshot_time", self.options.time_us)
        if time_us is None:
            self.tally.leave_out(NO_TIME)
        else:
            self._add(rows, entry, time_us)
        self.entry = CounterEntry(entry.server, entry.job)

    def _add(self, rows: CounterRows, entry: CounterEntry, time_us: int) -> None:
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
        self,
        rows: CounterRows,
        entry: CounterEntry,
        time_us: int,
        values: dict[str, int],
        since_us: int | None,
    ) -> None:
        rows.add(
            self.tally,
            server=entry.server,
            part="",
            job=entry.job,
            source=TARGET,
            since_us=since_us,
            time_us=time_us,
            **_with_zeros(values, metadata="MDT" in entry.server),
        )


def _bytes_of_line(value: re.Match[str], *, per_job: bool) -> int | None:
    """Return the sum of bytes of an operation's line, if it has one."""
    if per_job:
        total = SUM.search(value[3])
        return None if total is None else int(total[1])
    return None if value[4] is None else int(value[4])


def _with_zeros(values: dict[str, int], *, metadata: bool) -> dict[str, int]:
    """A line that is absent is a counter that is still 0; other targets count other things."""
    names = ("oc", "cc") if metadata else ("br", "bw", "rdc", "wc")
    return dict.fromkeys(names, 0) | values


def _target_of(source: Path) -> str:
    """The target a file under /proc or /sys belongs to is the folder it is in."""
    if source.name in ("stats", "md_stats", "job_stats"):
        return source.parent.name or source.name
    return source.stem


class PrometheusReader(MarkedReader):
    """Reads one scrape, or several with time stamps."""

    name = "prometheus"
    title = "Lustre counters: text of the Prometheus exporters"
    marker = re.compile(rb"^(?:# (?:TYPE|HELP) )?lustre_\w+[ {]", re.MULTILINE)

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:
        """Yield one table: a scrape gives a target's counters in any order.

        Raises:
            BrokenTraceError: the scrape has no time stamps and none was given.
        """
        entries: dict[MetricKey, dict[str, int]] = {}
        for line in text_lines(source, tally):
            if not line.startswith("#"):
                _take_metric(line, entries, options, tally, source)
        rows = CounterRows()
        for (server, job, time_us), values in entries.items():
            rows.add(
                tally, server=server, part="", job=job, source=TARGET, time_us=time_us, **values
            )
        yield from rows.rest(tally)


def _take_metric(
    line: str,
    entries: dict[MetricKey, dict[str, int]],
    options: ReadingOptions,
    tally: Tally,
    source: Path,
) -> None:
    sample = SAMPLE.fullmatch(line)
    if sample is None:
        tally.leave_out(DAMAGED)
        return
    labels = {name: ESCAPE.sub(_unescape, text) for name, text in LABEL.findall(sample[2] or "")}
    counter = _counter_of_metric(sample[1], labels)
    value = _metric_value(sample[3])
    if counter is None:
        return
    if value is None or "target" not in labels:
        tally.leave_out(DAMAGED)
        return
    if value > EXACT:
        tally.note("Prometheus counters above 2^53 are inexact")
    time_us = int(sample[4]) * 1000 if sample[4] else options.time_us
    if time_us is None:
        raise BrokenTraceError(
            "a scrape does not say when it was taken.\n"
            "Hint: give it with --time SECONDS (since 1970).",
            source=source,
        )
    values = entries.setdefault((labels["target"], labels.get("jobid"), time_us), {})
    values[counter] = values.get(counter, 0) + value


def _counter_of_metric(metric: str, labels: dict[str, str]) -> str | None:
    if "jobid" in labels:
        short = metric.removeprefix("lustre_job_")
    else:
        short = metric.removeprefix("lustre_")
    if short in ("stats_total", "stats"):
        return METADATA_OPERATIONS.get(labels.get("operation", ""))
    return METRICS.get(short)


def _metric_value(text: str) -> int | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return round(value) if math.isfinite(value) and 0 <= value < 2**63 else None


def _unescape(escaped: re.Match[str]) -> str:
    return "\n" if escaped[1] == "n" else escaped[1]
