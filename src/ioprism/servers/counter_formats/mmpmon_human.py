"""Read the counters of GPFS nodes as mmpmon prints them for people, without -p."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ioprism.model.counters import FILE_SYSTEM, NODE_TOTAL, SECOND, ReadingOptions, Tally
from ioprism.servers.counter_formats.counter_rows import Rows
from ioprism.servers.counter_formats.lines import DAMAGED, beginning, text_lines
from ioprism.servers.counter_formats.mmpmon import FAILED

HEADING = re.compile(r"mmpmon node (\S+) name (\S+) (\S+) (.*)")
SNIFFED = re.compile(rb"^mmpmon node \S+ name \S+ (?:fs_)?io_s ", re.MULTILINE)
FIELDS = {
    "bytes read": "br", "bytes written": "bw", "opens": "oc", "closes": "cc", "reads": "rdc",
    "writes": "wc", "timestamp": "time_us", "cluster": "cluster", "filesystem": "filesystem",
}  # fmt: skip
NEEDED = ("time_us", "br", "bw", "oc", "cc", "rdc", "wc")


class MmpmonHumanReader:
    """Reads a heading and one `name: value` a line."""

    name = "mmpmon-text"
    title = "GPFS counters: mmpmon without -p, io_s and fs_io_s"

    def recognises(self, source: Path) -> bool:
        """Whether a line is the heading of a record. Never raises."""
        return SNIFFED.search(beginning(source)) is not None

    def read(self, source: Path, options: ReadingOptions, tally: Tally) -> Iterator[pl.DataFrame]:  # noqa: ARG002
        """Yield tables of samples."""
        rows = Rows()
        record: dict[str, str] = {}
        for line in text_lines(source, tally):
            heading = HEADING.match(line)
            if heading is None:
                _take(line, record, tally)
                continue
            _finish(record, rows, tally)
            record = _begin(*heading.groups(), tally=tally)
            if rows.full():
                yield rows.table(tally)
        _finish(record, rows, tally)
        yield from rows.rest(tally)


def _begin(address: str, name: str, request: str, status: str, *, tally: Tally) -> dict[str, str]:
    if request not in ("io_s", "fs_io_s"):
        return {}
    if status.strip() != "OK":
        tally.leave_out(FAILED)
        return {}
    return {"server": name or address, "request": request}


def _take(line: str, record: dict[str, str], tally: Tally) -> None:
    label, colon, value = line.partition(":")
    if not record or not line.strip():
        return
    field = FIELDS.get(label.strip())
    if field is not None:
        if field in record:  # the next file system of the same answer has no heading of its own
            tally.leave_out(DAMAGED)
            return
        record[field] = value.strip()
    elif not colon:
        tally.leave_out(DAMAGED)


def _finish(record: dict[str, str], rows: Rows, tally: Tally) -> None:
    if not record:
        return
    of_file_system = record["request"] == "fs_io_s"
    try:
        seconds, _, micro = record["time_us"].partition("/")
        values = {name: int(record[name]) for name in NEEDED if name != "time_us"}
        time_us = int(seconds) * SECOND + int(micro)
        part = f"{record['cluster']}/{record['filesystem']}" if of_file_system else ""
    except (KeyError, ValueError):
        tally.leave_out("incomplete record")
        return
    source = FILE_SYSTEM if of_file_system else NODE_TOTAL
    rows.add(tally, server=record["server"], part=part, source=source, time_us=time_us, **values)
