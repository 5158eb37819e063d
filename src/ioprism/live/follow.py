"""Follow a file that grows, is rotated, replaced or truncated.

The size of the file is polled a few times per second: that works on network file systems, where
the kernel reports no changes made by other machines.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgpack

from ioprism.errors import BrokenTraceError
from ioprism.formats.signals.monitors import GEKKO_FIELDS, bare
from ioprism.live.intake import Intake
from ioprism.live.metrics import Counts
from ioprism.live.state import Journal
from ioprism.model.trace import MIB

HEAD = 256  # bytes by which a file is known again


class Follower:
    """Reads what is added to one file."""

    def __init__(self, path: Path, *, job: str, largest: int) -> None:
        if path.exists() and not path.is_file():
            what = "folder" if path.is_dir() else "pipe or device"
            raise BrokenTraceError(
                f"a {what} cannot be followed.\nHint: name the file that grows.", source=path
            )
        self.path = path
        self.address = str(path)
        self.job = job
        self._largest = largest
        self._file: BinaryIO | None = None
        self._decoder: JsonLines | PackedValues | None = None
        self._resume: Mapping[str, Any] | None = None

    def read(self, intake: Intake, journal: Journal | None = None) -> bool:  # noqa: ARG002 - the file stays
        """Take what was added; return whether there may be more."""
        file = self._file or self._open()
        if file is None:
            return False
        if os.fstat(file.fileno()).st_size < file.tell():
            self._begin_anew(intake)
        chunk = file.read(MIB)  # before an answer is given
        if chunk:
            self._decode(chunk, intake)
            return True
        if self._was_replaced(file):
            self._begin_anew(intake, reopen=True)
            return self._file is not None
        return False

    def waits_on(self) -> None:
        """Nothing to sleep on: files on network file systems have to be polled."""

    def note_empty(self) -> None:
        """Do nothing: when something was added is not known."""

    def state(self) -> dict[str, Any]:
        """Return how far the file was read, and how to know it again."""
        if self._file is None:
            return dict(self._resume or {})
        pending_bytes = 0 if self._decoder is None else self._decoder.pending_bytes
        offset = self._file.tell() - pending_bytes
        return {"path": str(self.path), "offset": offset, "head": _head(self._file, offset)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume where a saved state stopped, if the file is still the same."""
        self._resume = state

    def close(self) -> None:
        """Stop reading."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> BinaryIO | None:
        try:
            file = self._file = self.path.open("rb")
        except FileNotFoundError:
            return None
        saved, self._resume = self._resume, None
        if saved and _head(file, int(saved["offset"])) == saved["head"]:
            file.seek(int(saved["offset"]))
        return file

    def _was_replaced(self, file: BinaryIO) -> bool:
        try:
            there = self.path.stat()
        except FileNotFoundError:
            return False
        mine = os.fstat(file.fileno())
        return (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino)

    def _begin_anew(self, intake: Intake, *, reopen: bool = False) -> None:
        intake.counts.files_replaced += 1
        if self._decoder is not None and self._decoder.pending_bytes:
            intake.counts.malformed += 1  # its end will never come
        self._decoder = None
        if reopen:
            self.close()
            self._open()
        elif self._file is not None:
            self._file.seek(0)

    def _decode(self, chunk: bytes, intake: Intake) -> None:
        intake.counts.received_bytes += len(chunk)
        if self._decoder is None:
            text = chunk.lstrip()[:1] in (b"{", b"")
            self._decoder = (JsonLines if text else PackedValues)(self._largest)
        for value in self._decoder.decode(chunk, intake.counts):
            intake.receive_value(value, job=self.job)


def _head(file: BinaryIO, offset: int) -> bytes:
    """A fingerprint of the beginning, up to where it was read."""
    beginning = os.pread(file.fileno(), min(offset, HEAD), 0)
    return hashlib.blake2b(beginning, digest_size=16).digest()


# Where a flush of TMIO begins: damage is skipped up to there.
FLUSH = re.compile(rb"\x9e[\xa0-\xbf](?:read|write)_(?:sync|async)|\xdc\x00\x13\xa7io_time")
LONGEST_MARK = 16  # bytes
MOST_ITEMS = 2**20  # that an array may claim to have before they are there


class JsonLines:
    """JSON, one value per line."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._tail = b""
        self._skipping = False  # a line that is too long

    @property
    def pending_bytes(self) -> int:
        """Bytes of a value that is still incomplete."""
        return len(self._tail)

    def decode(self, chunk: bytes, counts: Counts) -> Iterator[Any]:
        """Yield the values that are complete now."""
        *lines, self._tail = (self._tail + chunk).split(b"\n")
        if self._skipping and lines:
            self._skipping = False
            lines = lines[1:]
        for line in filter(bytes.strip, lines):
            if len(line) > self._largest:
                counts.oversized += 1
                continue
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                counts.messages += 1
                counts.malformed += 1
        if len(self._tail) > self._largest:
            if not self._skipping:
                counts.oversized += 1
            self._tail, self._skipping = b"", True


class PackedValues:
    """Msgpack values one after the other; those of GekkoFS make a report in nines."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._tail = b""
        self._fields: list[Any] = []
        self._field_bytes = 0
        self._lost = False  # damage was met, and no new beginning yet

    @property
    def pending_bytes(self) -> int:
        """Bytes of a value, or report, that is still incomplete."""
        return len(self._tail) + self._field_bytes

    def decode(self, chunk: bytes, counts: Counts) -> Iterator[Any]:
        """Yield the values that are complete now."""
        data = self._tail + chunk
        while data := self._after_damage(data):
            values, used, damaged = _unpack_values(data, largest=self._largest)
            for value, size in values:
                yield from self._complete_reports(value, size)
            data = data[used:]
            if not damaged and len(data) <= self._largest:
                break
            counts.messages += 1
            counts.malformed += damaged
            counts.oversized += not damaged
            self._lost, data = True, data[1:]
            self._fields, self._field_bytes = [], 0
        self._tail = data or self._tail if self._lost else data

    def _after_damage(self, data: bytes) -> bytes:
        """What begins with a flush again; what cannot be told yet stays in the tail."""
        if not self._lost:
            return data
        flush = FLUSH.search(data)
        self._tail = data[-LONGEST_MARK:]
        self._lost = flush is None
        return data[flush.start() :] if flush else b""

    def _complete_reports(self, value: Any, size: int) -> Iterator[Any]:  # noqa: ANN401 - any msgpack value
        flush = isinstance(value, list) and value and isinstance(value[0], str)
        if flush or (isinstance(value, dict) and len(value) != 1):
            yield value
            return
        self._fields.append(bare(value))
        self._field_bytes += size
        if len(self._fields) == len(GEKKO_FIELDS):
            yield dict(zip(GEKKO_FIELDS, self._fields, strict=True))
            self._fields, self._field_bytes = [], 0


def _unpack_values(data: bytes, *, largest: int) -> tuple[list[tuple[Any, int]], int, bool]:
    """Whole values with their sizes, how many bytes they use, and whether damage follows."""
    unpacker = msgpack.Unpacker(
        strict_map_key=False,
        max_buffer_size=max(len(data), largest),
        max_array_len=MOST_ITEMS,
        max_map_len=MOST_ITEMS,
    )
    unpacker.feed(data)
    values: list[tuple[Any, int]] = []
    used = 0
    try:
        for value in unpacker:
            end = unpacker.tell()
            values.append((value, end - used))
            used = end
    except (ValueError, msgpack.exceptions.UnpackException, RecursionError):
        return values, used, True
    return values, used, False
