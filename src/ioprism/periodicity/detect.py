"""Find the rhythm of a signal with the method asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy.typing as npt

from ioprism.errors import SignalTooShortError, UsageError
from ioprism.model.signal import Signal
from ioprism.periodicity import auto
from ioprism.periodicity.main_bursts import FEW_BYTES, explained, loudest_samples
from ioprism.periodicity.onsets import phase_starts
from ioprism.periodicity.onsets.confirmation import (
    confirming_phases,
    is_confirmed,
    needs_confirmation,
)
from ioprism.periodicity.onsets.scales import coarser_signals
from ioprism.periodicity.onsets.slots import pattern_of
from ioprism.periodicity.results import Period
from ioprism.periodicity.sampling import (
    MAX_SAMPLES,
    MIN_SAMPLES,
    sample,
    step_function,
)
from ioprism.periodicity.spectral import dft, harmonic

MethodName = Literal[
    "auto", "phases", "harmonic", "dft", "autocorrelation", "stft", "wavelet", "hybrid"
]

MIN_REPETITIONS = 2
PAPER_METHODS = ("dft", "hybrid")
PAPER_SAMPLES = 2**9  # the fewest that they get by themselves
UNSURE = 0.5  # the most confidence in what is only possible
SURE_REPETITIONS = 3  # fewer are answered with "maybe"
MIN_CONFIDENCE = 0.1
# Phases speak for a loop in the program, even where a process without a clock may well
# give as even distances. If bursts at random times hardly do, the answer is given, as "maybe"
# and with its true false-alarm probability; of many equal phases, up to so many times the level.
LOOP = 12.0
LOOP_REPETITIONS = 7
LOOP_VARIATION = 0.55  # of the distances; beyond, the mean distance says nothing of the next


@dataclass(frozen=True, slots=True)
class Options:
    """How to look for a rhythm."""

    method: str = "auto"
    max_false_alarm: float = 0.01  # answers that chance gives more often are withheld
    outliers: str = "zscore"  # dft only: what stands out of the spectrum
    tolerance: float = dft.TOLERANCE  # dft only: share of the highest score
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


# Methods that are seldom asked for are loaded when they are.


def _by_autocorrelation(signal: Signal, _: Options) -> Period | None:
    from ioprism.periodicity.spectral import autocorrelation

    return autocorrelation.find_period(signal)


def _by_stft(signal: Signal, _: Options) -> Period | None:
    from ioprism.periodicity.spectral import stft

    return stft.find_period(signal)


def _by_wavelet(signal: Signal, _: Options) -> Period | None:
    from ioprism.periodicity.spectral import wavelet

    return wavelet.find_period(signal)


def _by_hybrid(signal: Signal, options: Options) -> Period | None:
    from ioprism.periodicity.spectral import hybrid

    return hybrid.find_period(signal, wavelet=options.wavelet, level=options.level)


METHODS: Mapping[str, Callable[[Signal, Options], Period | None]] = {
    "auto": lambda signal, _: auto.find_period(signal),
    "phases": lambda signal, _: phase_starts.find_period(signal),
    "harmonic": lambda signal, _: harmonic.find_period(signal),
    "dft": lambda signal, options: dft.find_period(
        signal, outliers=options.outliers, tolerance=options.tolerance
    ),
    "autocorrelation": _by_autocorrelation,
    "stft": _by_stft,
    "wavelet": _by_wavelet,
    "hybrid": _by_hybrid,
}
DEFAULTS = Options()


def period(
    time: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    method: MethodName = "auto",
    frequency: float | None = None,
    max_samples: int = MAX_SAMPLES,
    start: float | None = None,
    end: float | None = None,
    max_false_alarm: float = DEFAULTS.max_false_alarm,
    outliers: str = DEFAULTS.outliers,
    tolerance: float = DEFAULTS.tolerance,
    wavelet: str = DEFAULTS.wavelet,
    level: int | None = DEFAULTS.level,
) -> Period | None:
    """Find the period of a quantity over time, given as plain arrays.

    ``values[i]`` holds from ``time[i]`` to ``time[i + 1]``.

    >>> time = [0, 2, 10, 12, 20, 22, 30, 32, 40, 42, 50, 52, 60, 62, 70, 72]
    >>> round(period(time, [5e8, 0] * 8).seconds, 1)
    10.0

    Args:
        time: when each value begins, in ascending seconds.
        values: bandwidth in bytes per second, or any other metric.
        method: one of ``METHODS``.
        frequency: samples per second; chosen from the signal if None.
        max_samples: the most samples to choose by itself.
        start: where to begin, in seconds.
        end: where to stop, in seconds.
        max_false_alarm: answers that chance gives more often than this are withheld.
        outliers: for method ``dft``, what stands out: one of ``OUTLIERS``.
        tolerance: for method ``dft``, the share of the highest score that a candidate needs.
        wavelet: for method ``hybrid``, the mother wavelet.
        level: for method ``hybrid``, the level of the decomposition; chosen if None.

    Returns:
        The period, or None if nothing is periodic at the asked level.
    """
    options = Options(
        method, max_false_alarm, outliers, tolerance, wavelet, level, resample=frequency is None
    )
    signal = sample(
        step_function(time, values),
        frequency=frequency,
        max_samples=max_samples,
        start=start,
        end=end,
    )
    found = detect(signal, options=options)
    return None if found is None or found.pattern == "slotted" else found


def detect(signal: Signal, *, options: Options = DEFAULTS) -> Period | None:
    """Find the period of a signal, or None if chance explains it too well.

    The period of slotted phases is that of their slots: see `Period.pattern`.

    Raises:
        SignalTooShortError: there are fewer than ``MIN_SAMPLES`` samples.
    """
    if len(signal.values) < MIN_SAMPLES:
        raise SignalTooShortError(found=len(signal.values), needed=MIN_SAMPLES)
    found = accepted(signal, _found(signal, options), options)
    return found if found is None else _of_main_bursts(signal, explained(signal, found), options)


def _of_main_bursts(signal: Signal, found: Period, options: Options) -> Period:
    """The period of what moves most bytes, where the one found explains few of them.

    It is one more question, so that each of both may use half of the false-alarm level.
    """
    if options.method not in ("auto", "phases") or (found.bytes_share or 0.0) >= FEW_BYTES:
        return found
    loud = loudest_samples(signal)
    strict = replace(options, method="phases", max_false_alarm=options.max_false_alarm / 2)
    other = accepted(loud, METHODS["phases"](loud, strict), replace(strict, maybe=False))
    if other is None:
        return found
    other = explained(signal, other)
    return max(found, other, key=lambda one: (one.bytes_share or 0.0) * (one.time_share or 0.0))


def accepted(signal: Signal, found: Period | None, options: Options) -> Period | None:
    """What was found, with how certain it is; None if that is not enough."""
    if found is None or found.repetitions < MIN_REPETITIONS or not found.valid_ranges:
        return None
    if found.confidence < MIN_CONFIDENCE:
        return None
    chance, level = found.false_alarm_probability, options.max_false_alarm
    if chance > level and not (options.maybe and _loops(found, level)):
        return None
    if options.confirm:
        found = replace(found, confirmed=confirming_phases(signal, found))
        if needs_confirmation(signal, found) and not is_confirmed(found):
            return None
    found = replace(found, pattern=pattern_of(signal, found))
    unsure = chance > level or found.repetitions < SURE_REPETITIONS
    if not unsure:
        return found
    return replace(found, certainty="maybe", confidence=min(found.confidence, UNSURE))


def _found(signal: Signal, options: Options) -> Period | None:
    """What the method finds; the paper's ones at the coarsest sampling that shows a rhythm.

    They were made for a few samples per second: of many more, multiples of the frequency and
    noise get most of the power. Every sampling tried is a question of its own.
    """
    search = METHODS[options.method]
    if not (options.resample and options.method in PAPER_METHODS):
        return search(signal, options)
    tried = list(coarser_signals(signal, fewest=PAPER_SAMPLES))
    found = [search(one, options) for one in reversed(tried)]
    return next(
        (
            replace(period, false_alarm_probability=len(tried) * period.false_alarm_probability)
            for period in found
            if period is not None
            and len(tried) * period.false_alarm_probability <= options.max_false_alarm
        ),
        None,
    )


def _loops(found: Period, level: float) -> bool:
    """Whether phases speak for a loop in the program, equal ones more than others."""
    factor = LOOP if found.alike and found.repetitions >= LOOP_REPETITIONS else 1.0
    even = found.spread <= LOOP_VARIATION * found.seconds
    return even and found.chance_of_random_bursts <= factor * level
