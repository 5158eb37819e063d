"""What every result can do: plain data, a table, one line of text, a notebook's cell."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

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
        """Return the answer as a pandas DataFrame (see `model/pandas_form.py`)."""
        from ioprism.model.pandas_form import to_pandas

        return to_pandas(self.to_frame())

    @abstractmethod
    def summary(self) -> str:
        """Return the answer in one line."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary()}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(self.summary())}</p>{self.to_frame()._repr_html_()}"


def whole_numbers(value: Any) -> Any:  # noqa: ANN401 - JSON is any nesting
    """Write numbers that are whole without a fraction: counts are sums of parts of calls."""
    if isinstance(value, dict):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value
