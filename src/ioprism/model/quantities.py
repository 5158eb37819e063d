"""What the numbers of findings, causes and comparisons are: unit, label, wording.

Terminal, page and titles take a number's unit from here; the page's JavaScript gets the kind of
each column as data (`Kind` is also the vocabulary of the columns of its tables).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

from ioprism.settings import Thresholds
from ioprism.text import printable
from ioprism.units import format_bytes, format_count, format_rate, format_seconds

# `time` is a moment of the job, `rank` a number that identifies something.
Kind = Literal[
    "bytes", "rate", "seconds", "time", "share", "ratio", "count", "number", "rank", "text"
]
_KIND_OF_UNIT: Mapping[str, Kind] = {
    "B": "bytes", "s": "seconds", "share": "share", "ratio": "ratio", "count": "count"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Quantity:
    """The kind of a number, and what it is called if not as its key."""

    kind: Kind
    label: str | None = None


def _keys(kind: Kind, *names: str, **labels: str) -> dict[str, Quantity]:
    plain = {name: Quantity(kind) for name in names}
    return plain | {name: Quantity(kind, label) for name, label in labels.items()}


QUANTITIES: Mapping[str, Quantity] = {
    **{limit.name: Quantity(_KIND_OF_UNIT[limit.metadata["unit"]]) for limit in fields(Thresholds)},
    **_keys(
        "bytes", "own_bytes", "others_bytes", "redundant", "next_bytes", "most_bytes",
        "mean_bytes", "bytes_per_rank", "bytes_per_phase", "mean_size", "written", "even_bytes",
        "bytes_per_request", "asked_bytes", "asked", "read_bytes", "write_bytes",
        "read_request_size", "write_request_size",
        bytes="moved", alignment="alignment",
    ),
    **_keys("rate", "rate", "peers_rate", "read_rate", "write_rate"),
    **_keys(
        "seconds", "seconds", "slowest", "mean", "mean_seconds", "mean_gap", "time", "start", "end",
        "period", "from", "to", "waited",
        storage="time in storage calls", middle="median", next_start="next phase at",
        runtime="run time", io_stall="I/O stall time",
        io_time="time in I/O calls, all ranks", read_time="time reading", write_time="time writing",
        metadata_time="time in metadata calls",
        library_time="time above the system calls (MPI-IO, libraries)",
    ),
    **_keys(
        "share", "share", "imbalance", "consecutive_share", "io_share", "time_share",
        "operations_share",
    ),
    **_keys("ratio", "factor", "ratio"),
    # Calls or bytes: what a finding compares in both directions.
    **_keys("number", "read", "write", "estimated", "false_alarm_probability"),
    **_keys("rank", "rank", "target", "process", "file"),
    **_keys(
        "count", "accesses", "aggregators", "backward", "blocking", "calls", "collective", "count",
        "directions", "files", "hdf5", "independent", "memory", "misaligned", "nodes",
        "nodes_with_aggregators", "opens", "operations", "others", "phases", "pnetcdf", "ranks",
        "ranks_over_limit", "read_operations", "regular", "repetitions", "requests", "scattered",
        "seeks", "servers", "small", "stragglers", "syncs", "targets", "tiny", "warnings",
        "write_operations", "metadata_operations", "writes",
        of="out of",
    ),
}  # fmt: skip


# Rules of a user's own name their values themselves.
_KIND_OF_ENDING: Mapping[str, Kind] = {
    "share": "share", "bytes": "bytes", "size": "bytes", "time": "seconds", "seconds": "seconds",
    "rate": "rate", "bandwidth": "rate", "count": "count",
}  # fmt: skip


def kind_of(key: str) -> Kind:
    """The kind of the number that a key names: as listed, or as its last word says."""
    known = QUANTITIES.get(key)
    if known is not None:
        return known.kind
    return _KIND_OF_ENDING.get(key.rpartition("_")[2], "number")


def label(key: str) -> str:
    """What a number is called."""
    known = QUANTITIES.get(key)
    return (known and known.label) or key.replace("_", " ")


def quantity(key: str, value: object) -> str:
    """A number with its unit."""
    return in_words(kind_of(key), value)


def in_words(kind: Kind, value: object) -> str:
    """A number of some kind with its unit; text as it is, without control characters."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return printable(str(value))
    match kind:
        case "bytes":
            return format_bytes(value)
        case "rate":
            return format_rate(value)
        case "seconds" | "time":
            return format_seconds(value)
        case "share":
            return _percent(value)
        case "ratio":
            return f"{value:.1f}"
        case "rank" | "text":
            return str(value)
    return format_count(value) if float(value).is_integer() else f"{value:.3g}"


def _percent(share: float) -> str:
    """Whole percents; tenths where rounding would say nothing, or everything."""
    tenths = 0 < share < 0.0995 or 0.995 <= share < 1
    return f"{share:.1%}" if tenths else f"{share:.0%}"
