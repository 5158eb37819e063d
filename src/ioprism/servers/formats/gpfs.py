"""Read the counters of GPFS nodes: `mmpmon -p`, one record per line, and mmpmon's text for people.

A line of `mmpmon -p` is a record type and pairs of key and value. Lines in the order that mmpmon
writes are read by position, a block at a time; any other order is read pair by pair.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ioprism.model.counters import (
    COUNTERS,
    FILE_SYSTEM,
    LATEST,
    NODE_TOTAL,
    SECOND,
    ReadingOptions,
    Tally,
)
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
TOKENS = [f"token{number}" for number in range(1 + 2 * (len(HEAD) + len(PLACE) + len(TAIL) + 2))]
FAILED = "record of a request that failed"
HEADING = re.compile(r"mmpmon node (\S+) name (\S+) (\S+) (.*)")
FIELDS = {
    "bytes read": "br", "bytes written": "bw", "opens": "oc", "closes": "cc", "reads": "rdc",
    "writes": "wc", "timestamp": "time_us", "cluster": "cluster", "filesystem": "filesystem",
}  # fmt: skip


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
        schema=dict.fromkeys(TOKENS, pl.String),
        truncate_ragged_lines=True,
        missing_columns="insert",
        extra_columns="ignore",
    ).with_row_index("line")
    usual = _by_position(tokens)
    if usual.height < tokens.height:
        odd = tokens.join(usual, on="line", how="anti").drop("line")
        sorted_pairs = _in_usual_order(odd, tally)
        understood = _by_position(sorted_pairs)
        tally.leave_out(DAMAGED, count=sorted_pairs.height - understood.height)
        usual = pl.concat([usual, understood])
    answered = usual.filter(pl.col("rc") == 0)
    tally.leave_out(FAILED, count=usual.height - answered.height)
    seconds = pl.col("t").clip(0, LATEST // SECOND + 1)  # so that the product cannot overflow
    return COUNTERS.conform(answered.with_columns(time_us=seconds * SECOND + pl.col("tu")))


def _by_position(tokens: pl.DataFrame) -> pl.DataFrame:
    """Return the lines whose keys stand where mmpmon puts them."""
    return pl.concat(_records_of_kind(tokens, kind) for kind in RECORDS)


def _records_of_kind(tokens: pl.DataFrame, kind: str) -> pl.DataFrame:
    places = {key: place for place, key in enumerate(KEYS[kind])}
    keys_fit = [pl.col(TOKENS[1 + 2 * place]) == f"_{key}_" for key, place in places.items()]
    value = {key: pl.col(TOKENS[2 + 2 * place]) for key, place in places.items()}
    number = {key: value[key].cast(pl.Int64, strict=False) for key in ("rc", "t", "tu", *TAIL)}
    part = pl.concat_str(value["cl"], pl.lit("/"), value["fs"]) if "fs" in value else pl.lit("")
    return (
        tokens.filter(pl.col(TOKENS[0]) == kind)
        .filter(pl.all_horizontal(keys_fit))
        .select("line", server=value["nn"], part=part, source=pl.lit(RECORDS[kind]), **number)
        .drop_nulls()
    )


def _in_usual_order(odd: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Return records whose keys come in another order, or with more blanks, as mmpmon writes them.

    Keys that are missing are null; lines of other kinds are left out.
    """
    lines = odd.select(pl.concat_str(pl.all(), separator=" ", ignore_nulls=True)).to_series()
    rows = []
    for kind, *words in filter(None, map(str.split, lines.fill_null(""))):
        if kind in RECORDS:
            pairs = {"_d_": "0", **dict(zip(words[::2], words[1::2], strict=False))}
            keys = [f"_{key}_" for key in KEYS[kind]]
            row = [kind, *(word for key in keys for word in (key, pairs.get(key)))]
            rows.append(row + [None] * (len(TOKENS) - len(row)))
        elif kind == "_failed_":
            tally.leave_out(FAILED)
        elif kind not in OTHER_RECORDS:
            tally.leave_out(DAMAGED)
    table = pl.DataFrame(rows, schema=dict.fromkeys(TOKENS, pl.String), orient="row")
    return table.with_row_index("line")


class MmpmonTextReader(MarkedReader):
    """Reads a heading and one `name: value` a line."""

    name = "mmpmon-text"
    title = "GPFS counters: mmpmon without -p, io_s and fs_io_s"
    marker = re.compile(rb"^mmpmon node \S+ name \S+ (?:fs_)?io_s ", re.MULTILINE)

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """Yield tables of samples."""
        rows = CounterRows()
        heading: re.Match[str] | None = None
        body: list[str] = []
        for line in text_lines(source, tally):
            next_heading = HEADING.match(line)
            if next_heading is None:
                body.append(line)
                continue
            _add_record(heading, body, rows, tally)
            heading, body = next_heading, []
            if rows.full():
                yield rows.table(tally)
        _add_record(heading, body, rows, tally)
        yield from rows.rest(tally)


def _add_record(
    heading: re.Match[str] | None, body: list[str], rows: CounterRows, tally: Tally
) -> None:
    if heading is None or f"_{heading[3]}_" not in RECORDS:
        return
    if heading[4].strip() != "OK":
        tally.leave_out(FAILED)
        return
    record: dict[str, str] = {}
    for line in filter(str.strip, body):
        label, colon, value = line.partition(":")
        field = FIELDS.get(label.strip())
        if field in record or not (field or colon):
            tally.leave_out(DAMAGED)  # the next file system of the same answer has no heading
        elif field is not None:
            record[field] = value.strip()
    source = RECORDS[f"_{heading[3]}_"]
    try:
        seconds, _, micro = record["time_us"].partition("/")
        values = {name: int(record[name]) for name in TAIL}
        time_us = int(seconds) * SECOND + int(micro)
        of_file_system = source == FILE_SYSTEM
        part = f"{record['cluster']}/{record['filesystem']}" if of_file_system else ""
    except (KeyError, ValueError):
        tally.leave_out("incomplete record")
        return
    rows.add(tally, server=heading[2], part=part, source=source, time_us=time_us, **values)
