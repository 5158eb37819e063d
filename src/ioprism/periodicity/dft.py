"""Which frequency dominates the power spectrum, by the rules of the FTIO paper?

One candidate is the dominant frequency; of two, the stronger is; more mean that the signal
is not periodic. The confidence is the paper's: how much of the scores of all bins that
stand out, and of all candidates, belongs to the dominant one.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ioprism.errors import MissingPackageError, UsageError
from ioprism.model.arrays import TINY, FloatArray, Signal
from ioprism.periodicity import harmonic
from ioprism.periodicity.limits import FEWEST_REPETITIONS, TOLERANCE
from ioprism.periodicity.results import FrequencyCandidate, Period
from ioprism.periodicity.spectrum import periodogram, power_spectrum

Mask = npt.NDArray[np.bool_]
OutlierMethod = Callable[[FloatArray, FloatArray, float], Mask]

MIN_SCORE = 3.0  # standard deviations (Eq. 3 of the paper)
CONTAMINATION = 0.001  # share of bins expected to stand out, as in FTIO
NEIGHBOURS = 20


def z_scores(shares: FloatArray) -> FloatArray:
    """How many standard deviations each power is above the mean (Eq. 2 of the paper)."""
    deviation = float(shares.std())
    if deviation <= 1e-12 * float(np.abs(shares).max(initial=0.0)):
        return np.zeros_like(shares)
    scores: FloatArray = (shares - shares.mean()) / deviation
    return scores


def by_zscore(frequencies: FloatArray, shares: FloatArray, tolerance: float) -> Mask:  # noqa: ARG001
    """Bins three deviations above the mean and close to the highest (Eq. 3 of the paper)."""
    scores = z_scores(shares)
    highest = float(scores.max(initial=0.0))
    return (scores >= MIN_SCORE) & (scores >= tolerance * highest)


def by_peaks(frequencies: FloatArray, shares: FloatArray, tolerance: float) -> Mask:  # noqa: ARG001
    """Local maxima close to the highest."""
    padded = np.concatenate(([-np.inf], shares, [-np.inf]))
    peak = (padded[1:-1] > padded[:-2]) & (padded[1:-1] >= padded[2:])
    highest = float(shares.max(initial=0.0))
    return peak & (shares >= tolerance * highest) & (shares > 0.0)


def by_dbscan(frequencies: FloatArray, shares: FloatArray, tolerance: float) -> Mask:
    """Bins without a neighbour in frequency and power (density-based clustering)."""
    points = _points(frequencies, shares)
    height = float(np.ptp(shares)) * (1.0 - tolerance)
    reach = float(np.hypot(height, points[0, 0]))
    model = _load("sklearn.cluster", "dbscan").DBSCAN(eps=max(reach, TINY), min_samples=2)
    return _high(model.fit(points).labels_ == -1, shares)


def by_isolation_forest(frequencies: FloatArray, shares: FloatArray, tolerance: float) -> Mask:
    """Bins that few random cuts isolate."""
    module = _load("sklearn.ensemble", "isolation forest")
    model = module.IsolationForest(contamination=_contamination(shares), random_state=0)
    outlying = model.fit_predict(_points(frequencies, shares)) == -1
    return _close_to_highest(_high(outlying, shares), shares, tolerance)


def by_local_outlier_factor(frequencies: FloatArray, shares: FloatArray, tolerance: float) -> Mask:
    """Bins in a sparser place than their neighbours."""
    module = _load("sklearn.neighbors", "local outlier factor")
    model = module.LocalOutlierFactor(
        n_neighbors=min(NEIGHBOURS, len(shares) - 1), contamination=_contamination(shares)
    )
    outlying = model.fit_predict(_points(frequencies, shares)) == -1
    return _close_to_highest(_high(outlying, shares), shares, tolerance)


OUTLIERS: Mapping[str, OutlierMethod] = {
    "zscore": by_zscore,
    "dbscan": by_dbscan,
    "isolation-forest": by_isolation_forest,
    "local-outlier-factor": by_local_outlier_factor,
    "peaks": by_peaks,
}


def _points(frequencies: FloatArray, shares: FloatArray) -> FloatArray:
    return np.stack((frequencies / frequencies[-1], shares), axis=1)


def _contamination(shares: FloatArray) -> float:
    return max(CONTAMINATION, 1.0 / len(shares))


def _high(outlying: Mask, shares: FloatArray) -> Mask:
    return outlying & (shares > float(shares.mean()))


def _close_to_highest(outlying: Mask, shares: FloatArray, tolerance: float) -> Mask:
    return outlying & (shares >= tolerance * float(shares.max(initial=0.0)))


def _load(module: str, method: str) -> Any:  # noqa: ANN401 - scikit-learn has no types
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            needed_by=f"the outlier method {method}",
            package="scikit-learn",
            install="'ioprism[outliers]'",
        ) from error


MAX_CANDIDATES = 2


def find_period(
    signal: Signal, *, outliers: str = "zscore", tolerance: float = TOLERANCE
) -> Period | None:
    """Return the dominant frequency, or None if there is none by the paper's rules."""
    candidate = fundamental(
        signal, dominant(candidates(signal, outliers=outliers, tolerance=tolerance))
    )
    spectrum = periodogram(signal)
    if candidate is None or spectrum is None:
        return None
    if candidate.frequency * (signal.end - signal.start) < FEWEST_REPETITIONS - 0.5:
        return None
    return harmonic.describe(
        signal, spectrum, candidate.frequency, method="dft", confidence=candidate.confidence
    )


