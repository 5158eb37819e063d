"""Read Lustre's counters: `stats`, `md_stats`, `job_stats`, and the text of Prometheus exporters.

No YAML reader: `job_stats` looks like YAML, but job identifiers such as `no`, `12:30:45` or
`@foo.0` are mistaken or refused by one. The entries of all jobs are split together, column
by column, so that an answer of 10,000 jobs takes a fraction of a second.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.formats.reading import Budget
from ioprism.model.counters import (
    COUNTERS,
    FILE_SYSTEM,
    LATEST,
    SECOND,
    SERIES_KEY,
    TABLE,
    TARGET,
    VALUES,
    ReadingOptions,
    Tally,
)
from ioprism.servers.formats.records import (
    COPIES_HELD,
    DAMAGED,
    LONGEST_TEXT,
    CounterRows,
    MarkedReader,
    blocks,
    check_rows,
    microseconds,
)

PARAMETER = re.compile(
    r"(?:[\w-]+\.)*?([\w-]+?)\.(exports\.[^=]*\.)?(md_stats|stats|job_stats)=(.*)"
)
STATS_LINE = re.compile(
    r"(\w+)\s+(\d{1,20}) samples \[(\w+)\](?:\s+\d+\s+\d+\s+(\d{1,20})(?:\s+\d+)?)?\s*"
)
TIME_LINE = re.compile(
    r"\s*(snapshot_time|start_time|elapsed_time):?\s+(\d{1,12}(?:\.\d{1,12})?)(?:\s.*)?"
)
# The lines of a job's entry after the one with its identifier.
JOB_LINES = (
    r"(?:[ \t]+(?:\w+:[ \t]*\{[ \t]*samples:[ \t]*\d{1,20}\b[^\n]*\}"
    r"|(?:snapshot|start|elapsed)_time:[ \t]+\d{1,12}(?:\.\d{1,12})?(?:[ \t][^\n]*)?)?"
    r"[ \t]*(?:\n|$))"
)
JOB_LINE = re.compile(JOB_LINES)
# Where a new entry begins: a text may be cut there.
ENTRY_STARTS = ("\n- job_id:", "\nsnapshot_time", "\njob_stats:")
# Which counters a Lustre operation adds to: (from its sum of bytes, from its number of samples).
BYTES_OF = {"read_bytes": ("br", "rdc"), "write_bytes": ("bw", "wc")}
SAMPLES_OF = {"open": "oc", "close": "cc"}
NO_TIME = "record without a time"
SAMPLE = r"^(\w+)(?:\{(.*)\})?\s+(\S+?)(?:\s+(-?\d+))?\s*$"
# Prometheus: metric -> counter, for a target and for one job; `stats` by its operation.
PREFIXES = ("lustre_", "lustre_job_", "gpfs_perf_")
AMOUNTS = {"read_bytes": "br", "write_bytes": "bw", "read_samples": "rdc", "write_samples": "wc"}
METRICS = {f"{prefix}{name}_total": to for prefix in PREFIXES for name, to in AMOUNTS.items()} | {
    "node_disk_read_bytes_total": "br",
    "node_disk_written_bytes_total": "bw",
    "node_disk_reads_completed_total": "rdc",
    "node_disk_writes_completed_total": "wc",
}
OPERATIONS = {"open": "oc", "close": "cc", "opens": "oc", "closes": "cc", "reads": "rdc",
              "writes": "wc"}  # fmt: skip
SEVERAL = rf"(?:{'|'.join(PREFIXES)})(?:stats_total|stats|operations_total)"
OF_OPERATION = rf"\{{(?:.*,)?\s*operation=\"(?:{'|'.join(OPERATIONS)})\".*\}}"
WANTED = rf"^(?:(?:{'|'.join(METRICS)})[ \t{{]|{SEVERAL}{OF_OPERATION})"
EXACT = 2**53  # what a Prometheus number holds exactly
JOB_CLEANUP_SECONDS = 600.0  # Lustre's default: a job without I/O for so long is dropped


Counted = tuple[int | None, ...]


class LustreReader(MarkedReader):
    """Reads `lctl get_param` output or the files themselves."""

    name = "lustre"
    title = "Lustre counters: stats, md_stats and job_stats"
    marker = re.compile(
        rb"^(?:\S+\.)?(?:md_stats|stats|job_stats)=|^snapshot_time\s+\d|^job_stats:", re.MULTILINE
    )

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:
        """Yield tables of samples; a file without a parameter's name is named by itself."""
        parser = _Answers(_target_of(source), options, tally, Budget(source))
        rest = ""
        for block in blocks(source, tally):
            whole = block.replace(b"\r\n", b"\n") if b"\r" in block else block
            text = rest + whole.decode("utf-8", errors="replace")
            cut = max(0, text.rfind("\n", 0, text.rfind("stats=")) + 1,
                      *(text.rfind(start) + 1 for start in ENTRY_STARTS))  # fmt: skip
            yield parser.table(text[: cut or None])
            rest = text[cut:] if cut else ""
        yield parser.table(rest)


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
    # A job's last counters (time, start of the entry, counters), and from which to which scrape
    # they did not change.
    held: dict[tuple[str, str], tuple[Counted, int, int]] = field(default_factory=dict)

    def begin(self, block: str) -> None:
        """Begin a block of the text; one that comes again opens the next scrape."""
        if block in self.blocks:
            self.number += 1
            self.blocks = set()
        self.blocks.add(block)

    def note(self, time_us: int, scrape: int) -> None:
        """Note a time before the end of a scrape."""
        if time_us <= self.latest:
            return
        self.latest = time_us
        if self.ends and self.ends[-1][0] == scrape:
            self.ends.pop()
        self.ends.append((scrape, time_us))

    def unchanged_until(
        self, key: tuple[str, str], counted: Counted, scrape: int
    ) -> tuple[int, Counted] | None:
        """Return when a job's counters that differ now were last seen as before, and how."""
        nothing: tuple[Counted, int, int] = ((), scrape, scrape)
        before, first, last = self.held.get(key, nothing)
        if counted == before:
            self.held[key] = (before, first, scrape)
            return None
        self.held[key] = (counted, scrape, scrape)
        if first == last:
            return None
        moment = self._time_of(last)
        return (moment, before) if (before[0] or 0) < moment < (counted[0] or 0) else None

    def _time_of(self, scrape: int) -> int:
        """Return when a scrape was taken: between the advances of the clock around it, evenly."""
        place = bisect_right(self.ends, (scrape, LATEST)) - 1
        begun, time_us = self.ends[place]
        if begun == scrape or place + 1 == len(self.ends):
            return time_us
        ended, later = self.ends[place + 1]
        return time_us + (later - time_us) * (scrape - begun) // (ended - begun)


