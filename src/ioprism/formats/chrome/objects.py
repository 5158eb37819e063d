"""Take one object after the other out of a JSON array of any length, in bounded memory."""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ioprism.formats.text import head, opened

CHUNK = 2**18  # bytes read at once
LONGEST_OBJECT = 16 * 2**20  # characters
_BEGIN = re.compile(r'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_HEAD = 2**16  # bytes in which the array must begin


@dataclass(slots=True)
class Damage:
    """What could not be read."""

    cut: bool = False  # the text ends inside the array
    objects: int = 0  # things in the array that are no objects


def header(path: Path) -> dict[str, Any]:
    """Return what stands before the array, as far as it is JSON; empty if nothing does."""
    text = head(path, _HEAD)
    match = _BEGIN.search(text)
    if match is None or not text.lstrip().startswith("{"):
        return {}
    try:
        read = json.loads(text[: match.start()].rstrip().rstrip(",") + "}")
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def objects(path: Path, damage: Damage) -> Iterator[dict[str, Any]]:
    """Yield the objects of the array of trace events."""
    decoder = json.JSONDecoder()
    decode = getincrementaldecoder("utf-8")("replace").decode  # chunks may end inside a character
    with opened(path) as file:
        text, at, more = _array(decode(file.read(_HEAD)))
        while True:
            at = _skipped(text, at)
            if text.startswith("]", at):
                return
            try:
                read, stop = decoder.raw_decode(text, at)
                # A number at the end of the text may go on in the next chunk.
                whole = stop < len(text) or isinstance(read, dict)
            except (ValueError, RecursionError) as error:
                whole, read, stop = False, error, at
            if whole:
                at = stop
                if isinstance(read, dict):
                    yield read
                else:
                    damage.objects += 1
                continue
            chunk = file.read(CHUNK) if more else b""
            if not chunk or len(text) - at > LONGEST_OBJECT or isinstance(read, RecursionError):
                damage.cut = True
                return
            text, at = text[at:] + decode(chunk), 0


def _array(text: str) -> tuple[str, int, bool]:
    """Where the array's first object may stand."""
    match = _BEGIN.search(text)
    if match is not None:
        return text, match.end(), True
    stripped = text.lstrip()
    if stripped.startswith("["):
        return text, text.index("[") + 1, True
    return "", 0, False


def _skipped(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return at if match is None else match.end()
