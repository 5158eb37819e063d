"""Write valid Darshan logs of any version, for tests, benchmarks and the demo."""

from __future__ import annotations

import bz2
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

from isal import isal_zlib

from benchmarks.synthetic.darshan_content import FILE_ALIGNMENT, log_content
from benchmarks.synthetic.darshan_records import Bytes, LogContent
from ioprism.errors import OutputError, UsageError
from ioprism.formats.darshan.log import COMPRESSIONS, MAGIC, METADATA, NEW_HEADER, ByteOrder
from ioprism.formats.darshan.meaning import ADDED_IN, MODULE_NAMES
from ioprism.model.trace import Job, Trace
from ioprism.storage.atomic import atomic_write

Version = tuple[int, int]
Compression = Literal["zlib", "bzip2", "none"]

VERSIONS: tuple[Version, ...] = ((3, 0), (3, 10), (3, 20), (3, 21), (3, 41))
NEWEST: Version = (3, 41)
JOB_BYTES = 4096  # as much as Darshan keeps for the job, its program and the mounts
NAMES_PER_STREAM = 1024


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


class _Uncompressed:
    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a region is in the file."""

    offset: int = 0
    length: int = 0


def write_log(
    path: Path,
    content: LogContent,
    *,
    version: Version = NEWEST,
    byte_order: ByteOrder = "<",
    compression: Compression = "zlib",
    partial: Collection[str] = (),
    replace: bool = False,
) -> None:
    """Write a log, whole or not at all; memory stays bounded if the records are a generator.

    Args:
        path: The file to write.
        content: What the log says.
        version: The version of the log format, one of `VERSIONS`.
        byte_order: ``<`` as on most machines, or ``>``.
        compression: How every rank's stream is compressed.
        partial: Modules that are to be marked as having run out of memory.
        replace: Whether a file of this name may be replaced.

    Raises:
        UsageError: the format version has no room for what the content holds.
        OutputError: the file exists, or cannot be written.
    """
    slots = _slots(version)
    names = [module.name for module in content.modules]
    _check_modules([*names, *partial], slots, version)
    with _atomic_file(path, replace=replace) as file:
        file.write(bytes(_header_size(version)))
        _write_region(file, [[_job_bytes(content.job, version, byte_order)]], compression)
        name_streams = _name_streams(content.names, version, byte_order)
        name_place = _write_region(file, name_streams, compression)
        places = {
            module.name: _write_region(file, module.streams(byte_order), compression)
            for module in content.modules
        }
        versions = {module.name: module.version for module in content.modules}
        file.seek(0)
        file.write(
            _head(version, byte_order, compression)
            + _partial_bits(partial, slots, version, byte_order)
            + _table(name_place, places, versions, slots, version, byte_order)
        )


def write_trace(
    path: Path,
    trace: Trace,
    *,
    version: Version = NEWEST,
    byte_order: ByteOrder = "<",
    compression: Compression = "zlib",
    partial: Collection[str] = (),
    file_alignment: int = FILE_ALIGNMENT,
    replace: bool = False,
) -> None:
    """Write the log that Darshan with extended tracing would have made of a trace's events.

    The counters are computed from the events, which must fit into memory; a trace's own
    counters are not looked at. `file_alignment` is what offsets are measured against, in
    bytes. The other options are those of `write_log`.
    """
    write_log(
        path,
        log_content(trace, file_alignment=file_alignment, modules=_slots(version)),
        version=version,
        byte_order=byte_order,
        compression=compression,
        partial=partial,
        replace=replace,
    )


def _slots(version: Version) -> tuple[str, ...]:
    """The modules that a log of this version has room for, in the order of its table."""
    if version not in VERSIONS:
        known = ", ".join(f"{major}.{minor:02d}" for major, minor in VERSIONS)
        raise UsageError(f"there is no log version {version}.\nHint: choose one of {known}.")
    room = 64 if version >= NEW_HEADER else 16
    return tuple(name for name in MODULE_NAMES if version >= ADDED_IN.get(name, (0, 0)))[:room]


def _check_modules(names: Iterable[str], slots: tuple[str, ...], version: Version) -> None:
    homeless = [name for name in names if name not in slots]
    if homeless:
        raise UsageError(
            f"logs of version {version} have no room for {', '.join(homeless)}.\n"
            "Hint: choose version (3, 41)."
        )


@contextmanager
def _atomic_file(path: Path, *, replace: bool) -> Iterator[BinaryIO]:
    """Write beside the file, so that no half-written log is ever seen."""
    try:
        with atomic_write(path, replace=replace) as beside, beside.open("w+b") as file:
            yield file
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror}).\nHint: choose another place."
        ) from error


def _write_region(file: BinaryIO, streams: Iterable[Bytes], compression: Compression) -> _Place:
    begin = file.tell()
    for stream in streams:
        compressor = _compressor(compression)
        file.writelines(compressor.compress(data) for data in stream)
        file.write(compressor.flush())
    return _Place(begin, file.tell() - begin)


def _compressor(compression: Compression) -> _Compressor:
    if compression == "zlib":
        return isal_zlib.compressobj()
    return bz2.BZ2Compressor() if compression == "bzip2" else _Uncompressed()


def _header_size(version: Version) -> int:
    return 1328 if version >= NEW_HEADER else 360


def _head(version: Version, byte_order: ByteOrder, compression: Compression) -> bytes:
    text = f"{version[0]}.{version[1]:02d}".encode()
    return struct.pack(f"{byte_order}8sqB", text, MAGIC, COMPRESSIONS.index(compression))


def _partial_bits(
    partial: Collection[str], slots: tuple[str, ...], version: Version, byte_order: ByteOrder
) -> bytes:
    flags = sum(1 << slots.index(name) for name in set(partial))
    return struct.pack(f"{byte_order}{'7xQ' if version >= NEW_HEADER else '3xI'}", flags)


def _table(
    names: _Place,
    places: Mapping[str, _Place],
    versions: Mapping[str, int],
    slots: tuple[str, ...],
    version: Version,
    byte_order: ByteOrder,
) -> bytes:
    """Where the names and every module lie, and the versions of the modules' records."""
    room = 64 if version >= NEW_HEADER else 16
    modules = [places.get(name, _Place()) for name in slots]
    modules += [_Place()] * (room - len(slots))
    numbers = [number for place in (names, *modules) for number in (place.offset, place.length)]
    records = [versions.get(name, 0) for name in slots] + [0] * (room - len(slots))
    return struct.pack(f"{byte_order}{len(numbers)}Q{room}I", *numbers, *records)


