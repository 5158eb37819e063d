"""Numbers of two runs with their units, as terminal and page show them."""

from __future__ import annotations

from ioprism.comparison.changes import Comparison, Metric
from ioprism.comparison.repetitions import Difference, runs_needed
from ioprism.model.quantities import label, quantity
from ioprism.units import format_counted, format_seconds

SMALL_CHANGE = 0.05  # of the run time: what the hint on more runs is about
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
    if metric.beyond_noise is False:
        return f"{ratio - 1:+.0%}, within noise".replace("-", "−")
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
    """Say in a line what the change did to the run time."""
    time = comparison.runtime
    if time is None:
        return "The run times cannot be compared: a trace does not have one."
    times = f"{format_seconds(time.before)} before, {format_seconds(time.after)} after"
    if comparison.verdict == "within noise":
        return f"No change of the run time beyond noise: {times}{_interval(time)}."
    if comparison.verdict == "not repeated":
        return f"Run time {_direction(time)}: {times}. One run on each side: noise is not known."
    return f"{comparison.verdict.capitalize()} by {_share(time)}: {times}{_interval(time)}."


def details(comparison: Comparison) -> list[str]:
    """Return the sentences below the verdict: stall time, the promise, repetitions."""
    lines = []
    if comparison.stall is not None:
        stall = comparison.stall
        lines.append(
            f"I/O stall time: {format_seconds(stall.before)} before, "
            f"{format_seconds(stall.after)} after{_interval(stall)}."
        )
    if comparison.promise is not None and comparison.runtime is not None:
        lines.append(_kept_promise(comparison))
    time = comparison.runtime
    if time is not None and time.noise is not None:
        lines.append(_repetitions(comparison, time.noise))
    return lines


def _kept_promise(comparison: Comparison) -> str:
    promise, time = comparison.promise, comparison.runtime
    if promise is None or time is None:
        return ""
    causes = ", ".join(promise.codes)
    said = (
        f"{format_seconds(promise.seconds)} ({format_seconds(promise.low)} to "
        f"{format_seconds(promise.high)})"
    )
    if not promise.removed:
        return f"The main cause before ({causes}, potential saving {said}) was not removed."
    saved = format_seconds(abs(time.saved))
    delivered = f"{saved} {'shorter' if time.saved >= 0 else 'longer'}"
    return f"Removed: {causes}. Potential saving {said}; the run is {delivered}{_interval(time)}."


def _repetitions(comparison: Comparison, noise: float) -> str:
    before, after = comparison.runs
    needed = runs_needed(noise, SMALL_CHANGE)
    hint = (
        f"a change of {SMALL_CHANGE:.0%} needs {needed} runs on each side to be found"
        if needed is not None
        else f"a change of {SMALL_CHANGE:.0%} cannot be found over this noise"
    )
    return (
        f"{format_counted(before, 'run')} before and {after} after; run times vary by "
        f"{noise:.1%}: {hint}."
    )


def _interval(difference: Difference) -> str:
    if difference.low is None or difference.high is None:
        return ""
    low, high = (_signed_seconds(number) for number in (difference.low, difference.high))
    return f" (saved {low} to {high}, 95 % interval)"


def _signed_seconds(seconds: float) -> str:
    return f"−{format_seconds(-seconds)}" if seconds < 0 else format_seconds(seconds)


def _direction(difference: Difference) -> str:
    change = difference.change
    if change is None or abs(change) < 0.005:
        return "unchanged"
    return f"{'shorter' if change < 0 else 'longer'} by {_share(difference)}"


def _share(difference: Difference) -> str:
    change = abs(difference.change or 0.0)
    return f"{change:.1%}" if change < 0.1 else f"{change:.0%}"
