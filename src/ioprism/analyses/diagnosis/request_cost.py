"""What a request costs whatever its size, fitted on requests of several sizes."""

from __future__ import annotations

import numpy as np

from ioprism.analyses.diagnosis.calls import Flags, Floats, Ints
from ioprism.analyses.diagnosis.limits import FAST, SLOW, USUAL
from ioprism.analyses.diagnosis.situation import Situation, medians_by

APART = 1.5  # sizes must differ by this factor to tell the fixed cost from the rate
FEWEST = 8  # requests of a size


def fixed_share(at: Situation, some: Flags) -> tuple[float, float, float]:
    """Return which part of a request's time does not depend on its size: likely, low, high."""
    known = np.isfinite(at.queues.service)
    waited = some & known & ~at.queues.idle
    chosen = waited if waited.sum() >= 4 * FEWEST else some
    seconds = np.where(chosen & known & ~at.queues.idle, at.queues.service, at.calls.duration)
    typical = float(np.median(at.calls.bytes[some]))
    sizes, medians = medians_by(at.calls.bytes[chosen], seconds[chosen])
    counts = np.bincount(np.searchsorted(sizes, at.calls.bytes[chosen]))
    # The median is 0 where a coarse clock sees most calls begin and end at one moment.
    cost = float(np.median(seconds[chosen])) or max(float(seconds[chosen].mean()), 1e-12)
    good = counts >= FEWEST
    sizes, medians, counts = sizes[good], medians[good], counts[good]
    if len(sizes) >= 2 and sizes[-1] >= APART * sizes[0]:
        slope = _slope(sizes.astype(np.float64), medians, counts.astype(np.float64))
        share = float(np.clip(1 - slope * typical / cost, 0.0, 1.0))
        doubt = 0.08 + _doubt(seconds[chosen], counts, sizes) * typical / cost
        return share, max(0.0, share - doubt), min(1.0, share + doubt)
    shares = [float(np.clip(1 - typical / rate / cost, 0.0, 1.0)) for rate in (USUAL, SLOW, FAST)]
    return shares[0], shares[1], shares[2]


def _slope(sizes: Floats, seconds: Floats, counts: Floats) -> float:
    """Seconds per byte: the weighted median of the slopes between all pairs of sizes."""
    first, second = np.triu_indices(len(sizes), 1)
    slopes = (seconds[second] - seconds[first]) / (sizes[second] - sizes[first])
    weight = np.minimum(counts[first], counts[second]) * (sizes[second] - sizes[first])
    order = np.argsort(slopes)
    middle = np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)
    return max(0.0, float(slopes[order][min(middle, len(order) - 1)]))


def _doubt(seconds: Floats, counts: Ints, sizes: Ints) -> float:
    """Half the width of the slope's 90 % interval, from the spread of single requests."""
    low, high = np.quantile(seconds, [0.25, 0.75])
    error = 1.25 * (high - low) / 1.35 / np.sqrt(np.partition(counts, -2)[-2])
    return float(1.64 * error / (sizes[-1] - sizes[0]))
