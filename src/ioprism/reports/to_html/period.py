"""The page of `ioprism period`: the figures behind the answer, on one time axis."""

from __future__ import annotations

import base64
from dataclasses import asdict
from typing import Any

import numpy as np

from ioprism.analyses.periodicity.detect import Options
from ioprism.analyses.periodicity.results import Rhythm
from ioprism.analyses.periodicity.spectral import hybrid
from ioprism.analyses.periodicity.spectral.spectrum import power_spectrum
from ioprism.analyses.periodicity.spectral.wavelet import scalogram
from ioprism.model.signal import FloatArray, Signal
from ioprism.model.trace import Trace
from ioprism.pipeline.period import RhythmSettings
from ioprism.reports.to_html.page import asset, short
from ioprism.reports.to_html.page import page as frame
from ioprism.reports.to_json.period import period_body

POINTS = 8192  # of a curve; more than a wide screen shows at once
LINES = 4096  # of a spectrum


def page(found: Rhythm, trace: Trace, settings: RhythmSettings) -> str:
    """Return the page."""
    return frame(
        title="The rhythm of a job's I/O",
        body=asset("period.html"),
        styles=("plots.css",),
        scripts=("charts.js", "plots.js", "period.js"),
        data=_data(found, trace, settings),
    )


def _data(found: Rhythm, trace: Trace, settings: RhythmSettings) -> dict[str, Any]:
    signal = found.signal
    return {
        "source": [path.name for path in trace.paths],
        "warnings": list(trace.completeness.warnings),
        "direction": settings.direction,
        "signal": curve(signal),
        "period": period_body(found.period),
        "candidates": [asdict(candidate) for candidate in found.candidates],
        "waves": [asdict(wave) for wave in (found.fit or found).components],
        "fit": None
        if found.fit is None
        else {"before": short(found.fit.mse_before), "after": short(found.fit.mse_after)},
        "burst": None if found.burst is None else asdict(found.burst),
        "next": None if found.next_phase is None else asdict(found.next_phase),
        "spectrum": spectrum(signal),
        "scalogram": picture_of_periods(signal),
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


def picture_of_periods(signal: Signal) -> dict[str, Any] | None:
    """Return which period is strong when, or None for too short a signal."""
    picture = scalogram(signal)
    if not picture.power.size:
        return None
    return {
        "periods": [short(value) for value in picture.periods.tolist()],
        "columns": len(picture.times),
        "start": signal.start,
        "end": signal.end,
        "power": _as_bytes(picture.power),
    }


def _as_bytes(power: FloatArray) -> str:
    highest = float(power.max()) or 1.0
    levels = np.rint(np.sqrt(power / highest) * 255).astype(np.uint8)
    return base64.b64encode(levels.tobytes()).decode("ascii")


def _hybrid(signal: Signal, options: Options) -> dict[str, Any] | None:
    found = hybrid.analyse(signal, wavelet=options.wavelet, level=options.level)
    if found is None:
        return None
    correlation = Signal(signal.start, signal.interval, found.correlation())
    return {
        "level": found.level,
        "frequency": found.frequency,
        "amplitude": found.amplitude,
        "phase": found.phase,
        "approximation": curve(found.approximation),
        "correlation": curve(correlation),
        "ranges": [list(pair) for pair in found.valid_ranges],
    }
