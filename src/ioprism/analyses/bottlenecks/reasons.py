"""Which conditions hold for which bottlenecks: all of them in one pass over the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ioprism.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Cause:
    """A possible reason, compiled."""

    key: str  # unique
    holds: pl.Expr  # true or false for each row of the table
    explains: bool = True  # False: worth telling, but no explanation


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """For each bottleneck, in the order of the table, what holds."""

    holds: pl.DataFrame  # one column of flags for each cause
    explained: pl.Series


def judged(table: pl.DataFrame, causes: Sequence[Cause]) -> Verdicts:
    """Test all causes on all bottlenecks."""
    holds = table.lazy().select(cause.holds.alias(cause.key) for cause in causes).collect()
    explaining = [cause.key for cause in causes if cause.explains]
    if not explaining or not holds.height:
        return Verdicts(holds, pl.Series("explained", [False] * table.height, dtype=pl.Boolean))
    explained = holds.select(pl.any_horizontal(explaining).alias("explained")).to_series()
    return Verdicts(holds, explained)


def evidence(table: pl.DataFrame, values: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """Compute named values for the bottlenecks that are to be told."""
    return table.lazy().select(value.alias(name) for name, value in values.items()).collect()
