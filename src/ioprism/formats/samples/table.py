"""Read runs from a CSV table: one row a run."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path

from ioprism.errors import BrokenTraceError, UsageError
from ioprism.model.samples import Run, WritePattern, parse_node_list
from ioprism.text import printable

NEEDED = ("nodes", "cores_per_node", "burst_bytes", "seconds")
SHOWN = 3  # bad rows named in a message


def read_table(text: str, source: Path, skip_bad: bool) -> tuple[list[Run], list[str]]:
    """Read every row; refuse the table if one is bad, unless bad rows are to be skipped."""
    rows = csv.DictReader(text.splitlines(), restval=None)
    missing = [name for name in NEEDED if name not in (rows.fieldnames or ())]
    if missing:
        raise BrokenTraceError(
            f"the columns {', '.join(missing)} are missing.\n"
            "Hint: the first line must name nodes, cores_per_node, burst_bytes and seconds.",
            source=source,
        )
    runs: list[Run] = []
    bad: list[str] = []
    lists: dict[str, tuple[int, ...]] = {}
    try:
        for row in rows:
            try:
                runs.append(_run(row, lists))
            except (ValueError, UsageError) as error:
                reason = str(error).partition("\n")[0]
                bad.append(f"line {rows.line_num}: {printable(reason)}")
    except csv.Error as error:
        bad.append(f"line {rows.line_num}: {error}")
    if bad and not skip_bad:
        raise BrokenTraceError(
            f"{len(bad)} of {len(runs) + len(bad)} rows are bad; nothing was imported "
            f"({'; '.join(bad[:SHOWN])}{'; …' if len(bad) > SHOWN else ''}).\n"
            "Hint: correct them, or use --skip-bad to import the others.",
            source=source,
        )
    return runs, [f"skipped {entry}" for entry in bad]


def _run(row: Mapping[str, str | None], lists: dict[str, tuple[int, ...]]) -> Run:
    text = row.get("node_list") or ""
    if text and text not in lists:
        lists[text] = parse_node_list(text)
    pattern = WritePattern(
        nodes=_count(row, "nodes"),
        cores_per_node=_count(row, "cores_per_node"),
        burst_bytes=_count(row, "burst_bytes"),
        stripe_bytes=_count(row, "stripe_bytes") if row.get("stripe_bytes") else None,
        stripe_count=_count(row, "stripe_count") if row.get("stripe_count") else None,
        node_list=lists[text] if text else None,
        label=row.get("pattern") or "",
    )
    if pattern.node_list is not None and len(pattern.node_list) != pattern.nodes:
        raise ValueError(f"{len(pattern.node_list)} nodes listed, but nodes is {pattern.nodes}")
    return Run(pattern, _seconds(row.get("seconds")))


def _count(row: Mapping[str, str | None], name: str) -> int:
    text = (row.get(name) or "").strip()
    if not text:
        raise ValueError(f"{name} is missing")
    try:
        value = int(text)
    except ValueError:
        raise ValueError(f"{name} is {text[:40]!r}, not a whole number") from None
    if not 1 <= value <= 10**18:
        raise ValueError(f"{name} is {value}, not a positive number in range")
    return value


def _seconds(text: str | None) -> float:
    if not (text or "").strip():
        raise ValueError("seconds is missing")
    try:
        value = float(text or "")
    except ValueError:
        raise ValueError(f"seconds is {(text or '')[:40]!r}, not a number") from None
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"seconds is {value:g}, not positive")
    return value