@dataclass(slots=True)
class _Answers:
    """Where in the text the reader is, and what of it waits to become a table."""

    server: str
    options: ReadingOptions
    tally: Tally
    budget: Budget
    scrapes: Scrapes = field(default_factory=Scrapes)
    per_job: bool = False
    skipping: bool = False  # inside the counters of one client, which its target counts as well
    rows: CounterRows = field(default_factory=CounterRows)
    entries: list[str] = field(default_factory=list)  # of jobs
    servers: list[str] = field(default_factory=list)  # of those entries
    numbers: list[int] = field(default_factory=list)  # of the scrapes they are in
    unseen: list[pl.DataFrame] = field(default_factory=list)  # not compared with other scrapes yet

    def table(self, text: str) -> pl.DataFrame:
        """Return the samples of a text that ends with a whole entry."""
        start = 0
        for parameter in _parameters(text):
            self._take(text[start : parameter.start()])
            self.server, self.skipping = parameter[1], parameter[2] is not None
            self.per_job = parameter[3] == "job_stats"
            self.scrapes.begin(f"{parameter[1]}.{parameter[3]}")
            start = parameter.end() + 1
        self._take(text[start:])
        jobs = self._job_samples()
        targets = pl.DataFrame(self.rows.columns, schema=COUNTERS.schema)
        self.rows = CounterRows()
        return check_rows(pl.concat([targets, jobs]), self.tally)

    def _take(self, text: str) -> None:
        """Take what belongs to one parameter, or continues it."""
        if self.skipping or not text.strip():
            return
        head, *answers = f"\n{text}".split("\njob_stats:")
        if self.per_job or head.startswith("\n- job_id:"):
            self._take_jobs(head)
        else:
            self._take_target(head)
        for answer in answers:
            self.per_job = True
            self.scrapes.begin(f"{self.server} job_stats:")
            self._take_jobs(answer[answer.find("\n") :])

    def _take_jobs(self, text: str) -> None:
        before, *entries = text.split("\n- job_id:")
        self.tally.leave_out(DAMAGED, count=sum(bool(line.strip()) for line in before.split("\n")))
        self.entries += entries
        self.servers += [self.server] * len(entries)
        self.numbers += [self.scrapes.number] * len(entries)

    def _take_target(self, text: str) -> None:
        """Take the counters of a target: a few lines, each answer begins with its time."""
        times: dict[str, int] = {}
        values: dict[str, int] = {}
        for line in filter(str.strip, text.split("\n")):
            moment = TIME_LINE.fullmatch(line)
            if moment is not None:
                if moment[1] in times:
                    self._add_target(times, values)
                    times, values = {}, {}
                times[moment[1]] = microseconds(moment[2])
                continue
            value = STATS_LINE.fullmatch(line)
            if value is None:
                self.tally.leave_out(DAMAGED)
                continue
            amounts = [*BYTES_OF.get(value[1], ())] if value[4] else []
            counts = zip(amounts, (int(value[4] or 0), int(value[2])), strict=False)
            for name, amount in [*counts, (SAMPLES_OF.get(value[1], ""), int(value[2]))]:
                values[name] = values.get(name, 0) + amount  # a name may come twice
        self._add_target(times, values)

    def _add_target(self, times: dict[str, int], values: dict[str, int]) -> None:
        if not values and "snapshot_time" not in times:
            return
        time_us = times.get("snapshot_time", self.options.time_us)
        if time_us is None:
            self.tally.leave_out(NO_TIME)
            return
        self.scrapes.note(time_us, self.scrapes.number)
        names = ("oc", "cc") if "MDT" in self.server else ("br", "bw", "rdc", "wc")
        counted = dict.fromkeys(names, 0) | {
            name: values[name] for name in VALUES if name in values
        }
        since_us = times.get("start_time")
        self.rows.add(self.tally, server=self.server, part="", source=TARGET, since_us=since_us,
                      time_us=time_us, **counted)  # fmt: skip

    def _job_samples(self) -> pl.DataFrame:
        """Return the samples of all entries of jobs that wait."""
        if not self.entries:
            return COUNTERS.empty()
        table = pl.DataFrame(
            {"entry": self.entries, "server": self.servers, "scrape": self.numbers},
            schema_overrides={"scrape": pl.Int64},
        )
        self.entries, self.servers, self.numbers = [], [], []
        sound = table["entry"].str.contains(rf"^[^\n]*(?:\n{JOB_LINES}*)?$")
        if not sound.all():
            whole = [text if fine else self._without_damage(text)
                     for text, fine in zip(table["entry"], sound, strict=True)]  # fmt: skip
            table = table.with_columns(entry=pl.Series(whole, dtype=pl.String))
        jobs = _entry_samples(table).with_columns(
            time_us=pl.coalesce("time_us", pl.lit(self.options.time_us, pl.Int64))
        )
        untimed = jobs["time_us"].null_count()
        self.tally.leave_out(NO_TIME, count=untimed)
        jobs = jobs.drop_nulls("time_us") if untimed else jobs
        still = self._standing_still(jobs)
        read_us = self.options.time_us
        later = jobs.filter(pl.col("time_us") < read_us).with_columns(
            time_us=pl.lit(read_us, dtype=pl.Int64)
        ) if read_us is not None else jobs.clear()  # fmt: skip
        samples = pl.concat([still, *(table.select(still.columns) for table in (jobs, later))])
        return COUNTERS.conform(samples.with_columns(part=pl.lit(""), source=pl.lit(TARGET)))

    def _without_damage(self, entry: str) -> str:
        """Leave out and count the lines of an entry that say nothing."""
        first, *lines = entry.split("\n")
        kept = [line for line in lines if not line.strip() or JOB_LINE.fullmatch(line)]
        self.tally.leave_out(DAMAGED, count=len(lines) - len(kept))
        return "\n".join([first, *kept])

    def _standing_still(self, jobs: pl.DataFrame) -> pl.DataFrame:
        """Return a sample for every scrape that was the last to show a job's counters unchanged."""
        ends = jobs.group_by("scrape").agg(pl.col("time_us").max()).sort("scrape")
        for scrape, time_us in ends.iter_rows():
            self.scrapes.note(time_us, scrape)
        names = ["server", "job", "time_us", "since_us", *VALUES]
        self.unseen.append(jobs.select("scrape", *names))
        self.budget.take(int(self.unseen[-1].estimated_size()), "the jobs of a scrape")
        rows = []
        if self.scrapes.number:  # a single scrape shows nothing unchanged
            for scrape, server, job, *counted in pl.concat(self.unseen).iter_rows():
                still = self.scrapes.unchanged_until((server, job), tuple(counted), scrape)
                if still is not None:
                    rows.append((server, job, still[0], *still[1][1:]))
            self.budget.give_back(sum(int(table.estimated_size()) for table in self.unseen))
            self.unseen = []
        schema = {name: COUNTERS.schema[name] for name in names}
        return pl.DataFrame(rows, schema=schema, orient="row")


