"""Save what is known of all jobs, whole or not at all, and go on from there."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ioprism.errors import BrokenTraceError
from ioprism.storage.atomic import atomic_write

VERSION = 2
MARK = "ioprism watch"


def save(path: Path, state: Mapping[str, Any]) -> int:
    """Write a state in place of the old one; return its size in bytes."""
    import msgpack

    content: bytes = msgpack.packb(state)
    sealed = {"format": MARK, "version": VERSION, "checksum": zlib.crc32(content)}
    packed: bytes = msgpack.packb({**sealed, "content": content})
    with atomic_write(path, replace=True, private=True) as aside:
        aside.write_bytes(packed)
    return len(packed)


def load(path: Path) -> Mapping[str, Any] | None:
    """Read a state, or None if there is none yet.

    Raises:
        BrokenTraceError: the file is no state of `ioprism watch`.
    """
    import msgpack

    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        sealed = msgpack.unpackb(raw, strict_map_key=False)
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise unusable(path, "it is damaged") from error
    if not isinstance(sealed, dict) or sealed.get("format") != MARK:
        raise unusable(path, "it is something else")
    if sealed.get("version") != VERSION:
        raise unusable(path, f"it has version {sealed.get('version')} instead of {VERSION}")
    content = sealed.get("content")
    if not isinstance(content, bytes) or zlib.crc32(content) != sealed.get("checksum"):
        raise unusable(path, "it is damaged")
    return dict(msgpack.unpackb(content, strict_map_key=False))


def unusable(path: Path, why: str) -> BrokenTraceError:
    """The error for a file that is no state."""
    return BrokenTraceError(
        f"this is not a state of `ioprism watch`: {why}.\n"
        "Hint: give --state another name, or remove the file to start again.",
        source=path,
    )
