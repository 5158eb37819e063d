"""How much the time of the same write varies: the ratio of the slowest run to the fastest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ioprism.model.samples import Sample
from ioprism.write_time.lasso import FloatArray

FEWEST_RUNS = 2


@dataclass(frozen=True, slots=True)
class Variability:
    """The ratios of all patterns that were run more than once, ascending."""

    ratios: FloatArray

    def quantile(self, share: float) -> float | None:
        """The ratio that this share of the patterns stays below; None without patterns."""
        return float(np.quantile(self.ratios, share)) if len(self.ratios) else None

    def distribution(self, points: int = 50) -> list[tuple[float, float]]:
        """The cumulative distribution: ratios, and the share of patterns up to each."""
        if not len(self.ratios):
            return []
        shares = np.linspace(0.0, 1.0, min(points, len(self.ratios)) + 1)[1:]
        ratios = np.quantile(self.ratios, shares, method="inverted_cdf")
        return [(float(ratio), float(share)) for ratio, share in zip(ratios, shares, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Return quantiles and the distribution."""
        return {
            "samples": len(self.ratios),
            "median": self.quantile(0.5),
            "ninth_decile": self.quantile(0.9),
            "distribution": [
                {"max_over_min": ratio, "share": share} for ratio, share in self.distribution()
            ],
        }


def variability(samples: Sequence[Sample]) -> Variability:
    """Compare the slowest and the fastest run of every pattern."""
    repeated = [s.times for s in samples if len(s.times) >= FEWEST_RUNS]
    return Variability(np.sort([max(times) / min(times) for times in repeated]))
