"""Numbers of two runs with their units, as terminal and page tell them."""

from __future__ import annotations

from ioprism.analyses.compare import Comparison, Metric
from ioprism.units import format_bytes, format_count, format_rate, format_seconds

TITLES = {
    "io_time": "time in I/O calls, all ranks",
    "library_time": "of it above the system calls (MPI-IO, libraries)",
    "read_time": "of it reading",
    "write_time": "of it writing",
    "metadata_time": "of it in metadata calls",
    "runtime": "run time",
}
MANY_TIMES = 1000  # a ratio beyond says no more than that there was next to nothing before


def telling(found: Comparison) -> list[Metric]:
    """The numbers that at least one of the runs has."""
    return [metric for metric in found.metrics if metric.before or metric.after]


def metric_row(metric: Metric) -> tuple[str, str, str, str]:
    """Return name, before, after and change in words."""
    return (
        TITLES.get(metric.name, metric.name.replace("_", " ")),
        shown(metric.name, metric.before),
        shown(metric.name, metric.after),
        change(metric),
    )


def shown(name: str, value: float | None) -> str:
    """Return a metric's value with its unit, which its name tells."""
    if value is None:
        return "–"
    if name.endswith("_rate"):
        return format_rate(value)
    if name == "runtime" or name.endswith("time"):
        return format_seconds(value)
    if name.endswith(("bytes", "size")):
        return format_bytes(value)
    return format_count(value)


def change(metric: Metric) -> str:
    """Return `2.5 times as much`, `−40 %`, `a 4th` or `same`."""
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


def verdict(found: Comparison) -> str:
    """Say in a line what the change did to the time in I/O."""
    time = next(metric for metric in found.metrics if metric.name == "io_time")
    runtime = next(metric for metric in found.metrics if metric.name == "runtime")
    counts = f"{len(found.gone)} findings gone, {len(found.new)} new, {len(found.kept)} kept"
    if time.ratio is None:
        return f"Nothing to compare the time in I/O with; {counts}."
    word = {True: "less", False: "more", None: "about the same"}[time.better]
    amounts = f"{shown('io_time', time.before)} before, {shown('io_time', time.after)} after"
    run = "" if runtime.ratio is None else f"; run time {change(runtime)}"
    return f"{word.capitalize()} time in I/O: {amounts}{run}; {counts}."
