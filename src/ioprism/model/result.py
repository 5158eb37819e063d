"""What every result can do: plain data, a table, one line of text, a notebook's cell."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from ioprism.errors import MissingPackageError

if TYPE_CHECKING:  # a small log is judged without a table library
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
        from html import escape

        return f"<p>{escape(self.summary())}</p>{self.to_frame()._repr_html_()}"


def pick(source: object, *names: str) -> dict[str, Any]:
    """Return these attributes of an object as plain data, in this order."""
    return {name: _plain(getattr(source, name)) for name in names}


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON is any nesting
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
