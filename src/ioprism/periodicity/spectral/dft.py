"""Which frequency dominates the power spectrum, by the rules of the FTIO paper?

One candidate is the dominant frequency; of two, the stronger is; more mean that the signal
is not periodic. The confidence is the paper's: how much of the scores of all bins that
stand out, and of all candidates, belongs to the dominant one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ioprism.errors import UsageError
from ioprism.model.signal import FloatArray, Signal
from ioprism.periodicity.results import Candidate, Period
from ioprism.periodicity.spectral import harmonic
from ioprism.periodicity.spectral.outliers import OUTLIERS, STANDS_OUT, z_scores
from ioprism.periodicity.spectral.spectrum import periodogram, power_spectrum

TOLERANCE = 0.8  # Eq. 3 of the paper
MOST_CANDIDATES = 2
FIRST_REPEATING = 2  # bin; the first bin's period is the whole signal, no repetition


def find_period(
    signal: Signal, *, outliers: str = "zscore", tolerance: float = TOLERANCE
) -> Period | None:
    """Return the dominant frequency, or None if there is none by the paper's rules."""
    found = fundamental(
        signal, dominant(candidates(signal, outliers=outliers, tolerance=tolerance))
    )
    spectrum = periodogram(signal)
    if found is None or spectrum is None:
        return None
    if found.frequency * (signal.end - signal.start) < FIRST_REPEATING - 0.5:
        return None
    peak = replace(harmonic.at_frequency(spectrum, found.frequency), frequency=found.frequency)
    return harmonic.describe(signal, spectrum, peak, method="dft", confidence=found.confidence)


def candidates(
    signal: Signal, *, outliers: str = "zscore", tolerance: float = TOLERANCE
) -> tuple[Candidate, ...]:
    """Return the frequencies that stand out, harmonics left out, the strongest first."""
    return stand_out(*power_spectrum(signal), outliers=outliers, tolerance=tolerance)


def stand_out(
    frequencies: FloatArray,
    shares: FloatArray,
    *,
    outliers: str = "zscore",
    tolerance: float = TOLERANCE,
) -> tuple[Candidate, ...]:
    """Apply the paper's rules to a spectrum: evenly spaced frequencies from the first bin on."""
    if outliers not in OUTLIERS:
        raise UsageError(f"no outlier method {outliers!r}; there are {', '.join(OUTLIERS)}.")
    if not 0.0 < tolerance <= 1.0:
        raise UsageError(f"a tolerance of {tolerance} makes no sense: it must be between 0 and 1.")
    if not shares.any():
        return ()
    bins = np.flatnonzero(OUTLIERS[outliers](frequencies, shares, tolerance))
    kept = _without_harmonics(bins.tolist())
    dropped = sorted(set(bins.tolist()) - set(kept))
    confidence = _confidence(z_scores(shares), dropped=dropped, tolerance=tolerance)
    found = [
        Candidate(
            float(frequencies[i]),
            float(shares[i]),
            float(z_scores(shares)[i]),
            float(confidence[i]),
        )
        for i in kept
    ]
    return tuple(sorted(found, key=lambda candidate: -candidate.power_share))


def dominant(found: Sequence[Candidate]) -> Candidate | None:
    """The strongest of one or two candidates; None of none or more."""
    return found[0] if 1 <= len(found) <= MOST_CANDIDATES else None


def fundamental(signal: Signal, found: Candidate | None) -> Candidate | None:
    """The frequency of which a candidate is twice the one, if that stands out, too.

    Two bursts in every phase make the second multiple the strongest. It is a harmonic of a
    frequency that stands out, and those are ignored, even if the strongest is one.
    """
    if found is None:
        return None
    frequencies, shares = power_spectrum(signal)
    scores, strongest = z_scores(shares), round(found.frequency / float(frequencies[0])) - 1
    half = (strongest + 1) / 2 - 1
    near = np.arange(max(FIRST_REPEATING - 1, math.floor(half)), math.ceil(half) + 1)
    lower = int(near[np.argmax(shares[near])]) if len(near) else strongest
    if lower < strongest and scores[lower] >= STANDS_OUT:
        return replace(
            found,
            frequency=float(frequencies[lower]),
            power_share=float(shares[lower]),
            score=float(scores[lower]),
        )
    return found


def _without_harmonics(bins: Sequence[int]) -> list[int]:
    """Leave out multiples of two of a lower candidate: they only say that I/O is bursty."""
    kept: list[int] = []
    for i in bins:
        # Entry 0 is bin 1: the mean is not part of the spectrum.
        if not any((i + 1) % (2 * (lower + 1)) == 0 for lower in kept):
            kept.append(i)
    return kept


def _confidence(scores: FloatArray, *, dropped: Sequence[int], tolerance: float) -> FloatArray:
    counted = scores.copy()
    counted[list(dropped)] = 0.0
    highest = float(scores.max(initial=0.0))
    if highest <= 0.0:
        return np.zeros_like(scores)
    close = counted[counted >= tolerance * highest].sum()
    outstanding = counted[counted >= STANDS_OUT].sum()
    parts = [scores / total for total in (close, outstanding) if total > 0.0]
    return np.clip(np.sum(parts, axis=0) / 2, 0.0, 1.0) if parts else np.zeros_like(scores)
