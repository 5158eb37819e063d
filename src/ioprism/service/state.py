"""Save what is known of all jobs, whole or not at all, and go on from there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ioprism.errors import BrokenTraceError
from ioprism.storage.atomic import atomic_write

VERSION = 1
MARK = "ioprism watch"


def save(path: Path, state: Mapping[str, Any]) -> int:
    """Write a state in place of the old one; return its size in bytes."""
    import msgpack

    packed: bytes = msgpack.packb({"format": MARK, "version": VERSION, **state})
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
        state = msgpack.unpackb(raw, strict_map_key=False)
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise unusable(path, "it is damaged") from error
    if not isinstance(state, dict) or state.get("format") != MARK:
        raise unusable(path, "it is something else")
    if state.get("version") != VERSION:
        raise unusable(path, f"it has version {state.get('version')} instead of {VERSION}")
    return state


def unusable(path: Path, why: str) -> BrokenTraceError:
    """The error for a file that is no state."""
    return BrokenTraceError(
        f"this is not a state of `ioprism watch`: {why}.\n"
        "Hint: give --state another name, or remove the file to start again.",
        source=path,
    )
