"""Is the mean time of a repeated run known well enough?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, pstdev

from ioprism.write_time.system import SamplingRule


def relative_half_width(times: Sequence[float], *, confidence: float) -> float:
    """Half the width of the mean's confidence interval, as a share of the mean.

    By the central limit theorem: z * (population deviation / sqrt(runs - 1)) / mean; infinite
    while there is only one run.
    """
    if len(times) < 2:
        return math.inf
    z = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    return z * (pstdev(times) / math.sqrt(len(times) - 1)) / fmean(times)


def converged(times: Sequence[float], rule: SamplingRule) -> bool:
    """Whether there are enough runs, and their mean is known to the asked precision."""
    return (
        len(times) >= rule.minimum_runs
        and relative_half_width(times, confidence=rule.confidence) <= rule.relative_error
    )


def finished(times: Sequence[float], rule: SamplingRule) -> bool:
    """Whether to stop repeating: converged, or tried as often as allowed."""
    return len(times) >= rule.maximum_runs or converged(times, rule)
