"""Read the counters of GPFS nodes: `mmpmon -p`, one record per line, and mmpmon's text for people.

A line of `mmpmon -p` is a record type and pairs of key and value. Lines in the order that mmpmon
writes are read by position, a block at a time; any other order is read pair by pair.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ioprism.model.counters import COUNTERS, FILE_SYSTEM, NODE_TOTAL, SECOND, ReadingOptions, Tally
from ioprism.servers.formats.records import (
    DAMAGED,
    CounterRows,
    MarkedReader,
    blocks,
    check_rows,
    text_lines,
)

RECORDS = {"_io_s_": NODE_TOTAL, "_fs_io_s_": FILE_SYSTEM}
OTHER_RECORDS = frozenset(
    {"_failed_", "_ver_", "_reset_", "_end_", "_nlist_", "_rhist_", "_response_", "_once_",
     "_begin_", "_mmpmon_"}
)  # fmt: skip
HEAD = ("n", "nn", "rc", "t", "tu")
PLACE = ("cl", "fs", "d")
TAIL = ("br", "bw", "oc", "cc", "rdc", "wc")
KEYS = {"_io_s_": (*HEAD, *TAIL), "_fs_io_s_": (*HEAD, *PLACE, *TAIL)}
TOKENS = 1 + 2 * (len(HEAD) + len(PLACE) + len(TAIL) + 2)
NEVER = 10**12  # a second beyond all times, so that the product below cannot overflow
FAILED = "record of a request that failed"
HEADING = re.compile(r"mmpmon node (\S+) name (\S+) (\S+) (.*)")
FIELDS = {
    "bytes read": "br", "bytes written": "bw", "opens": "oc", "closes": "cc", "reads": "rdc",
    "writes": "wc", "timestamp": "time_us", "cluster": "cluster", "filesystem": "filesystem",
}  # fmt: skip
TEXT_COUNTERS = ("time_us", "br", "bw", "oc", "cc", "rdc", "wc")


class MmpmonReader(MarkedReader):
    """Reads `mmpmon -p` output, alone or appended over months."""

    name = "mmpmon"
    title = "GPFS counters: mmpmon -p, io_s and fs_io_s"
    marker = re.compile(
        rb"^_(?:fs_)?io_s_ +_|^_response_ |^_(?:failed|ver|reset|nlist)_ +_n_", re.MULTILINE
    )

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """Yield tables of samples."""
        for block in blocks(source, tally):
            yield check_rows(parse_block(block, tally), tally)


def parse_block(block: bytes, tally: Tally) -> pl.DataFrame:
    """Return the samples of a block of whole lines."""
    tokens = pl.read_csv(
        block,
        has_header=False,
        separator=" ",
        quote_char=None,
        encoding="utf8-lossy",
        schema={f"token{number}": pl.String for number in range(TOKENS)},
        truncate_ragged_lines=True,
        missing_columns="insert",
        extra_columns="ignore",
    )
    kinds = tokens["token0"]
    usual = {kind: _by_position(tokens, kinds == kind, kind) for kind in RECORDS}
    answered = [_successful_records(table, tally) for table in usual.values()]
    fits = pl.concat([table["line"] for table in usual.values()])
    if len(fits) == tokens.height:
        return pl.concat(answered)
    line = pl.int_range(pl.len(), dtype=pl.UInt32)
    odd = tokens.filter(~line.is_in(fits.implode()) & pl.col("token0").is_not_null())
    return pl.concat([*answered, _pair_by_pair(odd, tally)])


def _by_position(tokens: pl.DataFrame, chosen: pl.Series, kind: str) -> pl.DataFrame:
    """Return the lines of one kind whose keys stand where mmpmon puts them."""
    places = {key: place for place, key in enumerate(KEYS[kind])}
    keys_fit = [pl.col(f"token{1 + 2 * place}") == f"_{key}_" for key, place in places.items()]
    value = {key: pl.col(f"token{2 + 2 * place}") for key, place in places.items()}
    number = {key: value[key].cast(pl.Int64, strict=False) for key in ("rc", "t", "tu", *TAIL)}
    part = pl.concat_str(value["cl"], pl.lit("/"), value["fs"]) if "fs" in value else pl.lit("")
    return (
        tokens.with_row_index("line")
        .filter(chosen & chosen.is_not_null())
        .filter(pl.all_horizontal(keys_fit))
        .select("line", server=value["nn"], part=part, source=pl.lit(RECORDS[kind]), **number)
        .drop_nulls()
    )


def _successful_records(table: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    answered = table.filter(pl.col("rc") == 0)
    tally.leave_out(FAILED, count=table.height - answered.height)
    return COUNTERS.conform(
        answered.with_columns(time_us=pl.col("t").clip(0, NEVER) * SECOND + pl.col("tu"))
    )


def _pair_by_pair(tokens: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    rows = CounterRows()
    for line in tokens.select(
        pl.concat_str(pl.all(), separator=" ", ignore_nulls=True)
    ).to_series():
        words = line.split()
        if words and words[0] in RECORDS:
            _add_pairs(words, rows, tally)
        elif words and words[0] not in OTHER_RECORDS:
            tally.leave_out(DAMAGED)
        elif words and words[0] == "_failed_":
            tally.leave_out(FAILED)
    return pl.DataFrame(rows.columns, schema=COUNTERS.schema)


def _add_pairs(words: list[str], rows: CounterRows, tally: Tally) -> None:
    kind = words[0]
    fields = dict(zip(words[1::2], words[2::2], strict=False))
    try:
        given = {key: fields[f"_{key}_"] for key in KEYS[kind] if key != "d"}
        numbers = {key: _counter_value(given[key]) for key in ("rc", "t", "tu", *TAIL)}
    except (KeyError, ValueError):
        tally.leave_out(DAMAGED)
        return
    if numbers["rc"]:
        tally.leave_out(FAILED)
        return
    rows.add(
        tally,
        server=given["nn"],
        part=f"{given['cl']}/{given['fs']}" if kind == "_fs_io_s_" else "",
        source=RECORDS[kind],
        time_us=numbers["t"] * SECOND + numbers["tu"],
        **{key: numbers[key] for key in TAIL},
    )


def _counter_value(text: str) -> int:
    if not text.isdecimal() or len(text) > 19:
        raise ValueError(f"{text!r} is not a counter")
    return int(text)


class MmpmonTextReader(MarkedReader):
    """Reads a heading and one `name: value` a line."""

    name = "mmpmon-text"
    title = "GPFS counters: mmpmon without -p, io_s and fs_io_s"
    marker = re.compile(rb"^mmpmon node \S+ name \S+ (?:fs_)?io_s ", re.MULTILINE)

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """Yield tables of samples."""
        rows = CounterRows()
        record: dict[str, str] = {}
        for line in text_lines(source, tally):
            heading = HEADING.match(line)
            if heading is None:
                _take_field(line, record, tally)
                continue
            _finish_record(record, rows, tally)
            record = _begin_record(*heading.groups(), tally=tally)
            if rows.full():
                yield rows.table(tally)
        _finish_record(record, rows, tally)
        yield from rows.rest(tally)


def _begin_record(
    address: str, name: str, request: str, status: str, *, tally: Tally
) -> dict[str, str]:
    if request not in ("io_s", "fs_io_s"):
        return {}
    if status.strip() != "OK":
        tally.leave_out(FAILED)
        return {}
    return {"server": name or address, "request": request}


def _take_field(line: str, record: dict[str, str], tally: Tally) -> None:
    label, colon, value = line.partition(":")
    if not record or not line.strip():
        return
    field = FIELDS.get(label.strip())
    if field is not None:
        if field in record:  # the next file system of the same answer has no heading
            tally.leave_out(DAMAGED)
            return
        record[field] = value.strip()
    elif not colon:
        tally.leave_out(DAMAGED)


def _finish_record(record: dict[str, str], rows: CounterRows, tally: Tally) -> None:
    if not record:
        return
    of_file_system = record["request"] == "fs_io_s"
    try:
        seconds, _, micro = record["time_us"].partition("/")
        values = {name: int(record[name]) for name in TEXT_COUNTERS if name != "time_us"}
        time_us = int(seconds) * SECOND + int(micro)
        part = f"{record['cluster']}/{record['filesystem']}" if of_file_system else ""
    except (KeyError, ValueError):
        tally.leave_out("incomplete record")
        return
    source = FILE_SYSTEM if of_file_system else NODE_TOTAL
    rows.add(tally, server=record["server"], part=part, source=source, time_us=time_us, **values)
