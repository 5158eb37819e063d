"""What all readers share: text in blocks of whole lines, rows of counters and jobs, lists of hosts.

Memory stays bounded however long a file or a line is; records that cannot be true are counted,
not used.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.formats.reading import Budget, check_file
from ioprism.formats.text import TORN_END, is_gzip, squeeze, zone_of
from ioprism.model.counters import (
    COUNTERS,
    EARLIEST,
    JOBS,
    LATEST,
    SECOND,
    SERIES_KEY,
    VALUES,
    ReadingOptions,
    Tally,
)
from ioprism.model.trace import MIB
from ioprism.servers.limits import ROWS_PER_TABLE
from ioprism.units import LARGEST

BLOCK = MIB  # text per table, or line, at most; as rows, empty lines take 250 times as much
DAMAGED = "damaged line"
BAD_TIME = "record with an impossible time"
BAD_COUNTER = "record with an impossible counter"
DAMAGED_NODES = "job with a damaged list of nodes"
NOT_ENDED = "job without a start or end"
NO_DURATION = "job that does not end after its start"
BYTES_OF_NAME = 80  # that a server's name takes in a list and in the table
BYTES_OF_RECORD = 400  # that a job takes beside its texts and servers, or another record
COPIES_HELD = 6  # of a text while it is parsed: as lines, words and numbers
LONGEST_TEXT = 1024  # characters of a name in a record of counters
MOST_HOSTS = 200_000
LONGEST_NAME = 253  # characters, as the domain name system allows
NO_HOSTS = frozenset({"", "none assigned", "(null)", "none", "null", "unknown"})
HOST_WORD = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")  # between commas outside of brackets
RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
PIECE = re.compile(r"([^\[\],]*)(?:\[([^\[\]]*)\])?")
MAP_HINT = "Hint: the first line is `node,server`; nodes may be ranges such as node[1-32], or *."
ANY_NODE = "*"  # every job uses the server, whatever its nodes


def open_text(source: Path) -> BufferedReader:
    """Open a file for reading; gzip is undone."""
    if is_gzip(source):
        return cast("BufferedReader", gzip.open(source, "rb"))
    return source.open("rb")


def beginning(source: Path, *, size: int = 64 * 1024) -> bytes:
    """Return the first bytes of the text, or nothing if it cannot be read. Never raises."""
    try:
        with open_text(source) as file:
            return file.read(size)
    except (OSError, EOFError, zlib.error):
        return b""


class MarkedReader:
    """A reader of text whose lines show its format."""

    marker: re.Pattern[bytes]  # matches a line of this format and of no other

    def recognises(self, source: Path) -> bool:
        """Whether a line at the beginning is of this format. Never raises."""
        return self.marker.search(beginning(source)) is not None


def blocks(source: Path, tally: Tally, *, size: int = BLOCK) -> Iterator[bytes]:
    """Yield blocks of whole lines; a line that is too long is left out and counted.

    Raises:
        BrokenTraceError: the file is damaged gzip from its first byte on.
    """
    rest = b""
    overlong = False
    for read in _pieces(source, tally, size):
        whole, newline, tail = (rest + read).rpartition(b"\n")
        if overlong and newline:
            whole = whole.partition(b"\n")[2]
            overlong = False
        if whole:
            yield squeeze(whole) + b"\n"
        rest = tail
        if len(rest) > BLOCK:
            tally.leave_out(DAMAGED, count=0 if overlong else 1)
            rest, overlong = b"", True
    if rest and not overlong:
        tally.note(f"{source.name}: {TORN_END}")
        yield rest + b"\n"


def _pieces(source: Path, tally: Tally, size: int) -> Iterator[bytes]:
    begun = False
    held = bytearray()
    try:
        with open_text(source) as file:
            while read := file.read1(size):  # unlike read, it gives what came before any damage
                begun = True
                held += read
                if len(held) >= size:
                    yield bytes(held)
                    held.clear()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        if not begun:
            raise BrokenTraceError(
                f"it cannot be unpacked ({error}).\nHint: copy the file again.", source=source
            ) from error
        tally.note(f"{source.name} is cut short or damaged: what follows is not read")
    if held:
        yield bytes(held)


def text_lines(source: Path, tally: Tally) -> Iterator[str]:
    """Yield one line after another, without its end; odd bytes become U+FFFD."""
    for block in blocks(source, tally):
        for line in block.decode("utf-8", errors="replace").split("\n"):
            if line:
                yield line.removesuffix("\r")


@dataclass(slots=True)
class CounterRows:
    """Samples collected so far, as columns."""

    columns: dict[str, list[Any]] = field(
        default_factory=lambda: {name: [] for name in COUNTERS.names}
    )

    def __len__(self) -> int:
        return len(self.columns["server"])

    def add(self, tally: Tally, **values: str | int | None) -> None:
        """Add one sample; one that cannot be true is counted instead."""
        if not EARLIEST <= int(values["time_us"] or 0) <= LATEST:
            tally.leave_out(BAD_TIME)
        elif not all(0 <= int(values.get(name) or 0) <= LARGEST for name in VALUES):
            tally.leave_out(BAD_COUNTER)
        elif any(len(str(values.get(name, ""))) > LONGEST_TEXT for name in SERIES_KEY):
            tally.leave_out(DAMAGED)
        else:
            for name, column in self.columns.items():
                column.append(values.get(name))

    def table(self, tally: Tally) -> pl.DataFrame:
        """Return the samples as a table and forget them."""
        table = pl.DataFrame(self.columns, schema=COUNTERS.schema)
        for column in self.columns.values():
            column.clear()
        return check_rows(table, tally)

    def full(self) -> bool:
        """Whether it is time to make a table of them."""
        return len(self) >= ROWS_PER_TABLE

    def rest(self, tally: Tally) -> Iterator[pl.DataFrame]:
        """Yield what is left, if anything is."""
        if len(self):
            yield self.table(tally)


def check_rows(table: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Leave out and count rows that cannot be true; note clocks that went back."""
    table = COUNTERS.conform(table)
    in_time = pl.col("time_us").is_between(EARLIEST, LATEST).fill_null(value=False)
    possible = pl.all_horizontal(pl.col(name).fill_null(0) >= 0 for name in VALUES)
    named = pl.col("server").is_not_null() & (pl.col("server") != "")
    if not table.select((in_time & named & possible).all()).item():
        kept = table.filter(in_time & named)
        tally.leave_out(BAD_TIME, count=table.height - kept.height)
        table = kept.filter(possible)
        tally.leave_out(BAD_COUNTER, count=kept.height - table.height)
    _note_clocks(table, tally)
    tally.records += table.height
    return table


