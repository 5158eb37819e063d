"""A TOML file that says what the columns of a user's table mean.

[table]
path = "events.csv"        # beside the TOML file
time_unit = "ms"           # s (default), ms, us, ns

[columns]                  # ioprism's name = the table's name
start = "t0"
duration = "dt"            # or end
operation = "op"
file = "name"
bytes = "n"

[operations]               # what the table's words mean
R = "read"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ioprism.errors import BrokenTraceError
from ioprism.model.layers import LAYERS
from ioprism.model.schema import OPERATIONS
from ioprism.text import read_toml

SECONDS: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
KNOWN = (
    "start", "end", "duration", "rank", "process", "application", "host", "pid", "tid", "file",
    "layer", "operation", "function", "collective", "nonblocking", "offset", "bytes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TableMapping:
    """Which column is which, and what its words mean."""

    columns: Mapping[str, str] = field(default_factory=dict)  # ioprism's name -> the table's
    operations: Mapping[str, str] = field(default_factory=dict)
    layers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 1.0  # in one unit of the table's times

    def column(self, name: str) -> str:
        """The table's name for one of ioprism's columns."""
        return self.columns.get(name, name)


def is_mapping(path: Path) -> bool:
    """Whether a file is such a description."""
    try:
        read = read_toml(path)
    except (OSError, ValueError):
        return False
    return isinstance(read.get("columns"), dict) and isinstance(read.get("table"), dict)


def described_table(path: Path) -> Path:
    """Return the table that a file which `is_mapping` names, whether it is there or not."""
    return path.parent / str(read_toml(path)["table"].get("path"))


def read_mapping(path: Path) -> tuple[Path, TableMapping]:
    """Return the table that a TOML file describes, and what its columns mean.

    Raises:
        BrokenTraceError: it names a column, word or unit that does not exist.
    """
    try:
        read = read_toml(path)
        table, columns = read["table"], read["columns"]
        target = path.parent / str(table["path"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _wrong(path, f"it lacks [columns] or [table] path ({error})") from error
    unit = str(table.get("time_unit", "s"))
    mapping = TableMapping(
        columns=_words(columns, KNOWN, path, values=False),
        operations=_words(read.get("operations", {}), OPERATIONS, path),
        layers=_words(read.get("layers", {}), LAYERS, path),
        seconds=SECONDS.get(unit, 0.0),
    )
    if not mapping.seconds:
        raise _wrong(path, f"time_unit {unit!r} is not one of {', '.join(SECONDS)}")
    if not target.is_file():
        raise _wrong(path, f"the table {str(table['path'])!r} does not exist")
    return target, mapping


def _words(
    given: object, allowed: tuple[str, ...], path: Path, *, values: bool = True
) -> dict[str, str]:
    """Check that ioprism's side of each pair is a word it knows."""
    if not isinstance(given, dict):
        raise _wrong(path, "a section is not a table of names")
    pairs = {str(key): str(value) for key, value in given.items()}
    unknown = [word for word in (pairs.values() if values else pairs) if word not in allowed]
    if unknown:
        raise _wrong(path, f"{unknown[0]!r} is not one of {', '.join(allowed)}")
    return pairs


def _wrong(path: Path, why: str) -> BrokenTraceError:
    return BrokenTraceError(
        f"the description of the table cannot be used: {why}.\n"
        "Hint: see the example in docs/explanation/trace-formats.md.",
        source=path,
    )
