"""Save what is known of all jobs, whole or not at all, and go on from there.

Messages since the last saved state are in a journal, on disk before they are answered. A record
is its length, a checksum and the name of the job with the message. So a kill at any moment loses
nothing of what was answered.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import numpy as np
from msgspec import MsgspecError, convert, msgpack

from ioprism.errors import BrokenTraceError
from ioprism.storage.atomic import atomic_write
from ioprism.text import open_plain

VERSION = 3
MARK = "ioprism watch"

State = TypeVar("State")


def pack(state: object) -> bytes:
    """Return dataclasses, with arrays and queues of a fixed length in them, as bytes."""
    return msgpack.encode(state, enc_hook=_plain)


def unpack(content: bytes, kind: type[State]) -> State:
    """Return what `pack` described.

    Raises:
        MsgspecError: it is something else.
    """
    return msgpack.decode(content, type=kind, dec_hook=_from_plain)


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever a state holds
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.shape, value.tobytes()]
    if isinstance(value, deque):
        return [value.maxlen, list(value)]
    return value.item()  # a number of numpy


def _from_plain(kind: Any, value: Any) -> Any:  # noqa: ANN401 - as above
    if get_origin(kind) is deque:
        longest, items = value
        (item,) = get_args(kind)
        return deque((convert(one, item) for one in items), longest)
    name, shape, content = value
    return np.frombuffer(content, name).reshape(shape).copy()


def save(path: Path, state: object) -> int:
    """Write a state in place of the old one; return its size in bytes."""
    content = pack(state)
    sealed = {"format": MARK, "version": VERSION, "checksum": zlib.crc32(content)}
    packed = msgpack.encode({**sealed, "content": content})
    with atomic_write(path, replace=True, private=True) as temporary:
        temporary.write_bytes(packed)
    return len(packed)


def load(path: Path, kind: type[State]) -> State | None:
    """Read a state of this type, or None if there is none yet.

    Raises:
        BrokenTraceError: the file is not a state of `ioprism watch`.
    """
    try:
        with open_plain(path) as file:
            raw = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unusable(path, f"it cannot be read ({error.strerror})") from error
    try:
        sealed = msgpack.decode(raw)
    except (MsgspecError, ValueError) as error:
        raise unusable(path, "it is damaged") from error
    if not isinstance(sealed, dict) or sealed.get("format") != MARK:
        raise unusable(path, "it is something else")
    if sealed.get("version") != VERSION:
        raise unusable(path, f"it has version {sealed.get('version')} instead of {VERSION}")
    content = sealed.get("content")
    if not isinstance(content, bytes) or zlib.crc32(content) != sealed.get("checksum"):
        raise unusable(path, "it is damaged")
    try:
        return unpack(content, kind)
    except MsgspecError as error:
        raise unusable(path, str(error)[:200]) from error


def unusable(path: Path, why: str) -> BrokenTraceError:
    """The error for a file that is not a state."""
    return BrokenTraceError(
        f"this is not a state of `ioprism watch`: {why}.\n"
        "Hint: give --state another name, or remove the file to start again.",
        source=path,
    )


HEAD = struct.Struct("<III")  # bytes of the name, bytes of the message, checksum of both


class Journal:
    """Appends messages to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._pending: list[bytes] = []
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o600)

    def append(self, job: str, raw: bytes) -> None:
        """Add a message to what the next `flush` writes."""
        name = job.encode("utf-8", "replace")
        checksum = zlib.crc32(raw, zlib.crc32(name))
        self._pending += (HEAD.pack(len(name), len(raw), checksum), name, raw)

    def flush(self) -> None:
        """Hand all to the operating system, which keeps it even if this process is killed."""
        if not self._pending:
            return
        data = memoryview(b"".join(self._pending))
        self._pending.clear()
        size = self.size
        try:
            while data:
                written = os.write(self._file, data)
                size += written
                data = data[written:]
        except OSError:
            os.ftruncate(self._file, self.size)  # half a record would hide all after it
            os.lseek(self._file, self.size, os.SEEK_SET)
            raise
        self.size = size

    def discard(self) -> None:
        """Close the file and remove it."""
        self.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; it stays where it is."""
        os.close(self._file)


def read_journal(
    path: Path, left_out: Callable[[int], None] = lambda _: None
) -> Iterator[tuple[str, bytes]]:
    """Yield the job and the message of every whole record; one that is not whole ends it.

    Args:
        path: the journal.
        left_out: hears how many bytes at the end are not used, if any are.
    """
    try:
        file = open_plain(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise unusable(path, f"it cannot be read ({error.strerror})") from error
    with file:
        end, used = os.fstat(file.fileno()).st_size, 0
        while len(head := file.read(HEAD.size)) == HEAD.size:
            name_length, length, checksum = HEAD.unpack(head)
            name, raw = file.read(name_length), file.read(length)
            if len(raw) < length or zlib.crc32(raw, zlib.crc32(name)) != checksum:
                break
            used = file.tell()
            yield name.decode("utf-8", "replace"), raw
    if used < end:
        left_out(end - used)
