"""Turn a step function of time into evenly spaced samples without losing a byte."""

from __future__ import annotations

import math
import warnings

import numpy as np
import numpy.typing as npt

from ioprism.errors import BrokenSignalError, SignalTooShortError, SignalWarning, UsageError
from ioprism.model.signal import FloatArray, Signal, StepFunction

MIN_SAMPLES = 8
MAX_SAMPLES = 2**17  # keeps the default analysis below a tenth of a second
MOST_SAMPLES = 2**26  # a frequency asking for more than this is a slip of the pen
FEWEST_CHOSEN = 2**14  # a handful of long steps still gets edges sharp to less than a thousandth
NO_LENGTH = 1e-6  # of the longest step: two edges at one moment, but for rounding
EVEN_SPACING = 1e-3  # steps equal to this share of their length are evenly spaced


def step_function(time: npt.ArrayLike, values: npt.ArrayLike) -> StepFunction:
    """Check plain arrays and read them as a step function.

    ``values[i]`` holds from ``time[i]`` to ``time[i + 1]``. There may be one time more
    than values; otherwise the last value of evenly spaced times holds as long as the
    others, and the last value of any other times has no length.

    Raises:
        SignalTooShortError: there are fewer than two values.
        BrokenSignalError: lengths differ, or a number is NaN, infinite or out of order.
    """
    edges, levels = _plain(time, "time"), _plain(values, "values")
    if len(levels) < 2 or len(edges) < 2:
        raise SignalTooShortError(found=min(len(levels), len(edges)), needed=MIN_SAMPLES)
    if len(edges) - len(levels) not in (0, 1):
        raise BrokenSignalError(f"{len(edges)} times do not fit {len(levels)} values")
    _refuse_disorder(edges)
    if levels.min() < 0.0:
        warnings.warn("the signal has negative values", SignalWarning, stacklevel=3)
    if len(edges) == len(levels):
        edges, levels = _close_last_step(edges, levels)
    return StepFunction(edges, levels)


def sample(
    steps: StepFunction,
    *,
    frequency: float | None = None,
    max_samples: int = MAX_SAMPLES,
    start: float | None = None,
    end: float | None = None,
) -> Signal:
    """Average a step function over equal bins by exact integration.

    Args:
        steps: the step function.
        frequency: samples per second; chosen from the length of the steps if None.
        max_samples: the most samples to choose by itself.
        start: where to begin, in seconds; the first edge if None.
        end: where to stop, in seconds; the last edge if None.

    Raises:
        UsageError: the frequency or the time range makes no sense.
        SignalTooShortError: there would be fewer than ``MIN_SAMPLES`` samples.
    """
    steps = _crop(steps, start=start, end=end)
    interval = _interval(steps, frequency=frequency, max_samples=max_samples)
    samples = int(steps.span / interval * (1.0 + 1e-9))
    if samples < MIN_SAMPLES:
        raise SignalTooShortError(found=samples, needed=MIN_SAMPLES)
    first = float(steps.edges[0])
    if samples == len(steps.values) and _are_even(_lengths(steps.edges)):
        return Signal(first, interval, steps.values)
    volume = np.concatenate(([0.0], np.cumsum(steps.values * np.diff(steps.edges))))
    bins = first + interval * np.arange(samples + 1)
    return Signal(first, interval, np.diff(np.interp(bins, steps.edges, volume)) / interval)


def _plain(numbers: npt.ArrayLike, name: str) -> FloatArray:
    try:
        array = np.ascontiguousarray(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BrokenSignalError(f"{name} are not numbers: {error}") from error
    if array.ndim != 1:
        raise BrokenSignalError(f"{name} have {array.ndim} dimensions instead of one")
    if not np.isfinite(array).all():
        where = int(np.flatnonzero(~np.isfinite(array))[0])
        raise BrokenSignalError(f"{name}[{where}] is {array[where]}")
    return array


def _refuse_disorder(edges: FloatArray) -> None:
    back = np.flatnonzero(edges[1:] < edges[:-1])
    if len(back):
        i = int(back[0])
        raise BrokenSignalError(
            f"times are not sorted: time[{i + 1}] = {edges[i + 1]} comes after {edges[i]}"
        )
    if edges[-1] <= edges[0]:
        raise BrokenSignalError(f"all times are {edges[0]}")


def _lengths(edges: FloatArray) -> FloatArray:
    """How long steps are, those of no length left out."""
    lengths = edges[1:] - edges[:-1]
    least = NO_LENGTH * float(lengths.max())
    return lengths if float(lengths.min()) > least else lengths[lengths > least]


def _are_even(lengths: FloatArray) -> bool:
    """Whether all steps are of one length."""
    longest = float(lengths.max())
    return longest - float(lengths.min()) <= EVEN_SPACING * longest


def _close_last_step(edges: FloatArray, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
    if not _are_even(_lengths(edges)):
        return edges, levels[:-1]
    step = (edges[-1] - edges[0]) / (len(edges) - 1)
    return np.append(edges, edges[-1] + step), levels


def _crop(steps: StepFunction, *, start: float | None, end: float | None) -> StepFunction:
    if start is None and end is None:
        return steps
    first = max(float(steps.edges[0]), -math.inf if start is None else start)
    last = min(float(steps.edges[-1]), math.inf if end is None else end)
    if not first < last:
        raise UsageError(
            f"there is no signal between {start} and {end} s: "
            f"it lasts from {steps.edges[0]:g} to {steps.edges[-1]:g} s.\n"
            "Hint: choose --start and --end inside it."
        )
    low = int(np.searchsorted(steps.edges, first, side="right")) - 1
    high = int(np.searchsorted(steps.edges, last, side="left"))
    edges = steps.edges[low : high + 1].copy()
    edges[0], edges[-1] = first, last
    return StepFunction(edges, steps.values[low:high])


def _interval(steps: StepFunction, *, frequency: float | None, max_samples: int) -> float:
    if frequency is None:
        return _chosen_interval(steps, max_samples=max_samples)
    if not (math.isfinite(frequency) and frequency > 0.0):
        raise UsageError(f"a sampling frequency of {frequency} Hz makes no sense.")
    if steps.span * frequency > MOST_SAMPLES:
        raise UsageError(
            f"{frequency:g} Hz over {steps.span:g} s would be more than {MOST_SAMPLES} samples.\n"
            "Hint: leave --frequency out to have it chosen."
        )
    return 1.0 / frequency


def _chosen_interval(steps: StepFunction, *, max_samples: int) -> float:
    if max_samples < MIN_SAMPLES:
        raise UsageError(f"max_samples = {max_samples}, at least {MIN_SAMPLES} are needed.")
    lengths, shortest = _lengths(steps.edges), steps.span / max_samples
    if _are_even(lengths):
        return max(shortest, steps.span / len(lengths))
    # The tenth percentile: a few slivers between overlapping requests must not decide.
    tenth = len(lengths) // 10
    typical = float(np.partition(lengths, tenth)[tenth])  # np.quantile imports masked arrays
    return max(shortest, min(typical, steps.span / FEWEST_CHOSEN))
