"""Tables as pandas has them, with every number as it is.

Polars' own `to_pandas` needs pyarrow, and turns whole numbers with gaps into floats: ids and
sizes above 2^53 would change. Here they become pandas' types that know gaps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ioprism.errors import MissingPackageError

if TYPE_CHECKING:
    import polars as pl


def to_pandas(table: pl.DataFrame) -> Any:  # noqa: ANN401 - pandas is optional
    """Return a table as a pandas DataFrame.

    Whole numbers and truth values have pandas' nullable types, times are floats with NaN where
    they are unknown, and names are texts or None.

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
