"""Begin to inflate in the middle of a gzip member: where an index says how.

An index notes, every few megabytes of text, where a block of the compressed data begins, down
to the bit, and the 32 KiB of text in front of it. Two kinds are read: what `indexed_gzip`
writes (`NAME.gzidx`) and the SQLite tables of dftracer-utils (`NAME.zindex`, `NAME.idx`). One of
the first kind is made here if that package is installed: in the cache folder of the user, or
beside the file where that was asked for.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
from isal import isal_zlib

from ioprism.errors import OutputError
from ioprism.formats.isolation import opened_tables
from ioprism.formats.text import UNREADABLE
from ioprism.storage.atomic import atomic_write
from ioprism.storage.checked import cached_name

OWN = ".gzidx"
SQLITE = (".zindex", ".idx")
SPACING = 16 * 2**20  # bytes of text between checkpoints of an index that is made here
WINDOW = 2**18  # compressed bytes per read
CHUNK = 2**20  # inflated bytes per step
MOST_POINTS = 1_000_000
LEAST_INDEX, INDEX_SHARE = 16 * 2**20, 4  # bytes of an index, and of those per byte of its file
REACH = 2**15  # bytes of text that compressed data may refer back to
DAMAGED = (ValueError, TypeError, OverflowError, struct.error, sqlite3.Error, *UNREADABLE)
_HEAD = struct.Struct("<5sBBQQIII")  # GZIDX, version, flags, sizes, spacing, window, points
_POINT = struct.Struct("<QQBB")  # compressed and inflated offset, bits, whether text follows


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where inflating can begin."""

    text: int  # bytes of text before it
    at: int  # the first whole byte of its compressed data
    bits: int  # of the byte in front of that which belong to it, too
    before: bytes = field(repr=False)  # the text in front of it


@dataclass(frozen=True, slots=True)
class Index:
    """Where inflating a file can begin, in the order of its text."""

    points: tuple[Checkpoint, ...] = ()
    size: int = 0  # bytes of text


@dataclass(frozen=True, slots=True)
class TextStretch:
    """Lines between two checkpoints: from behind the first line end to behind the next one's."""

    begin: Checkpoint | None  # None: the file's beginning
    end: int  # bytes of text before the next one, or of all
    next: Checkpoint | None = None  # None: the text ends there


def index_of(path: Path) -> Index:
    """Return the index of a file; an empty one if there is none that can be used."""
    with suppress(OSError, OutputError, *DAMAGED):
        own = cached_name(path, suffix=OWN)
        if own.is_file():
            return _check_index(_from_gzidx(_content(own, path), path), path)
    with suppress(OSError, *DAMAGED):
        beside = path.with_name(path.name + OWN)
        if _is_newer(beside, path):
            return _check_index(_from_gzidx(_content(beside, path), path), path)
        for ending in SQLITE:
            index = path.with_name(path.name + ending)
            if _is_newer(index, path):
                return _check_index(_from_sqlite(index), path)
    return Index()


def _check_index(index: Index, path: Path) -> Index:
    """Refuse an index that names places which the file does not have."""
    size = path.stat().st_size
    if not all(
        0 < point.text < index.size and 0 < point.at <= size and 0 <= point.bits < 8
        for point in index.points
    ):
        raise ValueError("a damaged index")
    return index


def _content(index: Path, path: Path) -> bytes:
    """Read an index; one that is out of proportion to its file is none."""
    if index.stat().st_size > LEAST_INDEX + INDEX_SHARE * path.stat().st_size:
        raise ValueError("an implausibly large index")
    return index.read_bytes()


def index_place(path: Path, *, beside: bool) -> Path:
    """Return where an index of this file is kept: next to the file, or in the cache folder.

    Raises:
        OutputError: the cache folder cannot be used.
    """
    return path.with_name(path.name + OWN) if beside else cached_name(path, suffix=OWN)


def make_index(path: Path, target: Path) -> bool:
    """Make an index of a file; False if that cannot be done."""
    try:
        from indexed_gzip import IndexedGzipFile, ZranError  # type: ignore[import-untyped]
    except ImportError:
        return False
    try:
        with (
            IndexedGzipFile(str(path), spacing=SPACING) as file,
            atomic_write(target, replace=True) as temporary,
            temporary.open("wb") as written,
        ):
            file.build_full_index()
            file.export_index(fileobj=written)
    except (OSError, EOFError, OutputError, ZranError, zlib.error):
        return False
    return True


def inflated_from(file: BinaryIO, point: Checkpoint) -> Iterator[bytes]:
    """Yield the text behind a checkpoint until its gzip member ends; `UNREADABLE` if damaged."""
    inflate = isal_zlib.decompressobj(wbits=-15, zdict=point.before)
    for window in _shift_bits(file, point):
        data = window
        while data and not inflate.eof:
            text = inflate.decompress(data, CHUNK)
            if text:
                yield text
            data = inflate.unconsumed_tail
        if inflate.eof:
            return
    raise EOFError


def _shift_bits(file: BinaryIO, point: Checkpoint) -> Iterator[bytes]:
    """Yield compressed bytes, moved by some bits so that the first begins at the checkpoint."""
    file.seek(point.at - bool(point.bits))
    if not point.bits:
        while window := file.read(WINDOW):
            yield window
        return
    shift = 8 - point.bits
    last = file.read(1)
    while last:
        window = file.read(WINDOW)
        row = np.frombuffer(last + window + (b"" if window else b"\0"), np.uint8)
        yield ((row[:-1] >> shift) | (row[1:] << point.bits)).tobytes()
        last = window[-1:]


def _is_newer(index: Path, path: Path) -> bool:
    """An index of an earlier content is of no use."""
    return index.is_file() and index.stat().st_mtime_ns >= path.stat().st_mtime_ns


def _from_gzidx(content: bytes, path: Path) -> Index:
    magic, version, _, size, whole, _, window, count = _HEAD.unpack_from(content)
    if magic != b"GZIDX" or version != 1 or size != path.stat().st_size or count > MOST_POINTS:
        raise ValueError("another index")
    points = [_POINT.unpack_from(content, _HEAD.size + n * _POINT.size) for n in range(count)]
    at = _HEAD.size + count * _POINT.size
    checkpoints = []
    for compressed, text, bits, has_text in points:
        checkpoints.append(Checkpoint(text, compressed, bits, content[at : at + window * has_text]))
        at += window * has_text
    return Index(tuple(point for point in checkpoints if 0 < point.text < whole), whole)


def _from_sqlite(index: Path) -> Index:
    columns = ("uc_offset", "uc_size", "c_offset", "bits", "dict_compressed")
    with opened_tables(index, "checkpoints") as tables:
        rows = sorted(islice(tables.rows("checkpoints", *columns), MOST_POINTS))
    points = (
        Checkpoint(text, at, bits, zlib.decompressobj().decompress(before, REACH))
        for text, _, at, bits, before in rows
        if text
    )
    return Index(tuple(points), max((row[0] + row[1] for row in rows), default=0))
