"""DFTracer's lines about itself, as JSON objects."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_DEFINITION = re.compile(
    rb'\{"name":"[A-Z]{2}","cat":"dftracer",(?:"type":"?\d"?,)?"pid":"?\d{1,18}"?,'
    rb'"tid":"?\d{1,18}"?,"ph":(?:4|"M"),"args":\{"hhash":"?\w{1,32}"?,'
    rb'"name":"[ !#-\[\]-~]*","value":"?\w{1,32}"?\}\},?\r?\n'
)


def is_definition(line: bytes) -> bool:
    """Whether a line, with its end, does nothing but say what a hash means."""
    return _DEFINITION.fullmatch(line) is not None


def read_object(line: bytes) -> dict[str, Any] | None:
    """Return a line's JSON object; None if it is none."""
    try:
        read = json.loads(line.rstrip(b", \r"))
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def is_call(read: Mapping[str, Any]) -> bool:
    """Whether the object is written as a call: DFTracer marks its start and end so."""
    return str(read.get("ph")) in ("X", "1")


def arguments_of(read: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object's arguments; empty where it has none."""
    found = read.get("args")
    return found if isinstance(found, dict) else {}


def whole_number(value: object) -> int | None:
    """Return a number that is written bare or as a string; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 2**63 else None


def hash_of(value: object) -> str | None:
    """Return a hash as text: versions write hexadecimal digits in quotes, or a bare number."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    return str(value) or None


def unequal_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object of which no two keys are the same: parsers differ in which one counts.

    Raises:
        ValueError: some are.
    """
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("equal keys")
    return read
