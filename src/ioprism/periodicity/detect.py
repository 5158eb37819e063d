"""Find the period of a signal with the method asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ioprism.errors import SignalTooShortError, UsageError
from ioprism.model.arrays import Signal, median
from ioprism.periodicity import counting, dft, harmonic, limits, phase_starts, time_frequency
from ioprism.periodicity.describe import burst_windows, find_phases_of, phase_volumes
from ioprism.periodicity.results import Period, only_periodic
from ioprism.periodicity.sampling import MAX_SAMPLES, MIN_SAMPLES, is_coarse, sample, step_function
from ioprism.periodicity.segments import average_blocks, coarser_signals


def with_shares(signal: Signal, period: Period) -> Period:
    """Return a period with its phases, and the shares of bytes and time that it explains.

    It explains the bytes of its phases, and what else comes in every period: at least what half
    of the periods move.
    """
    period = replace(period, phases=period.phases or find_phases_of(signal, period))
    total, span = float(signal.values.sum()) * signal.interval, signal.end - signal.start
    moved = 0.0
    if period.phases and total > 0.0:
        whole = phase_volumes(signal, burst_windows(signal, period))
        repeated = float(np.minimum(whole, median(whole)).sum()) if len(whole) else 0.0
        moved = max(float(phase_volumes(signal, period.phases).sum()), repeated) / total
    moved, held = (min(1.0, max(0.0, share)) for share in (moved, period.seconds_held / span))
    return replace(period, bytes_share=moved, time_share=held)


SAMPLES_PER_PERIOD = 256  # for a spectrum where phases suggest a period


def find_by_phases_or_spectrum(signal: Signal) -> Period | None:
    """Return the better of the answers from phase starts and from the harmonic spectrum."""
    if is_coarse(signal):
        return harmonic.find_line(signal)
    by_phases = phase_starts.find_period(signal)
    if by_phases is not None and by_phases.false_alarm_probability <= limits.NEGLIGIBLE_CHANCE:
        return _divide_chance(by_phases, limits.PHASES_WEIGHT)
    by_spectrum = _clear_period(_for_spectrum(signal, by_phases))
    if by_phases is None or by_spectrum is None:
        return by_phases or by_spectrum
    by_phases = _divide_chance(by_phases, limits.PHASES_WEIGHT)
    by_spectrum = _divide_chance(by_spectrum, 1.0 - limits.PHASES_WEIGHT)
    if not by_spectrum.is_near(by_phases, tolerance=limits.SAME):
        return min(by_phases, by_spectrum, key=_least_chance)
    return _combine_answers(by_phases, by_spectrum)


def _combine_answers(by_phases: Period, by_spectrum: Period) -> Period:
    """One answer where phases and spectrum agree.

    A serial stream, one request after the other, has a peak in its spectrum, too: its phases
    count, and a clear line confirms them. Otherwise phases, which have edges, show best where the
    period begins and ends, and the stronger evidence decides how certain it is.
    """
    chance = by_spectrum.false_alarm_probability
    busy = sum(end - start for start, end in by_phases.phases) / len(by_phases.phases)
    if busy > (1.0 - limits.QUARTER) * by_phases.seconds and by_phases.alike:
        clear = chance <= limits.NEGLIGIBLE_CHANCE
        return _divide_chance(by_phases, limits.LOOP_FACTOR) if clear else by_phases
    least = min(chance, by_phases.false_alarm_probability)
    return replace(by_phases, false_alarm_probability=least)


def _for_spectrum(signal: Signal, suggested: Period | None) -> Signal:
    """The signal, as coarse as the spectrum may see it where phases suggest a period.

    The spectrum is what costs most; a period and its multiples need no finer samples.
    """
    if suggested is None or _least_chance(suggested) > limits.MAX_SUGGESTIVE_CHANCE:
        return signal
    per_period = suggested.seconds / signal.interval
    return average_blocks(signal, max(1, int(per_period / SAMPLES_PER_PERIOD)))


def _least_chance(period: Period) -> float:
    """The lower of both chances: equal phases indicate a loop in the program."""
    return min(period.false_alarm_probability, period.chance_of_random_bursts)


def _clear_period(signal: Signal) -> Period | None:
    """The period of the spectrum, unless it explains next to nothing of the signal.

    What is much shorter than the period, such as single requests at random times, has no say in
    that: the share is that of means over a part of the period.
    """
    period = harmonic.find_period(signal)
    if period is None or period.confidence >= limits.MIN_SPECTRUM_SHARE:
        return period
    block = int(period.seconds / signal.interval / limits.PARTS_OF_PERIOD)
    if block < 2 or period.false_alarm_probability > limits.MAX_SUGGESTIVE_CHANCE:
        return None
    coarse = harmonic.find_period(average_blocks(signal, block))
    if (
        coarse is None
        or coarse.confidence < limits.MIN_SPECTRUM_SHARE
        or not period.is_near(coarse, tolerance=limits.SAME)
    ):
        return None
    chance = min(coarse.false_alarm_probability, period.false_alarm_probability)
    return replace(coarse, false_alarm_probability=min(1.0, 2.0 * chance))


def _divide_chance(period: Period, weight: float) -> Period:
    probability = min(1.0, period.false_alarm_probability / weight)
    return replace(period, false_alarm_probability=probability)


PAPER_METHODS = ("dft", "hybrid")
PAPER_SAMPLES = 2**9  # the fewest that the methods of the paper choose
# Phases speak for a loop in the program, even where a process without a clock may well
# give as even distances. If bursts at random times hardly do, the answer is given, as "maybe"
# and with its true false-alarm probability; of many equal phases, up to LOOP_FACTOR times it.


@dataclass(frozen=True, slots=True)
class Options:
    """How to look for a period."""

    method: str = "auto"
    max_false_alarm: float = limits.LEVEL  # answers that chance gives more often are withheld
    outliers: str = "zscore"  # dft only: what stands out of the spectrum
    tolerance: float = limits.TOLERANCE  # dft only: share of the highest score
    wavelet: str = "haar"  # hybrid only: the mother wavelet
    level: int | None = None  # hybrid only: of the decomposition; chosen if None
    maybe: bool = True  # whether strongly jittering loops are answered with "maybe"
    confirm: bool = True  # whether a few phases within a longer job must be phases of it
    resample: bool = True  # whether the paper's methods may take coarser samples than given

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UsageError(f"no method {self.method!r}; there are {', '.join(METHODS)}.")
        if not 0.0 < self.max_false_alarm <= 1.0:
            raise UsageError(
                f"a false-alarm probability of {self.max_false_alarm} makes no sense: "
                "it must be between 0 and 1."
            )


METHODS: Mapping[str, Callable[[Signal, Options], Period | None]] = {
    "auto": lambda signal, _: find_by_phases_or_spectrum(signal),
    "phases": lambda signal, _: phase_starts.find_period(signal),
    "harmonic": lambda signal, _: harmonic.find_period(signal),
    "dft": lambda signal, options: dft.find_period(
        signal, outliers=options.outliers, tolerance=options.tolerance
    ),
    "autocorrelation": lambda signal, _: harmonic.find_by_autocorrelation(signal),
    "stft": lambda signal, _: time_frequency.find_in_windows(signal),
    "wavelet": lambda signal, _: time_frequency.find_by_wavelet(signal),
    "hybrid": lambda signal, options: time_frequency.find_hybrid_period(
        signal, wavelet=options.wavelet, level=options.level
    ),
}
DEFAULTS = Options()


def period_of_arrays(
    time: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    frequency: float | None = None,
    max_samples: int = MAX_SAMPLES,
    start: float | None = None,
    end: float | None = None,
    **options: Any,  # noqa: ANN401 - as `Options` has them
) -> Period | None:
    """Find the period of a quantity over time; see `ioprism.period`."""
    chosen = Options(**options, resample=frequency is None)
    steps = step_function(time, values)
    signal = sample(steps, frequency=frequency, max_samples=max_samples, start=start, end=end)
    return only_periodic(detect(signal, options=chosen))


def detect(signal: Signal, *, options: Options = DEFAULTS) -> Period | None:
    """Find the period of a signal, or None if chance explains it too well.

    The period of slotted phases is that of their slots: see `Period.pattern`.

    Raises:
        SignalTooShortError: there are fewer than ``MIN_SAMPLES`` samples.
    """
    if len(signal.values) < MIN_SAMPLES:
        raise SignalTooShortError(found=len(signal.values), needed=MIN_SAMPLES)
    period = accept_period(signal, _search(signal, options), options)
    if period is None:
        return None
    return _of_main_bursts(signal, with_shares(signal, period), options)


def _of_main_bursts(signal: Signal, period: Period, options: Options) -> Period:
    """The period of what moves most bytes, where the one found explains few of them.

    It is one more question, so that each of both may use half of the false-alarm level.
    """
    if options.method not in ("auto", "phases") or (period.bytes_share or 0.0) >= 0.5:
        return period
    if is_coarse(signal):
        return period
    # All samples are set to zero but those that move nearly all bytes.
    descending = np.sort(signal.values)[::-1]
    volume = np.cumsum(descending)
    least = descending[int(np.searchsorted(volume, limits.NEARLY_ALL_BYTES * volume[-1]))]
    values = np.where(signal.values < least, 0.0, signal.values)
    loud = Signal(signal.start, signal.interval, values)
    strict = replace(options, method="phases", max_false_alarm=options.max_false_alarm / 2)
    other = accept_period(loud, METHODS["phases"](loud, strict), replace(strict, maybe=False))
    if other is None:
        return period
    other = with_shares(signal, other)
    return max(period, other, key=lambda one: (one.bytes_share or 0.0) * (one.time_share or 0.0))


def accept_period(signal: Signal, period: Period | None, options: Options) -> Period | None:
    """What was found, with how certain it is; None if that is not enough."""
    if period is None or period.repetitions < limits.FEWEST_REPETITIONS or not period.valid_ranges:
        return None
    chance, level = period.false_alarm_probability, options.max_false_alarm
    if chance > level and not (options.maybe and _is_loop(period, level)):
        return None
    if options.confirm:
        period = replace(period, confirmed=counting.count_confirming_phases(signal, period))
        if counting.needs_confirmation(signal, period) and not counting.is_confirmed(period):
            return None
    period = replace(period, pattern=counting.pattern_of(signal, period))
    folded = is_coarse(signal)  # then a period of less than two samples may look like this one
    unsure = chance > level or period.repetitions < limits.MIN_SURE_REPETITIONS or folded
    return period.as_maybe() if unsure else period


def _search(signal: Signal, options: Options) -> Period | None:
    """What the method finds; the paper's ones at the coarsest sampling that shows a period.

    They were made for a few samples per second: of many more, multiples of the frequency and
    noise get most of the power. Every sampling tried counts as one more test.
    """
    search = METHODS[options.method]
    if not (options.resample and options.method in PAPER_METHODS):
        return search(signal, options)
    tried = list(coarser_signals(signal, fewest=PAPER_SAMPLES))
    for one in reversed(tried):
        period = search(one, options)
        if period is not None:
            chance = len(tried) * period.false_alarm_probability
            if chance <= options.max_false_alarm:
                return replace(period, false_alarm_probability=chance)
    return None


def _is_loop(period: Period, level: float) -> bool:
    """Whether phases speak for a loop in the program, equal ones more than others."""
    factor = (
        limits.LOOP_FACTOR
        if period.alike and period.repetitions >= limits.MANY_REPETITIONS
        else 1.0
    )
    even = period.spread <= limits.MAX_LOOP_VARIATION * period.seconds
    return even and period.chance_of_random_bursts <= factor * level
