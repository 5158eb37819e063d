"""Get whole lines out of `.pfw` and `.pfw.gz` files, in pieces of bounded size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from isal import isal_zlib

from ioprism.formats.dftracer.checkpoints import Stretch, inflated_from
from ioprism.formats.text import GZIP, UNREADABLE

WINDOW = 2**18  # compressed bytes read at once
CHUNK = 2**20  # inflated bytes taken at once
PIECE = 2**20  # bytes of text handed on at once
LARGE_PIECE = 4 * 2**20
PORTION = 32 * 2**20  # bytes of text parsed at once
LONGEST_LINE = 14 * 2**20  # bytes; DuckDB reads into buffers of twice as much


@dataclass(slots=True)
class Trouble:
    """What went wrong while a file was read."""

    cut: bool = False  # the compressed data end early or are damaged
    endless: bool = False  # a line is longer than any real one


@dataclass(frozen=True, slots=True)
class Member:
    """Where a gzip member ended in the file; what came before ends with a line or not."""

    end: int


def chunks(
    path: Path,
    trouble: Trouble,
    *,
    start: int = 0,
    stop: int | None = None,
    stretch: Stretch | None = None,
) -> Iterator[bytes | Member]:
    """Yield the text between two positions of the file, and where gzip members end.

    A stretch says which part of a single member's text it is instead.
    """
    with path.open("rb") as file:
        if stretch is not None:
            yield from _between(file, stretch, trouble)
            return
        file.seek(start)
        compressed = file.read(2) == GZIP
        file.seek(start)
        left = math.inf if stop is None else stop - start
        source = _windows(file, left)
        yield from _inflated(source, start, trouble) if compressed else source


def _between(file: BinaryIO, stretch: Stretch, trouble: Trouble) -> Iterator[bytes]:
    """Yield the lines of a stretch: its neighbours find the same line ends."""
    begin = stretch.begin
    at = 0 if begin is None else begin.text
    inside = begin is None
    try:
        for text in _first_member(file) if begin is None else inflated_from(file, begin):
            cut = 0 if inside else text.find(b"\n") + 1
            inside = inside or cut > 0
            end = (
                text.find(b"\n", max(cut, stretch.end - at)) + 1
                if at + len(text) > stretch.end
                else 0
            )
            if inside:
                yield text[cut : end or None]
            at += len(text)
            if end:
                return
    except UNREADABLE:
        trouble.cut = True
    trouble.cut |= at < stretch.end  # there are more members than the first


def _first_member(file: BinaryIO) -> Iterator[bytes]:
    inflate = isal_zlib.decompressobj(wbits=31)
    while not inflate.eof and (data := file.read(WINDOW)):
        while data and not inflate.eof:
            yield inflate.decompress(data, CHUNK)
            data = inflate.unconsumed_tail


def _windows(file: BinaryIO, left: float) -> Iterator[bytes]:
    while left > 0 and (window := file.read(int(min(WINDOW, left)))):
        left -= len(window)
        yield window


def _inflated(source: Iterator[bytes], at: int, trouble: Trouble) -> Iterator[bytes | Member]:
    inflate = isal_zlib.decompressobj(wbits=31)
    started = False
    for window in source:
        data = window
        at += len(window)
        while data:
            try:
                text = inflate.decompress(data, CHUNK)
            except UNREADABLE:
                trouble.cut = True
                return
            started = True
            if text:
                yield text
            data = inflate.unconsumed_tail
            if inflate.eof:
                data = inflate.unused_data
                yield Member(at - len(data))
                if not data.startswith(GZIP[: len(data)]) and data.strip(b"\0"):
                    trouble.cut = True
                    return
                data = data if data.startswith(GZIP[: len(data)]) else b""
                inflate, started = isal_zlib.decompressobj(wbits=31), False
    trouble.cut |= started and not inflate.eof


def pieces(
    source: Iterator[bytes | Member], trouble: Trouble, *, size: int = PIECE, padding: bytes = b""
) -> Iterator[bytes]:
    """Join chunks and cut them again behind line ends, with something behind each piece.

    The last line needs no end.
    """
    held: list[bytes] = []
    height = 0
    for chunk in source:
        if isinstance(chunk, Member):
            continue
        height += len(chunk)
        cut = chunk.rfind(b"\n") + 1 if height >= size else 0
        if not cut:
            held.append(chunk)
            if height > LONGEST_LINE:
                trouble.endless = True
                break
            continue
        yield b"".join((*held, memoryview(chunk)[:cut], padding))
        held, height = [chunk[cut:]], len(chunk) - cut
    rest = b"".join(held)
    if trouble.endless:
        rest = rest[: rest.rfind(b"\n") + 1]
    if rest:
        yield rest + padding


def portions(text: Iterator[bytes]) -> Iterator[Iterator[bytes]]:
    """Cut a text into portions, each of which has to be read before the next."""
    for piece in text:
        yield _portion(piece, text)


def _portion(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    size = len(first)
    while size < PORTION and (piece := next(rest, None)) is not None:
        size += len(piece)
        yield piece
