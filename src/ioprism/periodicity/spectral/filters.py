"""Keep only some frequencies of a signal: Butterworth filters without delay."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ioprism.errors import UsageError
from ioprism.model.signal import FloatArray, Signal
from ioprism.units import format_counted

ORDER = 4
HIGHEST_ORDER = 64
EXAMPLES = "Hint: write lowpass:0.1 or bandpass:0.05,0.2:4"
CUTOFFS = {"lowpass": 1, "highpass": 1, "bandpass": 2}


@dataclass(frozen=True, slots=True)
class Filter:
    """A Butterworth filter, run forwards and backwards so that nothing shifts in time."""

    kind: str  # lowpass, highpass or bandpass
    cutoffs: tuple[float, ...]  # Hz; two for bandpass
    order: int = ORDER

    def __post_init__(self) -> None:
        if self.kind not in CUTOFFS:
            raise UsageError(
                f"there is no filter {self.kind!r}.\nHint: filters are {', '.join(CUTOFFS)}."
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
        width = np.maximum(frequencies * (high - low), 1e-300)
        with np.errstate(over="ignore"):
            return _low(centred / width, self.order)


def parse_filter(text: str) -> Filter:
    """Read ``lowpass:0.1``, ``bandpass:0.05,0.2`` or ``highpass:0.1:6`` (Hz, then the order)."""
    kind, _, rest = text.partition(":")
    numbers, _, order = rest.partition(":")
    try:
        cutoffs = tuple(float(number) for number in numbers.split(","))
        return Filter(kind, cutoffs, int(order) if order else ORDER)
    except ValueError as error:
        raise UsageError(f"cannot read the filter {text!r}.\n{EXAMPLES}") from error


def apply(signal: Signal, *, chosen: Filter) -> Signal:
    """Filter a signal; its ends are mirrored so that they do not ring.

    Raises:
        UsageError: a cut-off frequency lies above half the sampling frequency.
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
