"""A bottleneck in one sentence: who, where, when, and how it compares with its peers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ioprism.bottleneck_search.cross_view import PREFIX
from ioprism.bottleneck_search.result import Reason
from ioprism.text import printable
from ioprism.units import format_seconds

PLURALS = {"process": "processes", "directory": "directories"}
WHERE = ("application", "directory", "file", "process", "host", "target", "function", "layer")


def sentence(row: Mapping[str, Any], reasons: Sequence[Reason]) -> str:
    """Return it, or nothing for a record of the paper's views, which has no peers to name."""
    if "lead" not in row:
        return ""
    why = f": {reasons[0].message}" if reasons else ""
    return f"{_who(row)} {_compared(row)}{_when(row)}{why}"


def _who(row: Mapping[str, Any]) -> str:
    named = ", ".join(_named(row))
    first = named[:1].upper() + named[1:]
    if row["alike"] < 2:
        return first
    kind = PLURALS.get(row["lead"], f"{row['lead']}s")
    return f"{first} ({row['alike']:,} of {row['records']:,} {kind} alike)"


def _named(row: Mapping[str, Any]) -> Iterator[str]:
    """Application, directory or file, and process; the file names its directory."""
    views = row["view"].split(".")
    ordered = [view for view in WHERE if view in views]
    for view in [*ordered, *(view for view in views if view not in ordered)]:
        name = row.get(PREFIX + view)
        text = "unknown" if name is None else printable(str(name)) or "without a name"
        if view == "directory" and "file" in views:
            continue
        if view in ("time", "phase"):
            yield f"second {float(name or 0.0):g}"
        else:
            yield text if view == "process" else f"{view} {text}"


def _compared(row: Mapping[str, Any]) -> str:
    time, excess = format_seconds(row["at_stake"]), format_seconds(row["excess_seconds"])
    kind = row["lead"]
    if row["same_work"] and row["peers_seconds"]:
        times = row["slowest_process_time"] / row["peers_seconds"]
        return f"takes {times:.3g} times the median {kind} for the same calls, {excess} more"
    return f"takes {time}, {excess} of it more than its data and its peers explain"


def _when(row: Mapping[str, Any]) -> str:
    start, end = row.get("window_start"), row.get("window_end")
    return "" if start is None or end is None else f", from second {start:g} to {end:g}"
