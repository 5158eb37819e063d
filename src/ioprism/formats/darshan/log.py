"""Where everything is in a Darshan log, and how to inflate it piece by piece.

A log is a header and regions: job, names, and one per module. Each region is a
concatenation of compressed streams, one per rank that contributed. Nothing here trusts a
length or a count before the bytes are there.
"""

from __future__ import annotations

import bz2
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from isal import isal_zlib

from ioprism.errors import BrokenTraceError
from ioprism.formats.darshan.meaning import ADDED_IN, DXT_LAYERS, DXT_VERSIONS, FIXED, MODULE_NAMES
from ioprism.formats.reading import Budget
from ioprism.model.trace import MOST_RANKS, Job, Mount, Warn

MAGIC = 6567223
VERSION = re.compile(rb"(\d)\.(\d\d)")
NEW_HEADER = (3, 41)
PACKED = (b"x\x01", b"x\x5e", b"x\x9c", b"x\xda", b"BZh")  # how zlib and bzip2 begin
MAX_PADDING = 65_536  # bytes of an empty module table that are skipped
COMPRESSIONS = ("zlib", "bzip2", "none")

# Streams are fed in windows: handing a decompressor the whole region makes every stream copy
# what follows it, which is quadratic in the number of ranks.
WINDOW = 64 * 1024
PIECE = 4 * 2**20
COPIES_HELD = 2  # of records and names: as bytes and as a table; extended tracing streams
# The checksum at the end of a zlib stream, and what isal may have read beyond it, in bytes.
CHECKSUM, BIT_BUFFER = 4, 8
NO_BYTES = 1  # the checksum of nothing

ByteOrder = Literal["<", ">"]


@dataclass(frozen=True, slots=True)
class Region:
    """Some bytes of the file."""

    name: str
    offset: int
    length: int
    version: int = 0
    partial: bool = False  # the job ran out of memory for this module's records


@dataclass(frozen=True, slots=True)
class Log:
    """The header of a log: what it has and where."""

    path: Path
    version: tuple[int, int]
    byte_order: ByteOrder
    compression: str
    job: Region
    names: Region
    modules: dict[str, Region]


