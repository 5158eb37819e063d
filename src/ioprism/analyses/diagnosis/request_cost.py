"""What a request costs whatever its size, fitted on requests of several sizes."""

from __future__ import annotations

import numpy as np

from ioprism.analyses.diagnosis.calls import Flags
from ioprism.analyses.diagnosis.situation import Situation, medians_by

APART = 1.5  # sizes must differ by this factor to tell the fixed cost from the rate
FEWEST = 8  # requests of a size
# Where all requests have one size: a storage target moves between these many bytes a second.
SLOW, USUAL, FAST = 150e6, 400e6, 1200e6


def fixed_share(at: Situation, some: Flags) -> tuple[float, float, float]:
    """Return which part of a request's time does not depend on its size: likely, low, high."""
    known = np.isfinite(at.queues.service)
    waited = some & known & ~at.queues.idle
    chosen = waited if waited.sum() >= 4 * FEWEST else some
    seconds = np.where(chosen & known & ~at.queues.idle, at.queues.service, at.calls.duration)
    typical = float(np.median(at.calls.bytes[some]))
    sizes, medians = medians_by(at.calls.bytes[chosen], seconds[chosen])
    counts = np.bincount(np.searchsorted(sizes, at.calls.bytes[chosen]))
    cost = float(np.median(seconds[chosen]))
    good = counts >= FEWEST
    sizes, medians, counts = sizes[good], medians[good], counts[good]
    if len(sizes) >= 2 and sizes[-1] >= APART * sizes[0]:
        rate_seconds = _slope(sizes.astype(np.float64), medians, counts.astype(np.float64))
        share = float(np.clip(1 - rate_seconds * typical / cost, 0.0, 1.0))
        return share, max(0.0, share - 0.2), min(1.0, share + 0.2)
    shares = [float(np.clip(1 - typical / rate / cost, 0.0, 1.0)) for rate in (USUAL, SLOW, FAST)]
    return shares[0], shares[1], shares[2]


def _slope(sizes, seconds, counts) -> float:  # type: ignore[no-untyped-def]
    """Seconds per byte: the weighted median of the slopes between all pairs of sizes."""
    first, second = np.triu_indices(len(sizes), 1)
    slopes = (seconds[second] - seconds[first]) / (sizes[second] - sizes[first])
    weight = np.minimum(counts[first], counts[second]) * (sizes[second] - sizes[first])
    order = np.argsort(slopes)
    middle = np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)
    return max(0.0, float(slopes[order][min(middle, len(order) - 1)]))
