"""Read counters from a plain CSV table: `server,t,br,bw,rdc,wc,oc,cc`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ioprism.model.counters import SECOND, TABLE, VALUES, ReadingOptions, Tally
from ioprism.servers.counter_formats.counter_rows import checked
from ioprism.servers.counter_formats.lines import DAMAGED, beginning, blocks

NEEDED = ("server", "t")


class CounterTableReader:
    """Reads a CSV with a heading; times are seconds since 1970."""

    name = "counter-table"
    title = "counters as CSV: server,t,br,bw,rdc,wc,oc,cc"

    def recognises(self, source: Path) -> bool:
        """Whether the heading names a server, a time and counters. Never raises."""
        heading = _heading(beginning(source, size=4096))
        return set(NEEDED) <= set(heading) and not set(VALUES).isdisjoint(heading)

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """Yield tables of samples."""
        names: list[str] = []
        for block in blocks(source, tally):
            text = block
            if not names:
                first, _, text = block.partition(b"\n")
                names = _heading(first)
            yield checked(_samples(_columns(text, names), tally), tally)


def _heading(text: bytes) -> list[str]:
    first = text.partition(b"\n")[0].decode("utf-8", errors="replace")
    return [name.strip().strip('"') for name in first.lstrip("\ufeff").rstrip("\r").split(",")]


def _columns(text: bytes, names: list[str]) -> pl.DataFrame:
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
        _microseconds().alias("time_us"),
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


def _microseconds() -> pl.Expr:
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