def read_log(path: Path) -> Log:
    """Read a log's header.

    Raises:
        BrokenTraceError: this is not a Darshan log, or its header is damaged.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        head = file.read(1328)
        rest = file.read(MAX_PADDING)
    byte_order = byte_order_of(head)
    version_match = VERSION.match(head)
    if byte_order is None or version_match is None:
        raise BrokenTraceError(
            "this is not a Darshan log, or its first bytes are damaged.\n"
            "Hint: copy the log again, or look for the job's other logs.",
            source=path,
        )
    version = (int(version_match[1]), int(version_match[2]))
    modern = version >= NEW_HEADER
    header_size = 1328 if modern else 360
    if len(head) < header_size:
        raise BrokenTraceError(
            f"the header is cut short: {len(head)} of {header_size} bytes.\n"
            "Hint: copy the log again.",
            source=path,
        )
    compression = head[16]
    if compression >= len(COMPRESSIONS):
        raise BrokenTraceError(
            f"the header names an unknown compression ({compression}).\nHint: copy the log again.",
            source=path,
        )
    names, modules = _maps(head, byte_order, version)
    # Builds with a larger table of modules leave the rest of it empty: the job follows it.
    packed = rest.lstrip(b"\0")
    header_size += len(rest) - len(packed) if modern and packed.startswith(PACKED) else 0
    later = [r.offset for r in (names, *modules.values()) if r.length and r.offset > header_size]
    return Log(
        path,
        version,
        byte_order,
        COMPRESSIONS[compression],
        Region("job", header_size, max(0, min([*later, size]) - header_size)),
        names,
        {name: r for name, r in modules.items() if r.length or r.partial},
    )


def is_log(source: Path) -> bool:
    """Whether the content starts like a Darshan log. Never raises, nor waits for a pipe."""
    try:
        if not source.is_file():
            return False
        with source.open("rb") as file:
            head = file.read(16)
    except OSError:
        return False
    return VERSION.match(head) is not None and byte_order_of(head) is not None


def byte_order_of(head: bytes) -> ByteOrder | None:
    """The byte order that makes the magic number right, or None."""
    if len(head) < 16:
        return None
    for order in ("<", ">"):
        if struct.unpack_from(f"{order}q", head, 8)[0] == MAGIC:
            return "<" if order == "<" else ">"
    return None


def _maps(
    head: bytes, order: ByteOrder, version: tuple[int, int]
) -> tuple[Region, dict[str, Region]]:
    if version >= NEW_HEADER:
        (partial,) = struct.unpack_from(f"{order}Q", head, 24)
        names_at, maps_at, versions_at, slots = 32, 48, 1072, 64
    else:
        (partial,) = struct.unpack_from(f"{order}I", head, 20)
        names_at, maps_at, versions_at, slots = 24, 40, 296, 16
    names = Region("names", *struct.unpack_from(f"{order}2Q", head, names_at))
    present = [name for name in MODULE_NAMES if version >= ADDED_IN.get(name, (0, 0))]
    modules = {}
    for slot in range(slots):
        name = present[slot] if slot < len(present) else f"module {slot}"
        offset, length = struct.unpack_from(f"{order}2Q", head, maps_at + 16 * slot)
        (module_version,) = struct.unpack_from(f"{order}I", head, versions_at + 4 * slot)
        flagged = bool(partial >> slot & 1)
        modules[name] = Region(name, offset, length, module_version, flagged)
    return names, modules


def count_unexplained_bytes(log: Log) -> int:
    """Count the bytes of the file that no region claims, or that two do, or that are missing.

    A whole compressed log has none: its regions stand in a row up to the end of the file.
    """
    size = log.path.stat().st_size
    regions = sorted((r.offset, r.length) for r in (log.job, log.names, *log.modules.values()))
    wrong, end = 0, log.job.offset
    for offset, length in regions:
        if length:
            wrong += abs(offset - end)
            end = offset + length
    return wrong + abs(size - end)


def pieces(log: Log, region: Region, warn: Warn, *, size: int = PIECE) -> Iterator[bytes]:
    """Yield a region's inflated bytes in pieces of about `size` bytes.

    What cannot be inflated ends the region, with a warning.

    Raises:
        OverBudgetError: there is more of it than a log of this size can hold.
    """
    with log.path.open("rb") as file:
        available = max(0, min(region.length, file.seek(0, 2) - region.offset))
        if available < region.length:
            warn(
                f"{log.path.name}: the {region.name} data are cut short "
                f"({available} of {region.length} bytes are in the file); records are missing"
            )
        if not available:
            return
        file.seek(region.offset)
        raw = _windows(file, available)
        if log.compression == "none":
            yield from _gather(raw, size)
            return
        inflate = _inflate if log.compression == "zlib" else _inflate_bzip2
        budget, weight = Budget(log.path), 1 if region.name in DXT_LAYERS else COPIES_HELD
        for piece in _gather(inflate(log, region, raw, warn), size):
            budget.take(weight * len(piece), f"the {region.name} data")
            yield piece


def _windows(file: BinaryIO, available: int) -> Iterator[bytes]:
    while available > 0 and (window := file.read(min(WINDOW, available))):
        available -= len(window)
        yield window


def _inflate(log: Log, region: Region, raw: Iterator[bytes], warn: Warn) -> Iterator[bytes]:
    stream = isal_zlib.decompressobj()
    fed, check, before = False, NO_BYTES, b""
    for window in raw:
        data = window
        while data:
            try:
                inflated = stream.decompress(data)
            except (isal_zlib.error, OSError, EOFError, ValueError):  # type: ignore[misc] # its stub
                _warn_damaged(log, region, warn)
                return
            yield inflated
            fed = True
            check = isal_zlib.adler32(inflated, check)
            if not stream.eof:
                before = (before + data)[-CHECKSUM:]
                break
            data = _behind(stream.unused_data, before + data, check)
            stream = isal_zlib.decompressobj()
            fed, check, before = False, NO_BYTES, b""
    if fed:
        warn(f"{log.path.name}: the {region.name} data end early; records are missing")


def _behind(unused: bytes, fed: bytes, check: int) -> bytes:
    """What follows the end of a stream.

    Up to eight bytes may be lost in isal's buffer of bits, so the end is looked for: a stream
    ends with the checksum of what it holds.
    """
    ending = check.to_bytes(CHECKSUM, "big")
    for left in range(len(unused), BIT_BUFFER + 1):
        end = len(fed) - left
        if fed[max(0, end - CHECKSUM) : end] == ending:
            return fed[end:]
    return unused


def _inflate_bzip2(log: Log, region: Region, raw: Iterator[bytes], warn: Warn) -> Iterator[bytes]:
    """Inflate in bounded pieces: bzip2 packs a gigabyte of zeros into a kilobyte."""
    stream, fed = bz2.BZ2Decompressor(), False
    for window in raw:
        data = window
        while data or (fed and not stream.needs_input):
            try:
                yield stream.decompress(data, PIECE)
            except (OSError, EOFError, ValueError):
                _warn_damaged(log, region, warn)
                return
            data, fed = b"", True
            if stream.eof:
                data = stream.unused_data
                stream, fed = bz2.BZ2Decompressor(), False
    if fed:
        warn(f"{log.path.name}: the {region.name} data end early; records are missing")


def _warn_damaged(log: Log, region: Region, warn: Warn) -> None:
    warn(
        f"{log.path.name}: the {region.name} data are damaged; "
        "what follows the damage is missing and what precedes it may be wrong"
    )


def _gather(source: Iterator[bytes], size: int) -> Iterator[bytes]:
    held: list[bytes] = []
    length = 0
    for data in source:
        held.append(data)
        length += len(data)
        if length >= size:
            yield b"".join(held)
            held, length = [], 0
    if length:
        yield b"".join(held)


def whole(log: Log, region: Region, warn: Warn, *, limit: int) -> bytes:
    """Return a small region in one piece; beyond `limit` bytes it is cut, with a warning."""
    held: list[bytes] = []
    size = 0
    for piece in pieces(log, region, warn):
        held.append(piece)
        size += len(piece)
        if size > limit:
            warn(
                f"{log.path.name}: the {region.name} data are implausibly large; "
                "only part of them is read"
            )
            break
    return b"".join(held)[:limit]


READ = {*FIXED, *DXT_LAYERS, "LUSTRE", "HEATMAP", "APMPI"}


def notes(log: Log) -> Iterator[str]:
    """Yield a warning for everything that is partial, unknown or cut off."""
    for region in log.modules.values():
        yield from _about(region, log.path.name)
    if log.compression != "none" and (amount := count_unexplained_bytes(log)):
        yield (
            f"{log.path.name}: the header and the file disagree about {amount} bytes; "
            "the log is cut short or damaged, and records may be missing"
        )


def _about(region: Region, name: str) -> Iterator[str]:
    if region.partial and region.name != "NULL":  # merging logs sets that bit for no reason
        yield (
            f"{name}: the {region.name} data are partial: Darshan ran out of memory for "
            "records while the job ran"
        )
    if region.length and region.name not in READ:
        yield f"{name}: the {region.name} module is not read"
    if region.length and region.version not in DXT_VERSIONS.get(region.name, [region.version]):
        yield f"{name}: {region.name} has the unknown version {region.version} and is not read"


JOB_BYTES = 64 * 1024  # Darshan itself writes 4 KiB
NAME_BYTES = 4 * 2**30
BYTES_OF_NAME = 300  # of memory for an entry: a number, a text, and their place in a table
NAMES = "the table of file names"
METADATA = 1024
LONGEST_RUN = 10 * 365 * 86400  # seconds; beyond it the times are damage


def read_job(log: Log, warn: Warn) -> Job:
    """Read the job region; facts that cannot be read are None."""
    data = whole(log, log.job, warn, limit=JOB_BYTES)
    has_nanoseconds = log.version >= (3, 41)
    layout = f"{log.byte_order}{7 if has_nanoseconds else 5}q"
    size = struct.calcsize(layout)
    if len(data) < size:
        warn(f"{log.path.name}: the job record (ranks, times, program) cannot be read")
        return Job()
    fields = struct.unpack_from(layout, data)
    user, start, start_ns, end, end_ns, ranks, job_id = (
        fields if has_nanoseconds else (*fields[:2], 0, fields[2], 0, *fields[3:])
    )
    metadata = _text(data[size : size + METADATA].split(b"\0")[0])
    pairs = (line.partition("=") for line in metadata.split("\n"))
    executable, mounts = _executable_and_mounts(data[size + METADATA :])
    if not 0 < ranks <= MOST_RANKS:
        warn(f"{log.path.name}: the number of ranks is implausible ({ranks}) and is ignored")
    ended = end >= start and end > 0
    # Old logs count whole seconds, first and last included, as Darshan's own tools do.
    runtime = (end - start) + (end_ns - start_ns) / 1e9 + (0 if has_nanoseconds else 1)
    if ended and runtime > LONGEST_RUN:
        warn(f"{log.path.name}: the run time is implausible ({runtime:.0f} s) and is ignored")
        ended = False
    elif not ended:
        warn(f"{log.path.name}: the job did not end normally; its end and run time are unknown")
    return Job(
        ranks=ranks if 0 < ranks <= MOST_RANKS else None,
        start_time=start + start_ns / 1e9 if start > 0 else None,
        end_time=end + end_ns / 1e9 if ended else None,
        runtime=max(0.0, runtime) if ended else None,
        executable=executable or None,
        user=user,
        job_id=str(job_id),
        mounts=mounts,
        metadata={key: value for key, equals, value in pairs if equals},
    )


def _executable_and_mounts(data: bytes) -> tuple[str, tuple[Mount, ...]]:
    lines = _text(data.split(b"\0")[0]).split("\n")
    mounts = tuple(
        Mount(path, filesystem)
        for filesystem, tab, path in (line.partition("\t") for line in lines[1:])
        if tab
    )
    return lines[0], mounts


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def read_names(log: Log, warn: Warn) -> dict[int, str]:
    """Read the names by identifier; a name that is cut off is dropped with a warning.

    Raises:
        OverBudgetError: there are more names than a log of this size can hold.
    """
    data = whole(log, log.names, warn, limit=NAME_BYTES)
    counted = log.version < (3, 10)
    read = _counted_names if counted else _terminated_names
    names, consumed = read(data, log.byte_order, Budget(log.path))
    if consumed < len(data):
        warn(f"{log.path.name}: the table of file names is cut off; some files have no name")
    return names


_TERMINATED = re.compile(rb"(.{8})([^\0]*)\0", re.DOTALL)


def _terminated_names(data: bytes, order: str, budget: Budget) -> tuple[dict[int, str], int]:
    budget.take(BYTES_OF_NAME * min(data.count(b"\0"), len(data) // 9), NAMES)
    entries = _TERMINATED.findall(data)
    identifiers = struct.unpack(f"{order}{len(entries)}Q", b"".join(one for one, _ in entries))
    names: dict[int, str] = {}
    for identifier, (_, name) in zip(identifiers, entries, strict=True):
        _remember(names, identifier, name)
    return names, sum(9 + len(name) for _, name in entries)


def _counted_names(data: bytes, order: str, budget: Budget) -> tuple[dict[int, str], int]:
    head = struct.Struct(f"{order}QI")
    names: dict[int, str] = {}
    position = 0
    while position + head.size <= len(data):
        identifier, length = head.unpack_from(data, position)
        end = position + head.size + length
        if end > len(data):
            break
        budget.take(BYTES_OF_NAME, NAMES)
        _remember(names, identifier, data[position + head.size : end])
        position = end
    return names, position


def _remember(names: dict[int, str], identifier: int, name: bytes) -> None:
    """Keep the first name that is not empty, as Darshan does."""
    if not names.get(identifier):
        names[identifier] = _text(name)