def _note_clocks(table: pl.DataFrame, tally: Tally) -> None:
    own = table.filter(pl.col("job").is_null())  # jobs have the clock of their server
    table = own if own.height else table
    if table["time_us"].is_sorted():
        return
    step_back = pl.col("time_us").diff().over(*SERIES_KEY) < 0
    servers = table.filter(step_back)["server"].unique().sort().to_list()
    if servers:
        named = ", ".join(servers[:3]) + (" …" if len(servers) > 3 else "")
        tally.note(f"time goes backwards in the records of {len(servers)} servers ({named})")


def microseconds(text: str) -> int:
    """Return decimal seconds such as `1510782606.789180921` as whole microseconds.

    Raises:
        ValueError: the text is not such a number.
    """
    whole, _, fraction = text.strip().partition(".")
    sign = -1 if whole.startswith("-") else 1
    digits = (fraction + "000000")[:6]
    if not (whole.lstrip("-") + digits).isdecimal() or len(whole) > 15:
        raise ValueError(f"{text!r} is not a time")
    return int(whole) * SECOND + sign * int(digits)


@dataclass(slots=True)
class JobRows:
    """Jobs collected so far, as columns; a fact that is empty is unknown."""

    budget: Budget
    tally: Tally
    columns: dict[str, list[Any]] = field(default_factory=lambda: {n: [] for n in JOBS.names})

    def add(
        self,
        job: str,
        start_us: int | None,
        end_us: int | None,
        servers: Iterable[str],
        /,
        **facts: str | int | None,
    ) -> None:
        """Add one job; one that cannot be placed in time is counted instead.

        Raises:
            OverBudgetError: the jobs so far name more servers than fit into the budget.
        """
        if start_us is None or end_us is None:
            self.tally.leave_out(NOT_ENDED)
            return
        if end_us <= start_us:
            self.tally.leave_out(NO_DURATION)
            return
        names = list(dict.fromkeys(servers))
        texts = BYTES_OF_RECORD + sum(len(str(text)) for text in (job, *facts.values()) if text)
        self.budget.take(texts + BYTES_OF_NAME * len(names), "the jobs and their hosts")
        known = {name: value or None for name, value in {"nodes": len(names), **facts}.items()}
        given = {**known, "job": job, "start_us": start_us, "end_us": end_us, "servers": names}
        for name, column in self.columns.items():
            column.append(given.get(name))
        self.tally.records += 1

    def table(self) -> pl.DataFrame:
        """Return the jobs."""
        return pl.DataFrame(self.columns, schema=JOBS.schema)