def _parameters(text: str) -> Iterator[re.Match[str]]:
    """Yield the lines that name a parameter; they are searched for by their end, which is fast.

    Matching takes the square of a name's length: longer ones are left out.
    """
    place, end = text.find("stats="), -1
    while place >= 0:
        line = text.rfind("\n", max(0, place - LONGEST_TEXT), place) + 1
        if line or place < LONGEST_TEXT:
            if end < place:
                end = text.find("\n", place)
                end = len(text) if end < 0 else end
            match = PARAMETER.fullmatch(text, line, end)
            if match is not None:
                yield match
        place = text.find("stats=", place + 1)


def _entry_samples(table: pl.DataFrame) -> pl.DataFrame:
    """Return what stands in the entries of jobs as columns of samples."""
    entry = pl.col("entry")
    samples = r":[ \t]*\{[ \t]*samples:[ \t]*(\d{1,20})"
    time = r":[ \t]+(\d+)(?:\.(\d+))?"
    ends = {"snapshot_time": time, "start_time": time, "open": samples, "close": samples}
    ends |= dict.fromkeys(BYTES_OF, samples + r"[^\n]*?[ ,]sum:[ \t]*(\d{1,20})")
    first = entry.str.extract(r"^([^\n]*)").str.strip_chars().str.strip_chars("\"'").fill_null("")
    lines = table.select(
        "server",
        "scrape",
        first.alias("job"),
        *(
            entry.str.extract_groups(rf"\n[ \t]+{name}{end}").alias(name)
            for name, end in ends.items()
        ),
    )

    def number(line: str, group: str) -> pl.Expr:
        return pl.col(line).struct.field(group).cast(pl.Int64, strict=False)

    def moment(line: str) -> pl.Expr:
        decimals = pl.col(line).struct.field("2").fill_null("").str.pad_end(6, "0").str.head(6)
        return number(line, "1") * SECOND + decimals.cast(pl.Int64, strict=False)

    metadata = pl.col("server").str.contains("MDT", literal=True)
    values = {BYTES_OF[line][place]: number(line, group)
              for line in BYTES_OF for place, group in enumerate("21")}  # fmt: skip
    # A line that is absent is a counter that is still 0; metadata targets count other things.
    zeros = {name: pl.when(~metadata).then(0) for name in values} | {
        name: pl.when(metadata).then(0) for name in SAMPLES_OF.values()
    }
    values |= {name: number(line, "1") for line, name in SAMPLES_OF.items()}
    return lines.select(
        "server",
        "scrape",
        "job",
        time_us=moment("snapshot_time"),
        since_us=moment("start_time"),
        **{name: pl.coalesce(value, zeros[name]) for name, value in values.items()},
    )


