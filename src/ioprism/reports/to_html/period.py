"""The page of `ioprism period`: the figures behind the answer, on one time axis."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ioprism.model.arrays import FloatArray, Signal
from ioprism.model.result import pick
from ioprism.model.trace import Trace
from ioprism.periodicity.describe import components, fit_waves
from ioprism.periodicity.detect import Options
from ioprism.periodicity.harmonic import autocorrelation
from ioprism.periodicity.of_job import JobPeriodicity, PeriodSettings
from ioprism.periodicity.results import Period, Periodicity
from ioprism.periodicity.sampling import sample
from ioprism.periodicity.segments import average_blocks
from ioprism.periodicity.spectrum import power_spectrum
from ioprism.periodicity.time_frequency import (
    Scalogram,
    analyse_hybrid,
    approximate,
    highest_level,
    scalogram,
    spectrogram,
)
from ioprism.reports.to_html.page import shell_page, short

COUNTS = (2, 3, 5, 10)  # waves in a sum, as in the paper's figures
FITTED_SAMPLES = 2048  # for the page; more would take seconds
LEVELS = 5  # of the wavelet transform that are drawn
LEVEL_POINTS = 2048
POINTS = 8192  # of a curve; more than a wide screen shows
LINES = 4096  # of a spectrum
MOST_PHASES = 2000  # more cannot be distinguished
WINDOW = 4.0  # periods in a window of the spectrogram
AHEAD_SHARE = 0.15  # of the signal's length: how far ahead predicted phases are drawn
FAIR_SHARE = 0.1  # of the strongest period's power
OCTAVES = 2.0  # around the answer


def page(
    job: JobPeriodicity, trace: Trace, settings: PeriodSettings, others: Sequence[Periodicity] = ()
) -> str:
    """Return the page: the answer, and the directions that it is not about."""
    data = _data(job, trace, settings, others)
    return shell_page("period", title="The period of a job's I/O", data=data)


def _data(
    job: JobPeriodicity, trace: Trace, settings: PeriodSettings, others: Sequence[Periodicity]
) -> dict[str, Any]:
    moving = [one for one in others if one.signal.values.any()]
    return {
        "source": [path.name for path in trace.paths],
        "warnings": list(trace.completeness.warnings),
        "metric": settings.metric,
        "views": [_view(one, settings) for one in (job.whole, *moving)],
        "periods": [one.to_dict() for one in job.whole.periods],
        "asynchronous": [
            {
                **one.to_dict(),
                "b": curve(sample(one.required, max_samples=POINTS)),
                "t": curve(sample(one.measured, max_samples=POINTS)),
            }
            for one in job.asynchronous
        ],
    }


def _view(periodicity: Periodicity, settings: PeriodSettings) -> dict[str, Any]:
    """All figures of one signal: of reads, of writes or of both."""
    signal, period = periodicity.signal, periodicity.period
    window = WINDOW * period.seconds if period else (signal.end - signal.start) / WINDOW
    return {
        "direction": periodicity.direction,
        "verdict": periodicity.summary(),
        "signal": curve(signal),
        "period": None if period is None else period.to_dict(),
        "candidates": [asdict(candidate) for candidate in periodicity.candidates],
        "waves": _waves(signal, settings.components),
        "fit": _fit(periodicity),
        "burst": None if periodicity.burst is None else asdict(periodicity.burst),
        "ahead": _ahead(periodicity),
        "phases": [] if period is None else list(period.phases[:MOST_PHASES]),
        "spectrum": spectrum(signal),
        "autocorrelation": _autocorrelation(signal),
        "scalogram": picture_of_periods(scalogram(signal), signal, period),
        "spectrogram": picture_of_periods(spectrogram(signal, window=window), signal, period),
        "levels": _levels(signal, settings.options, period),
        "hybrid": _hybrid(signal, settings.options),
    }


def _waves(signal: Signal, asked: int) -> dict[str, Any]:
    """The mean and the strongest waves of the spectrum; the sum of n is that of the first n + 1.

    `explained` is the share of the variance that each number of waves accounts for.
    """
    counts = sorted({*COUNTS, asked} - {0})
    waves = components(signal, count=counts[-1])
    shares = np.cumsum(np.sort(power_spectrum(signal)[1])[::-1])
    explained = [short(float(shares[min(n, len(shares)) - 1])) if len(shares) else 0.0
                 for n in counts]  # fmt: skip
    return {"counts": counts, "waves": [asdict(wave) for wave in waves], "explained": explained}


def _fit(periodicity: Periodicity) -> dict[str, Any]:
    """The fitted waves; where none were asked for, ten are fitted to a coarser signal."""
    signal = periodicity.signal
    coarse = average_blocks(signal, -(-len(signal.values) // FITTED_SAMPLES))
    fitted = periodicity.fit or fit_waves(coarse, count=COUNTS[-1])
    variance = float((coarse if periodicity.fit is None else signal).values.var())
    before, after = (
        short(1.0 - mse / variance) if variance > 0 else 0.0
        for mse in (fitted.mse_before, fitted.mse_after)
    )
    waves = [asdict(wave) for wave in fitted.components]
    return {"explained_before": before, "explained": after, "waves": waves}


def _ahead(periodicity: Periodicity) -> list[tuple[float, float, float]]:
    """Start, end and bytes of the predicted phases that fit on a slightly longer time axis."""
    upcoming, period, signal = periodicity.next_phase, periodicity.period, periodicity.signal
    if upcoming is None:
        return []
    phases = [(upcoming.start, upcoming.end, upcoming.bytes)]
    limit = signal.end + AHEAD_SHARE * (signal.end - signal.start)
    while period is not None and phases[-1][1] + period.seconds <= limit:
        start, end, moved = phases[-1]
        phases.append((start + period.seconds, end + period.seconds, moved))
    return phases


def _autocorrelation(signal: Signal) -> dict[str, Any] | None:
    """The correlation of the signal with itself, by lag in seconds."""
    if not signal.values.std() > 0.0:
        return None
    return _extremes(Signal(0.0, signal.interval, autocorrelation(signal)))


def _levels(signal: Signal, options: Options, period: Period | None) -> list[dict[str, Any]]:
    """What each level of the discrete wavelet transform holds, around the period found."""
    most = highest_level(len(signal.values))
    periods = (signal.end - signal.start) / LEVELS if period is None else period.seconds
    middle = max(1, int(np.log2(periods / signal.interval)))  # the level that holds the period
    first = max(1, min(middle + 1, most) - LEVELS + 1)
    chosen = range(first, min(most, first + LEVELS - 1) + 1)
    before = approximate(signal, wavelet=options.wavelet, level=first - 1)
    levels = []
    for level in chosen:
        smooth = approximate(signal, wavelet=options.wavelet, level=level)
        details = Signal(signal.start, signal.interval, before.values - smooth.values)
        shortest = 2.0**level * signal.interval
        levels.append({"level": level, "shortest": shortest, "longest": 2.0 * shortest,
                       "details": _extremes(details)})  # fmt: skip
        before = smooth
    if levels:
        levels.append({"level": chosen[-1], "details": None, "approximation": _extremes(before)})
    return levels


def _extremes(signal: Signal) -> dict[str, Any]:
    """Return a signal in a few points, each the one furthest from zero of its stretch."""
    block = max(1, -(-len(signal.values) // LEVEL_POINTS))
    whole = np.pad(signal.values, (0, -len(signal.values) % block), mode="edge").reshape(-1, block)
    places = np.abs(whole).argmax(axis=1)
    values = whole[np.arange(len(whole)), places]
    return {
        "start": signal.start,
        "step": signal.interval * block,
        "values": [short(value) for value in values.tolist()],
    }


def curve(signal: Signal) -> dict[str, Any]:
    """Return a signal in at most `POINTS` points, each the highest of its stretch."""
    block = max(1, -(-len(signal.values) // POINTS))
    starts = np.arange(0, len(signal.values), block)
    highest = np.maximum.reduceat(signal.values, starts)
    return {
        "start": signal.start,
        "step": signal.interval * block,
        "values": [short(value) for value in highest.tolist()],
        "end": signal.end,
        "mean": float(signal.values.mean()),
    }


def spectrum(signal: Signal) -> dict[str, Any]:
    """Return the share of the signal's variance at each frequency."""
    frequencies, shares = power_spectrum(signal)
    kept = slice(0, LINES)
    return {
        "frequency": [short(value) for value in frequencies[kept].tolist()],
        "share": [short(value) for value in shares[kept].tolist()],
    }


