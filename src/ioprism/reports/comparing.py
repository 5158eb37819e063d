"""Numbers of two runs with their units, as terminal and page show them."""

from __future__ import annotations

from ioprism.analyses.compare import Comparison, Metric
from ioprism.model.quantities import label, quantity

MANY_TIMES = 1000  # a ratio beyond says no more than that there was next to nothing before


def telling(comparison: Comparison) -> list[Metric]:
    """The numbers that at least one of the runs has."""
    return [metric for metric in comparison.metrics if metric.before or metric.after]


def metric_row(metric: Metric) -> tuple[str, str, str, str]:
    """Return name, before, after and change in words."""
    return (
        label(metric.name),
        quantity(metric.name, metric.before),
        quantity(metric.name, metric.after),
        change(metric),
    )


def change(metric: Metric) -> str:
    """Return `2.5 times as much`, `−40%`, `1/4` or `same`."""
    ratio = metric.ratio
    if ratio is None:
        return ""
    if abs(ratio - 1) < 0.005:
        return "same"
    if ratio >= MANY_TIMES:
        return f"over {MANY_TIMES:,} times as much"
    if ratio >= 2:
        return f"{ratio:.2g} times as much" if ratio < 100 else f"{ratio:.0f} times as much"
    if 0 < ratio <= 1 / MANY_TIMES:
        return f"less than 1/{MANY_TIMES:,}"
    if 0 < ratio <= 0.5:
        return f"1/{1 / ratio:.2g}" if ratio > 0.01 else f"1/{1 / ratio:.0f}"
    return f"{ratio - 1:+.0%}".replace("-", "−")


def verdict(comparison: Comparison) -> str:
    """Say in a line what the change did to the time in I/O."""
    time = next(metric for metric in comparison.metrics if metric.name == "io_time")
    runtime = next(metric for metric in comparison.metrics if metric.name == "runtime")
    counts = comparison.summary()
    if time.ratio is None:
        return f"The time in I/O cannot be compared; {counts}."
    word = {True: "less", False: "more", None: "about the same"}[time.better]
    amounts = f"{quantity('io_time', time.before)} before, {quantity('io_time', time.after)} after"
    run = "" if runtime.ratio is None else f"; run time {change(runtime)}"
    return f"{word.capitalize()} time in I/O: {amounts}{run}; {counts}."