def _target_of(source: Path) -> str:
    """The target a file under /proc or /sys belongs to is the folder it is in."""
    if source.name in ("stats", "md_stats", "job_stats"):
        return source.parent.name or source.name
    return source.stem


class PrometheusReader(MarkedReader):
    """Reads one scrape, or several with time stamps."""

    name = "prometheus"
    title = "Prometheus text: exporters of Lustre and GPFS, disks of node_exporter"
    marker = re.compile(
        rb"^(?:# (?:TYPE|HELP) )?(?:lustre_|gpfs_perf_|node_disk_)\w+[ {]", re.MULTILINE
    )

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:
        """Yield one table: a scrape gives a target's counters in any order.

        Raises:
            BrokenTraceError: the scrape has no time stamps and none was given.
        """
        budget, wanted = Budget(source), [pl.DataFrame(schema={"line": pl.String})]
        for block in blocks(source, tally):
            wanted.append(_metric_lines(block, tally))
            budget.take(COPIES_HELD * int(wanted[-1].estimated_size()), "the samples")
        yield check_rows(_metric_samples(pl.concat(wanted), source, options, tally), tally)


def _metric_lines(block: bytes, tally: Tally) -> pl.DataFrame:
    """Return the lines with counters that are used; taking them apart is what takes time."""
    line = pl.col("line")
    lines = pl.Series("line", [block.decode("utf-8", errors="replace")]).str.split("\n").explode()
    given = (
        lines.to_frame().select(line.str.strip_chars("\r "))
        .filter((line != "") & ~line.str.starts_with("#"))
    )  # fmt: skip
    tally.leave_out(DAMAGED, count=given.height - int(given["line"].str.contains(SAMPLE).sum()))
    return given.filter(line.str.contains(WANTED))


