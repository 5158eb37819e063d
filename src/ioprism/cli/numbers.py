"""Numbers on the command line are numbers: what is not finite is refused, bounds or not."""

from __future__ import annotations

import math

import click


class _Finite(click.ParamType[float]):
    """Nothing is below or above NaN, so that bounds alone let it pass."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or refuse it."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class Number(_Finite, click.types.FloatParamType):
    """Any finite number."""


class NumberRange(_Finite, click.FloatRange):
    """A finite number within bounds."""
