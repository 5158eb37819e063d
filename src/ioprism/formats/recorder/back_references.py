"""Recorder 2.0 to 2.2: records that refer back to earlier ones, file numbers instead of paths."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from ioprism.formats.recorder.blobs import read_section
from ioprism.formats.recorder.layout import Layout, Section
from ioprism.formats.recorder.signatures import Signature
from ioprism.formats.recorder.streams import Stream
from ioprism.model.trace import Warn

_HEAD = struct.Struct("<BiiiB")  # status, start, end, result, function
_LOCAL = struct.Struct("<dd")  # start, end of the rank, seconds since 1970
_LOCAL_COUNTS = struct.Struct("<ddii")  # start, end, files, records
STREAMS = {"0": "<STDIN>", "1": "<STDOUT>", "2": "<STDERR>"}
_OPENING = ("open", "open64", "creat", "creat64", "fopen", "fopen64", "openat", "tmpfile")
# Which argument is a file number, if it is not the first.
_LAST = ("fwrite", "fread", "fwrite_unlocked", "fread_unlocked", "fputs", "fputc")
_HAS_FILE = frozenset(
    ("close", "write", "read", "lseek", "lseek64", "pread", "pread64", "pwrite", "pwrite64",
     "readv", "writev", "fclose", "ftell", "fseek", "fsync", "fdatasync", "ftruncate", "fseeko",
     "ftello", "fflush", "fprintf", "vfprintf", "fileno", "dup", "fcntl")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Record:
    """One call as the file has it."""

    start: int  # clock ticks
    end: int
    result: int
    function: str
    arguments: tuple[str, ...]


def read_records(data: bytes, functions: tuple[str, ...], warn: Warn) -> list[Record]:
    """Return the records in the order of the file; damage ends them."""
    records: list[Record] = []
    at = 0
    while at + _HEAD.size < len(data):
        status, start, end, result, function = _HEAD.unpack_from(data, at)
        stop = data.find(b"\n", at + _HEAD.size)
        if stop < 0:
            break
        text = data[at + _HEAD.size : stop].decode("utf-8", "backslashreplace")
        own = tuple(text.split())
        at = stop + 1
        if not status:
            if function >= len(functions):
                warn(
                    "a record names a function that does not exist; the calls behind it are missing"
                )
                return records
            records.append(Record(start, end, result, functions[function], own))
            continue
        if function >= len(records):
            warn("a record refers to one that does not exist; the calls behind it are missing")
            return records
        earlier = records[len(records) - 1 - function]
        arguments = _replaced(earlier.arguments, own, status)
        records.append(Record(start, end, result, earlier.function, arguments))
    if at < len(data):
        warn("the last record is cut off")
    return records


def _replaced(old: tuple[str, ...], new: tuple[str, ...], status: int) -> tuple[str, ...]:
    """Take the arguments that the status marks from the new record, in order."""
    fresh = iter(new)
    return tuple(
        next(fresh, argument) if place < 7 and status >> place & 1 else argument
        for place, argument in enumerate(old)
    )


def read_old_rank(layout: Layout, rank: int, warn: Warn) -> tuple[Stream, dict[int, Signature]]:
    """Return one rank's calls, with paths in place of file numbers."""
    folder = layout.folder
    records = read_records(read_section(Section(folder / f"{rank}.itf")), layout.functions, warn)
    expected = _expected_records(layout, rank)
    if expected is not None and len(records) < expected:
        warn(
            f"{len(records)} of {expected} calls of rank {rank} could be read; "
            "the others are missing"
        )
    numbers: dict[Signature, int] = {}
    paths = dict(STREAMS)
    terminals = [numbers.setdefault(resolved(record, paths), len(numbers)) for record in records]
    ticks = np.array([(r.start, r.end) for r in records], np.float64).reshape(-1, 2)
    times = ticks * layout.resolution
    stream = Stream(np.array(terminals, np.int64), times[:, 0], times[:, 1])
    return stream, {number: signature for signature, number in numbers.items()}


def _expected_records(layout: Layout, rank: int) -> int | None:
    """How many calls a rank says it made; None if it does not say."""
    try:
        head = read_section(Section(layout.folder / f"{rank}.mt", 0, _LOCAL_COUNTS.size))
        *_, records = _LOCAL_COUNTS.unpack(head)
    except (OSError, struct.error):
        return None
    return int(records)


def read_old_start(layout: Layout, rank: int) -> float:
    """Return when a rank began, in seconds since 1970."""
    head = read_section(Section(layout.folder / f"{rank}.mt", 0, _LOCAL.size))
    start, _ = _LOCAL.unpack(head)
    return float(start)


def resolved(record: Record, paths: dict[str, str]) -> Signature:
    """Replace a file number by the path it was opened with."""
    arguments = list(record.arguments)
    name = record.function
    if name in _OPENING and arguments:
        if record.result >= 0:
            paths[str(record.result)] = arguments[0]
        else:
            return Signature(name, tuple(arguments), depth=0)
    elif name in _LAST and arguments:
        arguments[-1] = paths.get(arguments[-1], arguments[-1])
    elif name in _HAS_FILE and arguments:
        arguments[0] = paths.get(arguments[0], arguments[0])
    return Signature(name, tuple(arguments))