class JobLinesReader(MarkedReader):
    """A reader of jobs whose records are put together from lines."""

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> pl.DataFrame:
        """Return the jobs that ended."""
        rows = JobRows(Budget(source), tally)
        self.add_jobs(text_lines(source, tally), rows, zone_of(options.timezone))
        return rows.table()

    def add_jobs(self, lines: Iterator[str], rows: JobRows, zone: ZoneInfo) -> None:
        """Add every job of the text."""
        raise NotImplementedError


class HostlistError(ValueError):
    """The text is not a list of hosts, or names more than any machine has."""


@lru_cache(maxsize=64)  # the same list comes up many times in a row
def expand_hosts(text: str) -> tuple[str, ...]:
    """Return the hosts in the order written, each once; none for `None assigned` and the like.

    Raises:
        HostlistError: brackets do not match, a range runs backwards, or it has no end.
    """
    if text.strip().lower() in NO_HOSTS:
        return ()
    if HOST_WORD.sub("", text).strip(","):
        raise HostlistError(f"the brackets of {text[:80]!r} do not match")
    hosts: dict[str, None] = {}
    for word in HOST_WORD.findall(text.strip()):
        hosts.update(dict.fromkeys(_expand_host_word(word)))
        _check_host_count(len(hosts))
    return tuple(hosts)


def _expand_host_word(word: str) -> list[str]:
    """Expand every bracket of one word; the last changes fastest."""
    names = [""]
    for piece in PIECE.finditer(word):
        prefix, ranges = piece.groups()
        if len(names[0]) + len(prefix) > LONGEST_NAME:
            raise HostlistError(f"a host of {word[:80]!r} has an implausibly long name")
        endings = [prefix] if ranges is None else [prefix + n for n in _host_numbers(ranges)]
        _check_host_count(len(names) * len(endings))
        names = [name + ending for name in names for ending in endings]
    return names


def _host_numbers(ranges: str) -> list[str]:
    numbers: list[str] = []
    for one in ranges.split(","):
        match = RANGE.fullmatch(one.strip())
        if match is None:
            raise HostlistError(f"{one[:80]!r} is not a range of numbers")
        first, last = match[1], match[2] or match[1]
        _check_host_count(int(last) - int(first) + 1)
        if int(last) < int(first):
            raise HostlistError(f"the range {one!r} runs backwards")
        width = len(first) if first.startswith("0") or len(first) == len(last) else 0
        numbers += [str(n).zfill(width) for n in range(int(first), int(last) + 1)]
        _check_host_count(len(numbers))
    return numbers


def _check_host_count(count: int) -> None:
    if count > MOST_HOSTS:
        raise HostlistError(f"it names {count} hosts; more than {MOST_HOSTS} are implausible")


def read_server_map(source: Path) -> pl.DataFrame:
    """Return pairs of node and server; a node may have several servers.

    Raises:
        NoSuchTraceError: the file does not exist.
        BrokenTraceError: it is not such a table.
    """
    check_file(source)
    try:
        rows = list(csv.reader(text_lines(source, Tally())))
    except csv.Error as error:
        raise BrokenTraceError(
            f"it is not a CSV table ({error}).\n{MAP_HINT}", source=source
        ) from error
    if not rows or [word.strip() for word in rows[0]][:2] != ["node", "server"]:
        raise BrokenTraceError(
            f"this is not a map from nodes to servers.\n{MAP_HINT}", source=source
        )
    pairs: list[tuple[str, str]] = []
    budget = Budget(source)
    try:
        for row in rows[1:]:
            nodes = expand_hosts(",".join(row[0].split())) if len(row) >= 2 else ()
            budget.take(2 * BYTES_OF_NAME * len(nodes), "the lists of nodes")
            pairs += [(node, row[1].strip()) for node in nodes]
    except HostlistError as error:
        raise BrokenTraceError(f"{error}.\n{MAP_HINT}", source=source) from error
    return pl.DataFrame(pairs, schema={"node": pl.String, "server": pl.String}, orient="row")


def map_servers(jobs: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the jobs with the servers behind their nodes; unmapped nodes are left out.

    A server is listed once for each of the job's nodes that use it: that is its weight.
    """
    numbered = jobs.with_row_index("row")
    servers = (
        numbered.select("row", node="servers")
        .explode("node")
        .join(pairs, on="node", how="inner")
        .group_by("row")
        .agg(servers=pl.col("server").sort())
    )
    everywhere = pairs.filter(pl.col("node") == ANY_NODE)["server"].unique().sort()
    joined = numbered.drop("servers").join(servers, on="row", how="left").sort("row")
    own = pl.col("servers").fill_null([])
    return joined.with_columns(own.list.concat(everywhere.implode())).select(jobs.columns)
