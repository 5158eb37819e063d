"""Everything about the rhythm of one signal: its periods, its shape, its next phase."""

from __future__ import annotations

from dataclasses import replace

from ioprism.model.signal import Signal
from ioprism.periodicity.describe import (
    components as strongest_components,
)
from ioprism.periodicity.describe import describe_burst, predict_next_phase
from ioprism.periodicity.detect import DEFAULTS, Options, detect
from ioprism.periodicity.headline import SAME, is_minor
from ioprism.periodicity.main_bursts import explained
from ioprism.periodicity.results import Fit, NamedPeriod, Period, Rhythm
from ioprism.periodicity.several import other_periods
from ioprism.periodicity.spectral import dft
from ioprism.periodicity.spectral.spectrum import cosine_at


def rhythm(
    signal: Signal,
    *,
    options: Options = DEFAULTS,
    components: int = 0,
    fit: bool = False,
    direction: str = "both",
    found: Period | None = None,
) -> Rhythm:
    """Find the periods of a signal and describe the dominant one.

    Args:
        signal: the signal.
        options: how to look for the period.
        components: how many cosine waves to describe the signal by; 0 for none.
        fit: whether to fit them by least squares (ten if ``components`` is 0).
        direction: read, write or both: what the signal is.
        found: its dominant period, if it is known already.
    """
    found = detect(signal, options=options) if found is None else found
    slotted = found if found is not None and found.pattern == "slotted" else None
    found = None if slotted is not None else found
    every = () if found is None else (found, *_others(signal, found, options))
    waves = Rhythm(
        signal=signal,
        period=None,
        candidates=dft.candidates(signal, outliers=options.outliers, tolerance=options.tolerance),
        components=strongest_components(signal, count=components) if components else (),
        fit=_fit(signal, components) if fit else None,
        burst=None,
        next_phase=None,
        rhythms=tuple(NamedPeriod(period, direction) for period in every),
        direction=direction,
        slotted=slotted,
    )
    return waves if found is None or is_minor(found) else answered(waves, found)


def _others(signal: Signal, found: Period, options: Options) -> list[Period]:
    return [explained(signal, one) for one in other_periods(signal, found, options=options)]


def _fit(signal: Signal, count: int) -> Fit:
    from ioprism.periodicity.spectral.fit import FITTED, fit  # loaded when asked for

    return fit(signal, count=count or FITTED)


def answered(rhythm: Rhythm, period: Period) -> Rhythm:
    """The rhythm with this period as its answer, and what follows from it."""
    burst = describe_burst(rhythm.signal, period)
    expected = predict_next_phase(rhythm.signal, period, burst=burst)
    return replace(rhythm, period=period, burst=burst, next_phase=expected)


def take_turns(both: Period, read: Period, write: Period) -> bool:
    """Whether reads and writes alternate, so that all I/O together repeats twice as often."""
    return all(abs(2.0 * both.seconds / one.seconds - 1.0) <= SAME for one in (read, write))


def every_second(signal: Signal, period: Period) -> Period:
    """The rhythm of every second phase."""
    seconds, phases = 2.0 * period.seconds, period.phases[::2]
    amplitude, phase = cosine_at(signal, 1.0 / seconds)
    return replace(
        period,
        seconds=seconds,
        frequency=1.0 / seconds,
        amplitude=amplitude,
        phase=phase,
        repetitions=period.repetitions // 2,
        phases=phases,
        confirmed=None if period.confirmed is None else min(period.confirmed, len(phases)),
    )
