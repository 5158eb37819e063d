"""Which bins of a power spectrum stand out of the rest?"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ioprism.errors import MissingPackageError
from ioprism.model.signal import FloatArray

Mask = npt.NDArray[np.bool_]
OutlierMethod = Callable[[FloatArray, FloatArray, float], Mask]

STANDS_OUT = 3.0  # standard deviations (Eq. 3 of the paper)
CONTAMINATION = 0.001  # share of bins expected to stand out, as in FTIO
NEIGHBOURS = 20


def z_scores(shares: FloatArray) -> FloatArray:
    """How many standard deviations each power lies above the mean (Eq. 2 of the paper)."""
    deviation = float(shares.std())
    if deviation <= 1e-12 * float(np.abs(shares).max(initial=0.0)):
        return np.zeros_like(shares)
    scores: FloatArray = (shares - shares.mean()) / deviation
    return scores


def by_zscore(frequencies: FloatArray, shares: FloatArray, tolerance: float) -> Mask:  # noqa: ARG001
    """Bins three deviations above the mean and close to the highest (Eq. 3 of the paper)."""
    scores = z_scores(shares)
    highest = float(scores.max(initial=0.0))
    return (scores >= STANDS_OUT) & (scores >= tolerance * highest)


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
    model = _load("sklearn.cluster", "dbscan").DBSCAN(eps=max(reach, 1e-300), min_samples=2)
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
