"""Read a compressed table in blocks of whole lines, however much it unpacks to.

polars inflates a compressed file into memory at once, and half a megabyte can hold gigabytes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import polars as pl

from ioprism.formats.text import is_damaged, opened
from ioprism.model.trace import Warn

BLOCK = 8 * 2**20  # bytes unpacked at once
LONGEST_LINE = 16 * 2**20
QUOTE = b'"'

Parse = Callable[[bytes], pl.DataFrame]


def blocks_of(path: Path, *, lines_are_json: bool, warn: Warn) -> Iterator[pl.DataFrame]:
    """Yield the rows of a compressed table, unpacked block by block.

    Raises:
        ValueError: a line is longer than can be meant.
    """
    parse = _json_parser(path) if lines_are_json else _csv_parser(path)
    yield parse(b"")  # a table without rows has columns, too
    for block in _blocks(path, warn, skip_head=not lines_are_json):
        yield parse(block)


def _csv_parser(path: Path) -> Parse:
    with opened(path) as file:
        head = pl.read_csv(_line(file, path), infer_schema=False)
    names = head.columns

    def parse(block: bytes) -> pl.DataFrame:
        if not block.strip():
            return head.clear()
        return pl.read_csv(
            block,
            has_header=False,
            schema=dict.fromkeys(names, pl.String()),
            missing_columns="insert",
            truncate_ragged_lines=True,
            ignore_errors=True,
        )

    return parse


def _json_parser(path: Path) -> Parse:
    with opened(path) as file:
        first = file.read(BLOCK)
    whole = first[: first.rfind(b"\n") + 1] or first
    schema = pl.read_ndjson(whole, infer_schema_length=10_000, ignore_errors=True).schema

    def parse(block: bytes) -> pl.DataFrame:
        if not block.strip():
            return schema.to_frame()
        return pl.read_ndjson(io.BytesIO(block), schema=schema, ignore_errors=True)

    return parse


def _blocks(path: Path, warn: Warn, *, skip_head: bool) -> Iterator[bytes]:
    with opened(path) as file:
        if skip_head:
            _line(file, path)
        while block := file.read(BLOCK):
            held = [block, _line(file, path)]
            quotes, size = sum(piece.count(QUOTE) for piece in held), 0
            # A quoted line break; one quote too many must not bring the whole file into memory.
            while quotes % 2 and size < LONGEST_LINE and (more := _line(file, path)):
                held.append(more)
                quotes, size = quotes + more.count(QUOTE), size + len(more)
            yield b"".join(held)
        if is_damaged(file):
            warn(f"{path.name}: the compressed data are cut short or damaged; rows are missing")


def _line(file: BinaryIO, path: Path) -> bytes:
    line = file.readline(LONGEST_LINE)
    if len(line) == LONGEST_LINE:
        raise ValueError(
            f"a line of its {path.stat().st_size:,} compressed bytes unpacks to more than "
            f"{LONGEST_LINE:,} bytes"
        )
    return line
