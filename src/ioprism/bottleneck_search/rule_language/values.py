"""The values of the rule language: their dimensions, operators and functions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import polars as pl

from ioprism.bottleneck_search.rule_language.tokens import PLAIN, Dimension

COMPARISONS: Mapping[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True)
class Value:
    """A checked part of an expression; `dimension` is None for true and false."""

    compute: pl.Expr
    dimension: Dimension | None
    at: int
    fields: frozenset[str]
    is_zero: bool = False  # zero fits every dimension
    parts: int = 1  # fields and numbers in a whole expression


def scaled(left: Value, right: Value, *, divide: bool) -> Value:
    """Multiply or divide; dividing by zero gives no value, whatever the fields hold."""
    sign = -1 if divide else 1
    one, other = left.dimension or PLAIN, right.dimension or PLAIN
    compute = left.compute * right.compute
    if divide:
        compute = pl.when(right.compute != 0).then(left.compute / right.compute)
    dimension = (one[0] + sign * other[0], one[1] + sign * other[1])
    if divide and right.is_zero:
        return Value(pl.lit(None, dtype=pl.Float64), dimension, left.at, frozenset())
    zero = left.is_zero or right.is_zero
    return Value(compute, dimension, left.at, left.fields | right.fields, zero)


def describe(dimension: Dimension | None) -> str:
    """Name a dimension for people."""
    names = {None: "true or false", PLAIN: "a plain number", (1, 0): "seconds", (0, 1): "bytes",
             (-1, 1): "bytes per second", (-1, 0): "a rate"}  # fmt: skip
    return names.get(
        dimension, f"seconds^{(dimension or PLAIN)[0]} bytes^{(dimension or PLAIN)[1]}"
    )


# How many arguments at most, and what it computes.
FUNCTIONS: Mapping[str, tuple[int, Callable[[list[pl.Expr]], pl.Expr]]] = {
    "abs": (1, lambda values: values[0].abs()),
    "min": (9, pl.min_horizontal),
    "max": (9, pl.max_horizontal),
    "coalesce": (9, pl.coalesce),
}