def candidates(
    signal: Signal, *, outliers: str = "zscore", tolerance: float = TOLERANCE
) -> tuple[FrequencyCandidate, ...]:
    """Return the frequencies that stand out, harmonics left out, the strongest first."""
    return stand_out(*power_spectrum(signal), outliers=outliers, tolerance=tolerance)


def stand_out(
    frequencies: FloatArray,
    shares: FloatArray,
    *,
    outliers: str = "zscore",
    tolerance: float = TOLERANCE,
) -> tuple[FrequencyCandidate, ...]:
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
    numbers = np.stack((frequencies, shares, z_scores(shares), confidence), axis=1)
    standing_out = [FrequencyCandidate(*numbers[i].tolist()) for i in kept]
    return tuple(sorted(standing_out, key=lambda candidate: -candidate.power_share))


def dominant(candidates: Sequence[FrequencyCandidate]) -> FrequencyCandidate | None:
    """The strongest of one or two candidates; None of none or more."""
    return candidates[0] if 1 <= len(candidates) <= MAX_CANDIDATES else None


def fundamental(signal: Signal, candidate: FrequencyCandidate | None) -> FrequencyCandidate | None:
    """The frequency of which a candidate is twice the one, if that stands out, too.

    Two bursts in every phase make the second multiple the strongest. It is a harmonic of a
    frequency that stands out, and those are ignored, even if the strongest is one.
    """
    if candidate is None:
        return None
    frequencies, shares = power_spectrum(signal)
    scores, strongest = z_scores(shares), round(candidate.frequency / float(frequencies[0])) - 1
    half = (strongest + 1) / 2 - 1
    near = np.arange(max(FEWEST_REPETITIONS - 1, math.floor(half)), math.ceil(half) + 1)
    lower = int(near[np.argmax(shares[near])]) if len(near) else strongest
    if lower < strongest and scores[lower] >= MIN_SCORE:
        return replace(
            candidate,
            frequency=float(frequencies[lower]),
            power_share=float(shares[lower]),
            score=float(scores[lower]),
        )
    return candidate


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
    outstanding = counted[counted >= MIN_SCORE].sum()
    parts = [scores / total for total in (close, outstanding) if total > 0.0]
    return np.clip(np.sum(parts, axis=0) / 2, 0.0, 1.0) if parts else np.zeros_like(scores)
