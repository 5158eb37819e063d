"""The page of `ioprism period`: the figures behind the answer, on one time axis."""

from __future__ import annotations

import base64
from dataclasses import asdict
from typing import Any

import numpy as np

from ioprism.analyses.periodicity.detect import Options
from ioprism.analyses.periodicity.results import Period, Rhythm
from ioprism.analyses.periodicity.spectral import hybrid
from ioprism.analyses.periodicity.spectral.spectrum import power_spectrum
from ioprism.analyses.periodicity.spectral.stft import spectrogram
from ioprism.analyses.periodicity.spectral.wavelet import Scalogram, scalogram
from ioprism.model.signal import FloatArray, Signal
from ioprism.model.trace import Trace
from ioprism.pipeline.period import RhythmSettings
from ioprism.reports.to_html.page import asset, short
from ioprism.reports.to_html.page import page as frame

POINTS = 8192  # of a curve; more than a wide screen shows at once
LINES = 4096  # of a spectrum
MOST_PHASES = 2000  # more cannot be told apart
WINDOW = 4.0  # periods in a window of the spectrogram
FAIR_SHARE = 0.1  # of the strongest period's power
OCTAVES = 2.0  # around the answer


def page(rhythm: Rhythm, trace: Trace, settings: RhythmSettings) -> str:
    """Return the page."""
    return frame(
        title="The rhythm of a job's I/O",
        body=asset("period.html"),
        styles=("plots.css",),
        scripts=("charts.js", "plots.js", "period.js"),
        data=_data(rhythm, trace, settings),
    )


def _data(rhythm: Rhythm, trace: Trace, settings: RhythmSettings) -> dict[str, Any]:
    signal = rhythm.signal
    return {
        "source": [path.name for path in trace.paths],
        "warnings": list(trace.completeness.warnings),
        "direction": settings.direction,
        "signal": curve(signal),
        "period": None if rhythm.period is None else rhythm.period.to_dict(),
        "candidates": [asdict(candidate) for candidate in rhythm.candidates],
        "waves": [asdict(wave) for wave in (rhythm.fit or rhythm).components],
        "fit": None
        if rhythm.fit is None
        else {"before": short(rhythm.fit.mse_before), "after": short(rhythm.fit.mse_after)},
        "burst": None if rhythm.burst is None else asdict(rhythm.burst),
        "next": None if rhythm.next_phase is None else asdict(rhythm.next_phase),
        "rhythms": [one.to_dict() for one in rhythm.rhythms],
        "turns": rhythm.takes_turns,
        "phases": [] if rhythm.period is None else list(rhythm.period.phases[:MOST_PHASES]),
        "spectrum": spectrum(signal),
        "scalogram": picture_of_periods(scalogram(signal), signal, rhythm.period),
        "spectrogram": picture_of_periods(
            _spectrogram(signal, rhythm.period), signal, rhythm.period
        ),
        "hybrid": _hybrid(signal, settings.options),
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
    kept = _rows_that_matter(picture, period)
    return {
        "periods": [short(value) for value in picture.periods[kept].tolist()],
        "columns": len(picture.times),
        "start": signal.start,
        "end": signal.end,
        "power": _as_bytes(picture.power[kept]),
    }


def _spectrogram(signal: Signal, period: Period | None) -> Scalogram:
    span = signal.end - signal.start
    return spectrogram(signal, window=WINDOW * period.seconds if period else span / WINDOW)


def _rows_that_matter(picture: Scalogram, period: Period | None) -> slice:
    """The periods around the answer, and all that have a fair share of the power."""
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
    detected = hybrid.analyse(signal, wavelet=options.wavelet, level=options.level)
    if detected is None:
        return None
    correlation = Signal(signal.start, signal.interval, detected.correlation())
    return {
        "level": detected.level,
        "frequency": detected.frequency,
        "amplitude": detected.amplitude,
        "phase": detected.phase,
        "approximation": curve(detected.approximation),
        "correlation": curve(correlation),
        "ranges": [list(pair) for pair in detected.valid_ranges],
    }
