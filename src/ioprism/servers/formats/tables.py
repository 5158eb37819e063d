"""Read CSV tables of counters (ours, LDMS, collectd) and of jobs (`job_id,start,end,servers`)."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.formats.reading import Budget
from ioprism.formats.text import epoch_us
from ioprism.model.counters import COUNTERS, SECOND, TABLE, TARGET, VALUES, ReadingOptions, Tally
from ioprism.servers.formats.records import (
    COPIES_HELD,
    DAMAGED,
    DAMAGED_NODES,
    HostlistError,
    JobLinesReader,
    JobRows,
    MarkedReader,
    beginning,
    blocks,
    check_rows,
    expand_hosts,
)

COUNTER_COLUMNS = ("server", "t")
JOB_COLUMNS = {"job_id", "start", "end"}
MOST_MOUNTS = 1000  # in a row of LDMS; a table is made for each
LDMS_COUNTER = re.compile(
    r"(?:client\.lstats\.)?(read_bytes|write_bytes|open|close)(?:[._]sum)?(?:#(?:llite\.)?(.+))?"
)
LDMS_COUNTERS = {"read_bytes": "br", "write_bytes": "bw", "open": "oc", "close": "cc"}
COLLECTD_NAME = re.compile(r"(disk_octets|disk_ops|(?:read|write)_(?:bytes|samples))-[-\d]+$")
COLLECTD_VALUES = {
    "disk_octets": ("br", "bw"), "disk_ops": ("rdc", "wc"), "read_bytes": ("br",),
    "write_bytes": ("bw",), "read_samples": ("rdc",), "write_samples": ("wc",),
}  # fmt: skip
JOB_FACTS = ("user", "account", "partition", "name", "state")


class CounterTableReader:
    """Reads a CSV with a heading; times are seconds since 1970."""

    name = "counter-table"
    title = "counters as CSV: server,t,br,bw,rdc,wc,oc,cc"

    def recognises(self, source: Path) -> bool:
        """Whether the heading names a server, a time and counters. Never raises."""
        heading = _counter_heading(beginning(source, size=4096))
        return set(COUNTER_COLUMNS) <= set(heading) and not set(VALUES).isdisjoint(heading)

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """Yield tables of samples.

        Raises:
            BrokenTraceError: the first readable line does not name the columns.
        """
        for names, text in _headed_blocks(source, tally):
            if missing := [name for name in COUNTER_COLUMNS if name not in names]:
                raise BrokenTraceError(
                    f"the first line that can be read has no column {' or '.join(missing)}.\n"
                    "Hint: the first line names the columns, such as server,t,br,bw.",
                    source=source,
                )
            table = _text_columns(text, names, {*COUNTER_COLUMNS, *COUNTERS.names})
            yield check_rows(_samples(table, tally), tally)


def missing_columns(source: Path) -> str | None:
    """Say what a table with some of our columns lacks; None if it is something else."""
    heading = set(_counter_heading(beginning(source, size=4096)))
    if heading >= set(COUNTER_COLUMNS) and heading.isdisjoint(VALUES):
        return f"the table has no column of counters ({', '.join(VALUES)})"
    for wanted in (set(COUNTER_COLUMNS), JOB_COLUMNS):
        missing = wanted - heading
        if 0 < len(missing) < len(wanted):
            return f"the table has no column {' or '.join(sorted(missing))}"
    return None


def _headed_blocks(source: Path, tally: Tally) -> Iterator[tuple[list[str], bytes]]:
    """Yield the names in the first line, and a block of lines below it."""
    names: list[str] = []
    for block in blocks(source, tally):
        text = block
        if not names:
            first, _, text = block.partition(b"\n")
            names = _counter_heading(first)
        yield names, text


def _counter_heading(text: bytes) -> list[str]:
    first = text.partition(b"\n")[0].decode("utf-8", errors="replace")
    return [name.strip().strip('"') for name in first.lstrip("\ufeff").rstrip("\r").split(",")]


def _text_columns(text: bytes, names: list[str], wanted: Collection[str]) -> pl.DataFrame:
    """Return the wanted columns as text: one damaged value must not cost the whole table.

    The others are not taken apart: short rows below a long heading would fill the memory.
    """
    numbered = {f"{number}:{name}": pl.String for number, name in enumerate(names)}
    places = {name: names.index(name) for name in names if name in wanted}  # first of equal ones
    if not text.strip():
        return pl.DataFrame(schema=dict.fromkeys(places, pl.String))
    table = pl.read_csv(
        text,
        columns=sorted(places.values()),
        has_header=False,
        schema=numbered,
        encoding="utf8-lossy",
        quote_char=None,  # one quote too many must not swallow the lines after it
        truncate_ragged_lines=True,
        missing_columns="insert",
        extra_columns="ignore",
    )
    return table.select(
        pl.col(f"{place}:{name}").str.strip_chars('" \r').alias(name)
        for name, place in places.items()
    )


def _samples(table: pl.DataFrame, tally: Tally, *, source: str = TABLE) -> pl.DataFrame:
    given = [name for name in VALUES if name in table.columns]
    empty = {name: pl.col(name).is_null() for name in given}
    read = table.with_columns(
        _time_us().alias("time_us"),
        *(pl.col(name).str.strip_chars().cast(pl.Int64, strict=False) for name in given),
    )
    bad = pl.any_horizontal(
        pl.col("time_us").is_null(),
        pl.col("server").is_null(),
        *(pl.col(name).is_null() & ~pl.col(f"{name}_empty") for name in given),
    )
    marked = read.hstack(table.select(**{f"{name}_empty": gone for name, gone in empty.items()}))
    sound = marked.filter(~bad)
    tally.leave_out(DAMAGED, count=marked.height - sound.height)
    part = pl.col("part").fill_null("") if "part" in table.columns else pl.lit("")
    return sound.with_columns(source=pl.lit(source), part=part)


def _time_us() -> pl.Expr:
    """Whole seconds stay exact; decimals are rounded to a microsecond."""
    text = pl.col("t").str.strip_chars()
    whole = text.cast(pl.Int64, strict=False)
    usable = whole.abs() < 10**12
    decimal = text.cast(pl.Float64, strict=False)
    rounded = (decimal * SECOND).round().cast(pl.Int64, strict=False)
    return (
        pl.when(usable)
        .then(pl.when(usable).then(whole).otherwise(0) * SECOND)
        .when(decimal.abs() < 10**12)
        .then(rounded)
    )


class LdmsReader(MarkedReader):
    """Reads what LDMS stores as CSV: Lustre clients, targets, and jobs on targets."""

    name = "ldms"
    title = "LDMS: store_csv of its Lustre samplers"
    marker = re.compile(rb"^#?Time,Time_usec,ProducerName,")

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """Yield tables of samples; columns of a mount or target become its series."""
        counted: dict[str, dict[str, str]] = {}
        for heading, text in _headed_blocks(source, tally):
            names = [name.lstrip("#") for name in heading]
            if not counted:
                counted = _ldms_counters(names)
                if not 0 < len(counted) <= MOST_MOUNTS:
                    tally.note("no column counts bytes or files of Lustre" if not counted else
                               f"it counts more than {MOST_MOUNTS} mounts: skipped")  # fmt: skip
                    return
                wanted = {name for columns in counted.values() for name in columns.values()}
                wanted |= {"Time", "ProducerName", "ost", "mdt", "fs_name", "llite", "job_id"}
            table = _text_columns(_whole_rows(text, names, tally), names, wanted)
            table = table.filter(~pl.col("Time").str.starts_with("#").fill_null(value=False))
            for suffix, columns in counted.items():
                rows = table.select(
                    *_ldms_names(names, suffix),
                    **{name: pl.col(column) for name, column in columns.items()},
                )
                yield check_rows(_samples(rows, tally, source=TARGET), tally)


def _whole_rows(text: bytes, names: list[str], tally: Tally) -> bytes:
    """Leave out lines that are too short for all columns: as cells, they would fill the memory."""
    lines = text.split(b"\n")
    whole = [line for line in lines if len(line) >= len(names) - 1]
    tally.leave_out(DAMAGED, count=sum(map(bool, lines)) - len(whole))
    return b"\n".join([*whole, b""])


def _ldms_counters(names: list[str]) -> dict[str, dict[str, str]]:
    """Return the column of each counter, by the mount or target that it is of."""
    counted: dict[str, dict[str, str]] = {}
    for name in names:
        match = LDMS_COUNTER.fullmatch(name)
        if match is not None:
            counted.setdefault(match[2] or "", {})[LDMS_COUNTERS[match[1]]] = name
    return counted


def _ldms_names(names: list[str], suffix: str) -> list[pl.Expr]:
    """Return time, server, part and job of a row."""
    target = next((name for name in ("ost", "mdt") if name in names), None)
    mount = next((name for name in ("fs_name", "llite") if name in names), None)
    part = pl.lit(suffix) if suffix or mount is None else pl.col(mount)
    # Only on a target does `job_id` say whose bytes were counted.
    job = pl.col("job_id") if target and "snapshot_time" in names else pl.lit(None, pl.String)
    return [
        pl.col("Time").alias("t"),
        pl.col(target or "ProducerName").alias("server"),
        (pl.lit("") if target else part).alias("part"),
        job.alias("job"),
    ]


class CollectdReader(MarkedReader):
    """Reads one value list of collectd: what it is stands in the names of file and folders."""

    name = "collectd"
    title = "collectd: csv plugin, Lustre and disks (<host>/<plugin>/<type>-<date>)"
    marker = re.compile(rb"^epoch,(?:value|read,write)\r?\n")

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """Yield tables of samples; rates, which have decimals, are added up to counters."""
        heading = beginning(source, size=64).partition(b"\n")[0]
        named = [COLLECTD_VALUES.get(name) for name in COLLECTD_NAME.findall(source.name)[:1]]
        counters = named[0] if named else None
        if counters is None:
            tally.note("it counts neither bytes nor requests: skipped")
            return
        names = ["t", *counters[: heading.count(b",")]]
        plugin, host = source.parent.name, source.parent.parent.name
        budget, tables = Budget(source), [pl.DataFrame(schema=dict.fromkeys(names, pl.String))]
        for block in blocks(source, tally):
            tables.append(_text_columns(block, names, names))
            budget.take(COPIES_HELD * int(tables[-1].estimated_size()), "the table")
        rows = pl.concat(tables).filter(pl.col("t") != "epoch")
        if rows.select(pl.col(names[1:]).str.contains(r"[.n]").any()).row(0).count(True):
            step = pl.col("t").cast(pl.Float64, strict=False).diff().fill_null(0)
            rows = rows.with_columns(
                (pl.col(name).cast(pl.Float64, strict=False).fill_nan(0).fill_null(0) * step)
                .cum_sum().round().cast(pl.Int64).cast(pl.String)
                for name in names[1:]
            )  # fmt: skip
        part = f"{plugin} {source.name[:-11]}"  # without the date: each counter is a series
        series = rows.with_columns(server=pl.lit(host), part=pl.lit(part))
        yield check_rows(_samples(series, tally), tally)


class JobTableReader(JobLinesReader):
    """Reads a CSV with a heading; servers are separated by blanks, ranges may be in brackets."""

    name = "job-table"
    title = "jobs as CSV: job_id,start,end,servers[,nodes,user,account,partition,name,state]"

    def recognises(self, source: Path) -> bool:
        """Whether the heading names a job, a start and an end. Never raises."""
        first = beginning(source, size=4096).decode("utf-8", "replace").partition("\n")[0]
        return set(first.lstrip("\ufeff").strip().split(",")) >= JOB_COLUMNS

    def add_jobs(self, lines: Iterator[str], rows: JobRows, zone: ZoneInfo) -> None:
        """Add the jobs."""
        heading = next(lines, "").lstrip("\ufeff").strip().split(",")
        for line in lines:
            try:
                words = next(csv.reader([line]), [])
            except csv.Error:
                words = []
            if len(words) != len(heading):
                rows.tally.leave_out(DAMAGED)
            else:
                _add_job(dict(zip(heading, words, strict=True)), rows, zone)


def _add_job(values: Mapping[str, str], rows: JobRows, zone: ZoneInfo) -> None:
    try:
        given = [expand_hosts(word) for word in values.get("servers", "").split()]
    except HostlistError:
        rows.tally.leave_out(DAMAGED_NODES)
        return
    nodes = values.get("nodes", "")
    rows.add(
        values["job_id"],
        epoch_us(values["start"], zone),
        epoch_us(values["end"], zone),
        (name for names in given for name in names),
        nodes=int(nodes) if nodes.isdecimal() and len(nodes) < 8 else None,
        **{name: values.get(name) for name in JOB_FACTS},
    )