def picture_of_periods(
    picture: Scalogram, signal: Signal, period: Period | None
) -> dict[str, Any] | None:
    """Return which period is strong when, or None for too short a signal."""
    if not picture.power.size:
        return None
    kept = rows_that_matter(picture, period)
    return {
        "periods": [short(value) for value in picture.periods[kept].tolist()],
        "columns": len(picture.times),
        "start": signal.start,
        "end": signal.end,
        "power": _as_bytes(picture.power[kept]),
    }


def rows_that_matter(picture: Scalogram, period: Period | None) -> slice:
    """Return the periods around the answer, and all that have a fair share of the power."""
    power = picture.power.sum(axis=1)
    strong = np.flatnonzero(power >= FAIR_SHARE * power.max())
    low, high = int(strong.min()), int(strong.max())
    if period is not None:
        around = np.flatnonzero(np.abs(np.log2(picture.periods / period.seconds)) <= OCTAVES)
        if len(around):
            low, high = min(low, int(around.min())), max(int(around.max()), int(around.min()))
            low = max(low, int(around.min()) - int(OCTAVES * 6))
    return slice(low, high + 1)


def _as_bytes(power: FloatArray) -> str:
    highest = float(power.max()) or 1.0
    levels = np.rint(np.sqrt(power / highest) * 255).astype(np.uint8)
    return base64.b64encode(levels.tobytes()).decode("ascii")


def _hybrid(signal: Signal, options: Options) -> dict[str, Any] | None:
    detected = analyse_hybrid(signal, wavelet=options.wavelet, level=options.level)
    if detected is None:
        return None
    correlation = Signal(signal.start, signal.interval, detected.correlation())
    return {
        **pick(detected, "level", "frequency", "amplitude", "phase"),
        "approximation": curve(detected.approximation),
        "correlation": curve(correlation),
        "ranges": [list(pair) for pair in detected.valid_ranges],
    }
