"""Read a few JSON lines without DuckDB, which takes longer to load than they take to read.

Only lines that leave nothing open: an ASCII object without escapes and equal keys, whose wanted
values are of the wanted types. For anything else DuckDB decides what is damaged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

import polars as pl

from ioprism.formats.dftracer.objects import unequal_keys

MOST = 2**18  # bytes; DuckDB is quicker at more
DIGITS = 18  # of the longest number that surely fits into 64 bits
_TYPES = {"VARCHAR": pl.String(), "BIGINT": pl.Int64()}


class _UnclearError(ValueError):
    """Only DuckDB can say what it makes of the line."""


def read_few_lines(
    text: bytes, top: Mapping[str, str], arguments: Mapping[str, str]
) -> pl.DataFrame | None:
    """Return one row for every line that is not blank; None if there is any doubt.

    Args:
        text: JSON lines.
        top: DuckDB's types of an object's own values.
        arguments: those of the values in its `args`, which become the column `args`.
    """
    if len(text) > MOST or not text.isascii() or b"\\" in text:
        return None
    try:
        rows = [_row(line, top, arguments) for line in text.split(b"\n") if line]
    except (ValueError, RecursionError):
        return None
    inner = pl.Struct({key: _TYPES[kind] for key, kind in arguments.items()})
    schema = {key: _TYPES[kind] for key, kind in top.items()} | {"args": inner}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _row(line: bytes, top: Mapping[str, str], arguments: Mapping[str, str]) -> tuple[Any, ...]:
    read = _DECODER.decode(line.decode())
    inner = read.get("args", {}) if isinstance(read, dict) else None
    if not isinstance(inner, dict):
        raise _UnclearError
    own = (_value(read.get(key), kind) for key, kind in top.items())
    return *own, {key: _value(inner.get(key), kind) for key, kind in arguments.items()}


def _value(value: object, kind: str) -> object:
    if value is None:
        return None
    if isinstance(value, str):
        return value if kind == "VARCHAR" else _quoted(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
        raise _UnclearError
    if kind == "BIGINT":
        return value
    if value <= 0:  # may be written as -0
        raise _UnclearError
    return str(value)


def _quoted(number: str) -> int:
    """Old versions write all numbers in quotes."""
    if not number.isdecimal() or len(number) > DIGITS:
        raise _UnclearError
    return int(number)


def _refuse(constant: str) -> NoReturn:
    raise _UnclearError(constant)


_DECODER = json.JSONDecoder(object_pairs_hook=unequal_keys, parse_constant=_refuse)