def _job_bytes(job: Job, version: Version, byte_order: ByteOrder) -> bytes:
    start, start_ns = _seconds_and_nanoseconds(job.start_time)
    end, end_ns = _seconds_and_nanoseconds(job.end_time)
    who, what = job.user or 0, (job.ranks or 1, int(job.job_id or 0))
    facts = (
        (who, start, start_ns, end, end_ns, *what)
        if version >= NEW_HEADER
        else (who, start, end, *what)
    )
    numbers = struct.pack(f"{byte_order}{len(facts)}q", *facts)
    metadata = "".join(f"{key}={value}\n" for key, value in job.metadata.items()).encode()
    mounts = "".join(f"\n{mount.filesystem}\t{mount.path}" for mount in job.mounts)
    program = f"{job.executable or ''}{mounts}".encode()
    region = numbers + metadata.ljust(METADATA, b"\0") + program
    if len(metadata) >= METADATA or len(region) >= JOB_BYTES:
        raise UsageError(
            f"the job's metadata ({len(metadata)} bytes) or program and mounts "
            f"({len(program)} bytes) do not fit into a log.\n"
            f"Hint: keep to {METADATA - 1} bytes of metadata and {JOB_BYTES - 1} in total."
        )
    return region.ljust(JOB_BYTES, b"\0")


def _seconds_and_nanoseconds(time: float | None) -> tuple[int, int]:
    if time is None:
        return 0, 0
    whole = int(time)
    nanoseconds = round((time - whole) * 1e9)
    return (whole + 1, 0) if nanoseconds == 10**9 else (whole, nanoseconds)


def _name_streams(
    names: Mapping[int, str], version: Version, byte_order: ByteOrder
) -> Iterator[Bytes]:
    entries = list(names.items())
    counted = version < (3, 10)
    for first in range(0, len(entries), NAMES_PER_STREAM):
        yield [
            struct.pack(f"{byte_order}QI", identifier, len(name.encode())) + name.encode()
            if counted
            else struct.pack(f"{byte_order}Q", identifier) + name.encode() + b"\0"
            for identifier, name in entries[first : first + NAMES_PER_STREAM]
        ]
