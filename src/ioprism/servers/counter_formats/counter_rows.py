"""Collect counter samples one by one into tables of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ioprism.model.counters import (
    COUNTERS,
    EARLIEST,
    LATEST,
    SECOND,
    SERIES_KEY,
    VALUES,
    Tally,
)

ROWS_PER_TABLE = 200_000
LARGEST = 2**63 - 1
NO_PLACE_IN_TIME = "record with an impossible time"
NO_PLAUSIBLE_VALUE = "record with an impossible counter"


@dataclass(slots=True)
class Rows:
    """Samples collected so far, as columns."""

    columns: dict[str, list[Any]] = field(
        default_factory=lambda: {name: [] for name in COUNTERS.names}
    )

    def __len__(self) -> int:
        return len(self.columns["server"])

    def add(self, tally: Tally, **values: str | int | None) -> None:
        """Add one sample; one that cannot be true is counted instead."""
        if not EARLIEST <= int(values["time_us"] or 0) <= LATEST:
            tally.leave_out(NO_PLACE_IN_TIME)
        elif not all(0 <= int(values.get(name) or 0) <= LARGEST for name in VALUES):
            tally.leave_out(NO_PLAUSIBLE_VALUE)
        else:
            for name, column in self.columns.items():
                column.append(values.get(name))

    def table(self, tally: Tally) -> pl.DataFrame:
        """Return the samples as a table and forget them."""
        table = pl.DataFrame(self.columns, schema=COUNTERS.schema)
        for column in self.columns.values():
            column.clear()
        return checked(table, tally)

    def full(self) -> bool:
        """Whether it is time to make a table of them."""
        return len(self) >= ROWS_PER_TABLE

    def rest(self, tally: Tally) -> Iterator[pl.DataFrame]:
        """Yield what is left, if anything is."""
        if len(self):
            yield self.table(tally)


def checked(table: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Leave out and count rows that cannot be true; note clocks that went back."""
    table = COUNTERS.conform(table)
    in_time = pl.col("time_us").is_between(EARLIEST, LATEST).fill_null(value=False)
    possible = pl.all_horizontal(pl.col(name).fill_null(0) >= 0 for name in VALUES)
    named = pl.col("server").is_not_null() & (pl.col("server") != "")
    if not table.select((in_time & named & possible).all()).item():
        kept = table.filter(in_time & named)
        tally.leave_out(NO_PLACE_IN_TIME, count=table.height - kept.height)
        table = kept.filter(possible)
        tally.leave_out(NO_PLAUSIBLE_VALUE, count=kept.height - table.height)
    _note_clocks(table, tally)
    tally.records += table.height
    return table


def _note_clocks(table: pl.DataFrame, tally: Tally) -> None:
    if table["time_us"].is_sorted():
        return
    step_back = pl.col("time_us").diff().over(*SERIES_KEY) < 0
    servers = table.filter(step_back)["server"].unique().sort().to_list()
    if servers:
        named = ", ".join(servers[:3]) + (" …" if len(servers) > 3 else "")
        tally.note(f"time goes backwards in the records of {len(servers)} servers ({named})")


def microseconds(text: str) -> int:
    """Return decimal seconds such as `1510782606.789180921` as whole microseconds.

    Raises:
        ValueError: the text is no such number.
    """
    whole, _, fraction = text.strip().partition(".")
    sign = -1 if whole.startswith("-") else 1
    digits = (fraction + "000000")[:6]
    if not (whole.lstrip("-") + digits).isdecimal() or len(whole) > 15:
        raise ValueError(f"{text!r} is not a time")
    return int(whole) * SECOND + sign * int(digits)
