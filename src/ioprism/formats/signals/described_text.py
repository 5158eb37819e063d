r"""Intervals in a text of any form, found by regular expressions that a TOML file gives.

The description says where the numbers stand and how to scale them; nothing in it is run::

    operation = "write"                      # read or write

    [start]
    pattern = 'start_t_micro: \[([^\]]*)\]'   # the first group: numbers, by commas or blanks
    scale = 1e-6                             # to seconds

    [end]
    pattern = 'end_t_micro: \[([^\]]*)\]'
    scale = 1e-6

    [bytes]                                  # or [bandwidth], in bytes per second
    pattern = 'req_size: \[([^\]]*)\]'
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ioprism.errors import BrokenTraceError, UsageError
from ioprism.formats.signals.build import Content, Intervals, build_trace, interval_bytes
from ioprism.model.signal import FloatArray
from ioprism.model.trace import Completeness, Trace

FIELDS = ("start", "end", "bytes", "bandwidth")
SEPARATORS = re.compile(r"[,;\s]+")
TEXT_BYTES = 2**30


@dataclass(frozen=True, slots=True)
class Field:
    """Where a column of numbers stands."""

    pattern: re.Pattern[str]
    scale: float


def read_described_text(source: Path, description: Path) -> Trace:
    """Read a text whose numbers a TOML description finds.

    Raises:
        UsageError: the description is wrong.
        BrokenTraceError: the text does not hold what the description says.
    """
    fields, operation = _description(description)
    if source.stat().st_size > TEXT_BYTES:
        raise BrokenTraceError(
            "the text is larger than 1 GiB.\nHint: split it into several files.", source=source
        )
    text = source.read_text(encoding="utf-8", errors="replace")
    columns = {name: _numbers(text, name, field, source) for name, field in fields.items()}
    start, end = columns["start"], columns["end"]
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1:
        raise BrokenTraceError(
            f"the columns are not equally long ({lengths}).\n"
            f"Hint: check the patterns in {description.name}.",
            source=source,
        )
    moved = (
        columns["bytes"] if "bytes" in columns else interval_bytes(columns["bandwidth"], start, end)
    )
    content = Content([Intervals(start, end, moved, operation)])
    return build_trace(source, content, Completeness(), name="text")


def _description(path: Path) -> tuple[dict[str, Field], str]:
    try:
        described = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f"{path}: not valid TOML ({error}).\n"
            "Hint: write tables such as [start], with pattern and scale."
        ) from error
    operation = described.pop("operation", "other")
    unknown = set(described) - set(FIELDS)
    if unknown or operation not in ("read", "write", "other"):
        raise UsageError(
            f"{path}: unknown entries {sorted(unknown) or operation!r}.\n"
            f"Hint: there are operation (read, write) and the tables {', '.join(FIELDS)}."
        )
    if not {"start", "end"} <= set(described) or not {"bytes", "bandwidth"} & set(described):
        raise UsageError(
            f"{path}: the tables start, end and one of bytes and bandwidth are needed."
        )
    return {name: _field(path, name, table) for name, table in described.items()}, operation


def _field(path: Path, name: str, table: Any) -> Field:  # noqa: ANN401 - any TOML value
    match table:
        case {"pattern": str(pattern), **rest} if set(rest) <= {"scale"}:
            scale = rest.get("scale", 1.0)
        case _:
            scale, pattern = None, ""
    if not isinstance(scale, int | float):
        raise UsageError(f"{path}: [{name}] needs a pattern (text) and may have a scale (number).")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{path}: [{name}] pattern: {error}.") from error
    if compiled.groups < 1:
        raise UsageError(f"{path}: [{name}] pattern has no group for the numbers.")
    return Field(compiled, float(scale))


def _numbers(text: str, name: str, field: Field, source: Path) -> FloatArray:
    groups = [match.group(1) or "" for match in field.pattern.finditer(text)]
    words = [word for group in groups for word in SEPARATORS.split(group.strip()) if word]
    try:
        values = np.array([float(word) for word in words], dtype=np.float64)
    except ValueError as error:
        raise BrokenTraceError(
            f"the pattern of [{name}] matches something that is not a number ({error}).\n"
            "Hint: its first group should match only numbers.",
            source=source,
        ) from error
    if not len(values):
        raise BrokenTraceError(
            f"the pattern of [{name}] matches nothing.\nHint: check the pattern.", source=source
        )
    return values * field.scale
