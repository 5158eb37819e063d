"""What ranks called: tables of signatures, and the back references of the oldest generation."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.formats.calls import Integers
from ioprism.formats.recorder.streams import Section, Stream, TraceLayout, read_section
from ioprism.model.trace import Warn
from ioprism.units import format_counted

USER_FUNCTION = 255  # its name is the second argument
LONGEST_KEY = 2**24
SPARSE = 16  # numbers that one signature may take up on average; a sound table has no gaps
LEAST_NUMBERS = 65536  # that any table may use
# An entry is number, rank, length and count; version 2.3 writes number and length only.
_LENGTH_AT = (8, 4)
_LENGTH = struct.Struct("<i")
_FIELDS = [("depth", "u1"), ("arguments", "u1"), ("length", "<i4")]
_NARROW = np.dtype([("thread", "<u8"), ("function", "u1"), *_FIELDS])
_WIDE = np.dtype([("thread", "<u8"), ("function", "<i4"), *_FIELDS])


class Signature(NamedTuple):
    """A call as often as it was made with the same arguments."""

    function: str
    arguments: tuple[str, ...]
    depth: int = 0
    thread: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class SignatureTable(Mapping[int, Signature]):
    """Signatures as columns; one becomes an object when it is asked for."""

    numbers: Integers  # by which calls refer to them
    functions: Integers  # into `names`
    names: tuple[str, ...]
    texts: pl.Series  # arguments, each followed by a space
    depth: Integers
    thread: Integers

    def __len__(self) -> int:
        """How many there are."""
        return len(self.numbers)

    def __iter__(self) -> Iterator[int]:
        """Go through the numbers."""
        return iter(self.numbers.tolist())

    def __getitem__(self, number: int) -> Signature:
        """Return the signature of a number."""
        (rows,) = np.nonzero(self.numbers == number)
        if not len(rows):
            raise KeyError(number)
        return self.row(int(rows[-1]))

    def row(self, row: int) -> Signature:
        """Return the signature in a row."""
        return Signature(
            self.names[int(self.functions[row])],
            tuple(self.texts[row].split(" ")[:-1]),
            int(self.depth[row]),
            int(self.thread[row]),
        )


def read_signatures(
    data: bytes, functions: tuple[str, ...], *, wide: bool, warn: Warn
) -> SignatureTable:
    """Return the signatures by their number; a damaged table yields those before the damage."""
    for length_at in _LENGTH_AT:
        starts, whole = _starts(data, length_at)
        if whole:
            break
    else:
        starts, _ = _starts(data, length_at := _LENGTH_AT[0])
        warn("a table of call signatures is damaged; calls are missing")
    head = _WIDE if wide else _NARROW
    raw = np.frombuffer(data, np.uint8)
    keys = starts[:-1] + length_at + 4
    if length_at == _LENGTH_AT[0]:
        keys += 4  # the count
    stops = starts[1:]
    complete = stops - keys >= head.itemsize
    fields = _take_rows(raw, keys[complete], head.itemsize).view(head)[:, 0]
    signatures, known = _table(data, starts[:-1][complete], keys[complete], stops[complete], fields,
                          functions)  # fmt: skip
    damaged = len(keys) - int(known.sum())
    if damaged:
        warn(f"{format_counted(damaged, 'damaged call signature')} left out")
    return signatures


def _table(
    data: bytes, starts: Integers, keys: Integers, stops: Integers,
    fields: npt.NDArray[np.void], functions: tuple[str, ...],
) -> tuple[SignatureTable, npt.NDArray[np.bool_]]:  # fmt: skip
    begin = keys + fields.dtype.itemsize
    end = np.minimum(stops, begin + fields["length"].clip(0, LONGEST_KEY))
    pairs = zip(begin.tolist(), end.tolist(), strict=True)
    texts = _decode_texts([data[a:b] for a, b in pairs])
    number = fields["function"].astype(np.int64)
    names = list(functions)
    known = (number >= 0) & (number < len(functions)) & (number != USER_FUNCTION)
    for row in np.flatnonzero(number == USER_FUNCTION).tolist():
        arguments = texts[row].split(" ")[:-1]
        if len(arguments) > 1:
            known[row] = True
            number[row] = len(names)
            names.append(arguments[1])
    raw = np.frombuffer(data, np.uint8)
    own = _take_rows(raw, starts, 4).view("<i4")[:, 0].astype(np.int64)
    # Tables of calls are as long as the highest number, so a damaged one must not be believed.
    known &= (own >= 0) & (own < SPARSE * len(own) + LEAST_NUMBERS)
    table = SignatureTable(
        own[known],
        number[known],
        tuple(names),
        texts.filter(pl.Series(known)),
        fields["depth"][known].astype(np.int64),
        fields["thread"][known],
    )
    return table, known


def _take_rows(raw: npt.NDArray[np.uint8], starts: Integers, size: int) -> npt.NDArray[np.uint8]:
    """The bytes behind each start, one row each."""
    return np.asarray(raw[starts[:, None] + np.arange(size)], np.uint8)


def _decode_texts(texts: list[bytes]) -> pl.Series:
    try:
        return pl.Series(texts, dtype=pl.Binary).cast(pl.String)
    except pl.exceptions.PolarsError:
        return pl.Series([text.decode("utf-8", "backslashreplace") for text in texts])


def _starts(data: bytes, length_at: int) -> tuple[Integers, bool]:
    """Where the entries begin, and the last one ends; also whether that is the very end."""
    starts = [4]
    at, end = 4, len(data)
    head = length_at + (8 if length_at == _LENGTH_AT[0] else 4)
    unpack = _LENGTH.unpack_from
    count = struct.unpack_from("<i", data)[0] if end >= 4 else 0
    for _ in range(count):
        if at + head > end:
            break
        (length,) = unpack(data, at + length_at)
        if not 0 <= length <= LONGEST_KEY or at + head + length > end:
            break
        at += head + length
        starts.append(at)
    whole = end >= 4 and len(starts) == max(0, count) + 1 and at == end
    return np.array(starts, np.int64), whole


_HEAD = struct.Struct("<BiiiB")  # status, start, end, result, function
_LOCAL = struct.Struct("<ddii")  # start and end in seconds since 1970, files, records
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
class BackReference:
    """One call as the file has it."""

    start: int  # clock ticks
    end: int
    result: int
    function: str
    arguments: tuple[str, ...]


def read_records(data: bytes, functions: tuple[str, ...], warn: Warn) -> list[BackReference]:
    """Return the records in the order of the file; damage ends them."""
    records: list[BackReference] = []
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
                    "a record names a function that does not exist; the calls after it are missing"
                )
                return records
            records.append(BackReference(start, end, result, functions[function], own))
            continue
        if function >= len(records):
            warn("a record refers to one that does not exist; the calls after it are missing")
            return records
        earlier = records[len(records) - 1 - function]
        arguments = _replace_arguments(earlier.arguments, own, status)
        records.append(BackReference(start, end, result, earlier.function, arguments))
    if at < len(data):
        warn("the last record is cut off")
    return records


def _replace_arguments(old: tuple[str, ...], new: tuple[str, ...], status: int) -> tuple[str, ...]:
    """Take the arguments that the status marks from the new record, in order."""
    fresh = iter(new)
    return tuple(
        next(fresh, argument) if place < 7 and status >> place & 1 else argument
        for place, argument in enumerate(old)
    )


def read_old_rank(
    layout: TraceLayout, rank: int, warn: Warn
) -> tuple[Stream, dict[int, Signature]]:
    """Return one rank's calls, with paths in place of file numbers."""
    folder = layout.folder
    records = read_records(read_section(Section(folder / f"{rank}.itf")), layout.functions, warn)
    with suppress(OSError, struct.error):
        _, expected = read_old_facts(layout, rank)
        if len(records) < expected:
            warn(
                f"{len(records)} of {expected} calls of rank {rank} could be read; "
                "the others are missing"
            )
    numbers: dict[Signature, int] = {}
    paths = dict(STREAMS)
    terminals = [
        numbers.setdefault(resolve_paths(record, paths), len(numbers)) for record in records
    ]
    ticks = np.array([(r.start, r.end) for r in records], np.float64).reshape(-1, 2)
    times = ticks * layout.resolution
    stream = Stream(np.array(terminals, np.int64), times[:, 0], times[:, 1])
    return stream, {number: signature for signature, number in numbers.items()}


def read_old_facts(layout: TraceLayout, rank: int) -> tuple[float, int]:
    """Return when a rank began, in seconds since 1970, and how many calls it made."""
    head = read_section(Section(layout.folder / f"{rank}.mt", 0, _LOCAL.size))
    start, _, _, records = _LOCAL.unpack(head)
    return start, records


def resolve_paths(record: BackReference, paths: dict[str, str]) -> Signature:
    """Replace a file number by the path it was opened with."""
    arguments = list(record.arguments)
    name = record.function
    if name in _OPENING and arguments:
        if record.result >= 0:
            paths[str(record.result)] = arguments[0]
    elif (name in _LAST or name in _HAS_FILE) and arguments:
        place = -1 if name in _LAST else 0
        arguments[place] = paths.get(arguments[place], arguments[place])
    return Signature(name, tuple(arguments))
