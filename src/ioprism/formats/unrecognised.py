"""What a file that no reader recognises may be, and what to do with it."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ioprism.errors import UnknownFormatError
from ioprism.formats.darshan.log import byte_order_of
from ioprism.text import printable

HEAD = 4096  # bytes that are looked at
COMPRESSED: Mapping[bytes, tuple[type[gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile], str]] = {
    b"\x1f\x8b": (gzip.GzipFile, "gunzip"),
    b"BZh": (bz2.BZ2File, "bunzip2"),
    b"\xfd7zXZ": (lzma.LZMAFile, "unxz"),
}
# Which formats a name or content suggests: three at most.
BY_ENDING = {
    ".darshan": ("darshan",), ".pfw": ("dftracer",), ".gz": ("dftracer", "chrome"),
    ".strace": ("strace",), ".jsonl": ("tmio", "dftracer"), ".msgpack": ("tmio", "gekkofs"),
    ".json": ("chrome", "tmio", "metric-proxy"), ".csv": ("table",), ".parquet": ("table",),
    ".txt": ("strace", "ftio-text", "recorder-text"), ".otf2": ("otf2",),
}  # fmt: skip
TEXT = ("dftracer", "strace", "table")
BINARY = ("darshan", "recorder", "otf2")
TIMES, ACTIONS = ("start", "end or duration"), "operation or function"


def unrecognised(source: Path, tried: Sequence[str]) -> UnknownFormatError:
    """Return the error for a file or folder that no reader recognises."""
    if not source.is_file():
        return UnknownFormatError(source, tried=tried, what="this folder or anything in it")
    try:
        with source.open("rb") as file:
            head = file.read(HEAD)
    except OSError:
        return UnknownFormatError(source, tried=tried)
    if not head:
        return UnknownFormatError(
            source, tried=tried, problem="the file is empty",
            hint="the tracer may have been killed, or the disk was full; record the job again.",
        )  # fmt: skip
    return (
        _explain_compressed(source, head, tried)
        or _table(source, head, tried)
        or _other(source, head, tried)
    )


def _explain_compressed(
    source: Path, head: bytes, tried: Sequence[str]
) -> UnknownFormatError | None:
    for magic, (opened, command) in COMPRESSED.items():
        if head.startswith(magic):
            try:
                with opened(str(source)) as file:
                    inner = file.read(HEAD)
            except (OSError, EOFError, ValueError, MemoryError, zlib.error, lzma.LZMAError):
                return None
            if byte_order_of(inner) is not None:
                return UnknownFormatError(
                    source, tried=tried, problem="this is a compressed Darshan log",
                    hint=f"unpack it first: {command} {printable(source.name)}",
                )  # fmt: skip
    return None


def _table(source: Path, head: bytes, tried: Sequence[str]) -> UnknownFormatError | None:
    """A CSV file says by its first line which columns it lacks."""
    if source.suffix.lower() not in (".csv", ".tsv"):
        return None
    first = head.decode("utf-8", "replace").partition("\n")[0].strip()
    columns = {name.strip().strip('"').lower() for name in first.replace("\t", ",").split(",")}
    missing = [name for name in TIMES if not columns & set(name.split(" or "))]
    missing += [] if columns & set(ACTIONS.split(" or ")) else [ACTIONS]
    return UnknownFormatError(
        source, tried=tried, problem=f"this table lacks the columns {', '.join(missing)}",
        hint="name them so, or describe the table (docs/explanation/trace-formats.md).",
    )  # fmt: skip


def _other(source: Path, head: bytes, tried: Sequence[str]) -> UnknownFormatError:
    likely = BY_ENDING.get(source.suffix.lower()) or (BINARY if b"\0" in head else TEXT)
    known = [name for name in likely if name in tried] or list(tried)[:3]
    return UnknownFormatError(
        source, tried=tried, problem="the format is unknown",
        hint=f"if it is one of {', '.join(known)}, give --format to see what is wrong with it; "
        "`ioprism formats` lists all.",
    )  # fmt: skip
