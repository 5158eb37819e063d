"""The middle of few numbers, where an array library would take longer to load than to use."""

from __future__ import annotations

from collections.abc import Iterable


def median(values: Iterable[float]) -> float:
    """The value that half of them are above."""
    return quantile(values, 0.5)


def quantile(values: Iterable[float], share: float) -> float:
    """The value that a share of them is below, between two neighbours in proportion."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
