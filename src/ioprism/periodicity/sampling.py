"""Sample a step function of time evenly without losing a byte, and filter the samples."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ioprism.errors import BrokenSignalError, SignalTooShortError, SignalWarning, UsageError
from ioprism.model.arrays import TINY, FloatArray, Signal, StepFunction
from ioprism.periodicity.limits import MIN_ALTERNATION
from ioprism.units import format_counted

MIN_SAMPLES = 8
MAX_SAMPLES = 2**17  # keeps the default analysis below a tenth of a second
MAX_ASKED_SAMPLES = 2**26  # a frequency asking for more than this is a slip of the pen
MIN_CHOSEN_SAMPLES = 2**14  # edges of a few long steps are then sharp to a thousandth
MIN_RELATIVE_LENGTH = 1e-6  # of the longest step: two edges at one moment, but for rounding
MAX_SPACING_ERROR = 1e-3  # steps equal to this share of their length are evenly spaced


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


def is_coarse(signal: Signal) -> bool:
    """Whether most of a signal changes from one sample to the next: phases are shorter than those.

    Neighbouring samples differ then more than any two. Multiples of the frequency are above half
    the sampling frequency: they appear folded, as slower waves and beats that do not exist.
    """
    off = signal.values - signal.values.mean()
    limit = max(MIN_ALTERNATION, 3.0 / math.sqrt(len(off)))  # three standard errors of noise
    return float(off[1:] @ off[:-1]) < -limit * float(off @ off)


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
    least = MIN_RELATIVE_LENGTH * float(lengths.max())
    return lengths if float(lengths.min()) > least else lengths[lengths > least]


def _are_even(lengths: FloatArray) -> bool:
    """Whether all steps are of one length."""
    longest = float(lengths.max())
    return longest - float(lengths.min()) <= MAX_SPACING_ERROR * longest


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
            f"the signal has nothing between {start} and {end} s: "
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
    if steps.span * frequency > MAX_ASKED_SAMPLES:
        raise UsageError(
            f"{frequency:g} Hz over {steps.span:g} s is more than {MAX_ASKED_SAMPLES} samples.\n"
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
    return max(shortest, min(typical, steps.span / MIN_CHOSEN_SAMPLES))


ORDER = 4
HIGHEST_ORDER = 64
EXAMPLES = "Hint: write lowpass:0.1 or bandpass:0.05,0.2:4"
CUTOFFS = {"lowpass": 1, "highpass": 1, "bandpass": 2}


@dataclass(frozen=True, slots=True)
class FrequencyFilter:
    """A Butterworth filter, run forwards and backwards so that nothing shifts in time."""

    kind: str  # lowpass, highpass or bandpass
    cutoffs: tuple[float, ...]  # Hz; two for bandpass
    order: int = ORDER

    def __post_init__(self) -> None:
        if self.kind not in CUTOFFS:
            raise UsageError(
                f"unknown filter {self.kind!r}.\nHint: filters are {', '.join(CUTOFFS)}."
            )
        if len(self.cutoffs) != CUTOFFS[self.kind]:
            raise UsageError(
                f"a {self.kind} filter has {format_counted(CUTOFFS[self.kind], 'cut-off')}, "
                f"not {len(self.cutoffs)}.\n{EXAMPLES}"
            )
        increasing = all(a < b for a, b in zip(self.cutoffs[:-1], self.cutoffs[1:], strict=True))
        if not (increasing and all(0.0 < cutoff < math.inf for cutoff in self.cutoffs)):
            shown = ", ".join(f"{cutoff:g}" for cutoff in self.cutoffs)
            raise UsageError(
                f"a {self.kind} filter cannot cut off at {shown} Hz.\n"
                "Hint: frequencies are above 0, and the lower of two comes first."
            )
        if not 1 <= self.order <= HIGHEST_ORDER:
            raise UsageError(
                f"a filter cannot have order {self.order}.\nHint: it may be 1 to {HIGHEST_ORDER}."
            )

    def gain(self, frequencies: FloatArray) -> FloatArray:
        """What is left of the amplitude at each frequency (Hz), 0 to 1."""
        if self.kind == "lowpass":
            return _low(frequencies / self.cutoffs[0], self.order)
        if self.kind == "highpass":
            return 1.0 - _low(frequencies / self.cutoffs[0], self.order)
        low, high = self.cutoffs
        centred = np.abs(frequencies**2 - low * high)
        width = np.maximum(frequencies * (high - low), TINY)
        with np.errstate(over="ignore"):
            return _low(centred / width, self.order)


def parse_filter(text: str) -> FrequencyFilter:
    """Read ``lowpass:0.1``, ``bandpass:0.05,0.2`` or ``highpass:0.1:6`` (Hz, then the order)."""
    kind, _, rest = text.partition(":")
    numbers, _, order = rest.partition(":")
    try:
        cutoffs = tuple(float(number) for number in numbers.split(","))
        return FrequencyFilter(kind, cutoffs, int(order) if order else ORDER)
    except ValueError as error:
        raise UsageError(f"cannot read the filter {text!r}.\n{EXAMPLES}") from error


def apply_filter(signal: Signal, chosen: FrequencyFilter) -> Signal:
    """Filter a signal; its ends are mirrored so that they do not ring.

    Raises:
        UsageError: a cut-off frequency is above half the sampling frequency.
    """
    nyquist = signal.frequency / 2
    if max(chosen.cutoffs) >= nyquist:
        raise UsageError(
            f"a cut-off of {max(chosen.cutoffs):g} Hz is not below half the sampling "
            f"frequency, {nyquist:g} Hz.\nHint: choose a higher --frequency."
        )
    samples = len(signal.values)
    mirrored = np.concatenate((signal.values, signal.values[::-1]))
    frequencies = np.arange(samples + 1) / (2 * samples * signal.interval)
    gain = chosen.gain(frequencies)
    values = np.fft.irfft(np.fft.rfft(mirrored) * gain, 2 * samples)[:samples]
    return Signal(signal.start, signal.interval, values)


def _low(ratio: FloatArray, order: int) -> FloatArray:
    with np.errstate(over="ignore"):
        gain: FloatArray = 1.0 / (1.0 + ratio ** (2 * order))
    return gain