def _metric_samples(
    wanted: pl.DataFrame, source: Path, options: ReadingOptions, tally: Tally
) -> pl.DataFrame:
    line, metric = pl.col("line"), pl.col("metric")
    samples = wanted.select(line.str.extract_groups(SAMPLE)).unnest("line")
    samples.columns = ["metric", "labels", "value", "time"]
    by_operation = _label("operation").replace_strict(OPERATIONS, default=None)
    by_name = metric.replace_strict(METRICS, default=None)
    counters = samples.with_columns(counter=pl.coalesce(by_name, by_operation)).drop_nulls(
        "counter"
    )
    number = pl.col("value").cast(pl.Float64, strict=False)
    in_range = number.is_finite() & (number >= 0) & (number < 2.0**63)
    named = counters.with_columns(
        server=pl.coalesce(map(_label, LABELS)), job=_label("jobid"), number=number
    )
    sound = named.filter(in_range & pl.col("server").is_not_null())
    tally.leave_out(DAMAGED, count=counters.height - sound.height)
    if (sound["number"] > EXACT).any():
        tally.note("Prometheus counters above 2^53 are inexact")
    stamped = pl.col("time").cast(pl.Int64, strict=False) * 1000
    timed = sound.with_columns(time_us=pl.coalesce(stamped, pl.lit(options.time_us, pl.Int64)))
    if timed["time_us"].null_count():
        raise BrokenTraceError(
            "a scrape does not say when it was taken.\n"
            "Hint: give it with --time SECONDS (since 1970).",
            source=source,
        )
    origin = pl.col("metric").str.extract(r"^([a-z]+)_").replace_strict(
        {"lustre": TARGET, "gpfs": FILE_SYSTEM}, default=TABLE
    )  # fmt: skip
    exact = pl.col("value").cast(pl.Int64, strict=False)
    amount = pl.coalesce(exact, pl.col("number").round().cast(pl.Int64))
    keys = [*SERIES_KEY, "time_us"]
    return COUNTERS.conform(
        timed.with_columns(
            source=origin,
            part=pl.lit(""),
            **{name: pl.when(pl.col("counter") == name).then(amount) for name in VALUES},
        )
        .group_by(*keys, maintain_order=True)
        .agg(pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()) for name in VALUES)
    )


LABELS = ("target", "fs", "device")  # what names the thing counted, in order


def _label(name: str) -> pl.Expr:
    quoted = pl.col("labels").str.extract(rf'(?:^|,)\s*{name}="((?:[^"\\]|\\.)*)"')
    return quoted.str.replace_all(r"\\n", "\n").str.replace_all(r"\\(.)", "${1}")
