"""Read CSV tables of counters (`server,t,br,bw,…`) and of jobs (`job_id,start,end,servers`)."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl

from ioprism.formats.budget import Budget
from ioprism.formats.local_time import epoch_us, zone_of
from ioprism.model.counters import SECOND, TABLE, VALUES, ReadingOptions, Tally
from ioprism.servers.formats.records import (
    DAMAGED,
    DAMAGED_NODES,
    HostlistError,
    JobRows,
    beginning,
    blocks,
    check_rows,
    expand_hosts,
    text_lines,
)

COUNTER_COLUMNS = ("server", "t")
JOB_COLUMNS = {"job_id", "start", "end"}
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
        """Yield tables of samples."""
        names: list[str] = []
        for block in blocks(source, tally):
            text = block
            if not names:
                first, _, text = block.partition(b"\n")
                names = _counter_heading(first)
            yield check_rows(_samples(_text_columns(text, names), tally), tally)


def _counter_heading(text: bytes) -> list[str]:
    first = text.partition(b"\n")[0].decode("utf-8", errors="replace")
    return [name.strip().strip('"') for name in first.lstrip("\ufeff").rstrip("\r").split(",")]


def _text_columns(text: bytes, names: list[str]) -> pl.DataFrame:
    """Return all columns as text: one damaged value must not cost the whole table."""
    numbered = {f"{number}:{name}": pl.String for number, name in enumerate(names)}
    if not text.strip():
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    table = pl.read_csv(
        text,
        has_header=False,
        schema=numbered,
        encoding="utf8-lossy",
        quote_char=None,  # one quote too many must not swallow the lines after it
        truncate_ragged_lines=True,
        missing_columns="insert",
        extra_columns="ignore",
    )
    first = {name: f"{number}:{name}" for number, name in reversed(list(enumerate(names)))}
    return table.select(
        pl.col(column).str.strip_chars('" \r').alias(name) for name, column in first.items()
    )


def _samples(table: pl.DataFrame, tally: Tally) -> pl.DataFrame:
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
    return sound.with_columns(source=pl.lit(TABLE), part=part)


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


class JobTableReader:
    """Reads a CSV with a heading; servers are separated by blanks, ranges may be in brackets."""

    name = "job-table"
    title = "jobs as CSV: job_id,start,end,servers[,nodes,user,account,partition,name,state]"

    def recognises(self, source: Path) -> bool:
        """Whether the heading names a job, a start and an end. Never raises."""
        first = beginning(source, size=4096).decode("utf-8", "replace").partition("\n")[0]
        return set(first.lstrip("\ufeff").strip().split(",")) >= JOB_COLUMNS

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
        """Return the jobs."""
        zone = zone_of(options.timezone)
        lines = text_lines(source, tally)
        heading = next(lines, "").lstrip("\ufeff").strip().split(",")
        rows = JobRows(Budget(source))
        for line in lines:
            words = _csv_words(line)
            if words is None or len(words) != len(heading):
                tally.leave_out(DAMAGED)
            else:
                _add_job(dict(zip(heading, words, strict=True)), rows, zone, tally)
        return rows.table()


def _csv_words(line: str) -> list[str] | None:
    try:
        return next(csv.reader([line]), None)
    except csv.Error:
        return None


def _add_job(values: Mapping[str, str], rows: JobRows, zone: ZoneInfo, tally: Tally) -> None:
    try:
        given = [expand_hosts(word) for word in values.get("servers", "").split()]
    except HostlistError:
        tally.leave_out(DAMAGED_NODES)
        return
    servers = list(dict.fromkeys(name for names in given for name in names))
    rows.add(
        tally,
        job=values["job_id"],
        start_us=epoch_us(values["start"], zone),
        end_us=epoch_us(values["end"], zone),
        servers=servers,
        nodes=_node_count(values.get("nodes", "")),
        **{name: values.get(name) or None for name in JOB_FACTS},
    )


def _node_count(text: str) -> int | None:
    return int(text) if text.isdecimal() and 0 < len(text) < 8 and int(text) else None
