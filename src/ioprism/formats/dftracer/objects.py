"""DFTracer's lines as JSON objects: for metadata, and for lines that are not simple."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

MISSING = -(2**63)  # an argument that a call does not have
NUMBERS = ("ret", "count", "offset", "whence", "flags", "size")
EVENT, COUNTER, METADATA = 1, 3, 4
_PHASES = {"X": EVENT, "1": EVENT, "C": COUNTER, "3": COUNTER, "M": METADATA, "4": METADATA}


def read_object(line: bytes) -> dict[str, Any] | None:
    """Return a line's JSON object; None if it is none."""
    try:
        read = json.loads(line.rstrip(b", \r"))
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def phase_of(read: Mapping[str, Any] | None) -> int | None:
    """Return EVENT, COUNTER or METADATA; None for anything else."""
    return None if read is None else _PHASES.get(str(read.get("ph")))


def arguments_of(read: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object's arguments; empty where it has none."""
    found = read.get("args")
    return found if isinstance(found, dict) else {}


def is_sum(read: Mapping[str, Any]) -> bool:
    """Whether it is a sum over calls, as the aggregated mode writes them."""
    return "dft_cnt" in arguments_of(read)


def whole_number(value: object) -> int | None:
    """Return a number that is written bare or as a string; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 2**63 else None


def hash_of(value: object) -> int | None:
    """Return a hash as the fast path reads it: hexadecimal in quotes, decimal without."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value % 2**64
    if not isinstance(value, str) or not value:
        return None
    try:
        return int(value, 16) if len(value) <= 16 else _digest(value)
    except ValueError:
        return _digest(value)


def _digest(value: str) -> int:
    text = value.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def call_of(read: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a call's values, as the columns want them; None if it lacks one."""
    arguments = arguments_of(read)
    call: dict[str, Any] = {key: whole_number(read.get(key)) for key in ("ts", "dur", "pid", "tid")}
    if None in call.values() or not isinstance(read.get("name"), str):
        return None
    call["name"] = read["name"]
    call["cat"] = str(read.get("cat", ""))
    for key in ("hostname", "fname"):
        text = arguments.get(key)
        call[key] = text if isinstance(text, str) else None
    call["fhash"] = hash_of(arguments.get("fhash"))
    for key in NUMBERS:
        value = whole_number(arguments.get(key))
        call[key] = MISSING if value is None else value
    return call
