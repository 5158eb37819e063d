"""What every result can do, and what its numbers are: unit, label, wording.

Terminal, page and titles take a number's unit from here; the page's JavaScript gets the kind of
each column as data (`Kind` is also the vocabulary of the columns of its tables).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal

from ioprism.errors import MissingPackageError
from ioprism.settings import Thresholds
from ioprism.text import printable
from ioprism.units import format_bytes, format_count, format_rate, format_seconds

if TYPE_CHECKING:
    import polars as pl


class Result(ABC):
    """The answer to a question, as data. Wording and pictures belong to reports/."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return what the command of this name prints with `--json`."""

    @abstractmethod
    def to_frame(self) -> pl.DataFrame:
        """Return the answer as a table."""

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas is optional
        """Return the answer as a pandas DataFrame."""
        return to_pandas(self.to_frame())

    @abstractmethod
    def summary(self) -> str:
        """Return the answer in one line."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary()}>"

    def _repr_html_(self) -> str:
        from html import escape  # a millisecond that few commands need

        return f"<p>{escape(self.summary())}</p>{self.to_frame()._repr_html_()}"


def pick(source: object, *names: str) -> dict[str, Any]:
    """Return these attributes of an object as plain data, in this order."""
    return {name: _plain(getattr(source, name)) for name in names}


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON is any nesting
    if type(value) in (float, int, str):
        return value
    if is_dataclass(value):
        return pick(value, *(one.name for one in fields(value)))
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def whole_numbers(value: Any) -> Any:  # noqa: ANN401 - JSON is any nesting
    """Write numbers that are whole without a fraction: counts are sums of parts of calls."""
    if isinstance(value, dict):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def to_pandas(table: pl.DataFrame) -> Any:  # noqa: ANN401 - pandas is optional
    """Return a table as a pandas DataFrame.

    Polars itself would need pyarrow, and turn whole numbers with gaps into floats: ids and sizes
    above 2^53 would change. Here whole numbers and truth values have pandas' nullable types,
    times are floats with NaN where they are unknown, and names are texts or None.

    Raises:
        MissingPackageError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise MissingPackageError(
            needed_by="a table of pandas", package="pandas", install="'ioprism[pandas]'"
        ) from error
    columns = {name: _column(pandas, table[name]) for name in table.columns}
    return pandas.DataFrame(columns, index=pandas.RangeIndex(table.height))


def _column(pandas: Any, column: pl.Series) -> Any:  # noqa: ANN401 - of pandas
    import polars as pl

    if column.dtype.is_integer() or column.dtype == pl.Boolean:
        kind = "boolean" if column.dtype == pl.Boolean else str(column.dtype)
        values = column.fill_null(0 if column.dtype.is_integer() else False).to_numpy()
        known = pandas.array(values, dtype=kind)
        known[column.is_null().to_numpy()] = pandas.NA
        return known
    if column.dtype.is_float():
        return column.fill_null(float("nan")).to_numpy()
    return pandas.Series(column.to_list(), dtype=object)


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
