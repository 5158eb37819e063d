"""Quantiles are those of numpy."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism.model.arrays import median, quantile


@pytest.mark.parametrize("count", [1, 2, 3, 10, 101])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.75, 1.0])
def test_quantiles_are_those_of_numpy(count: int, share: float) -> None:
    numbers = np.random.default_rng(count).normal(size=count)

    assert quantile(numbers, share) == pytest.approx(float(np.quantile(numbers, share)))


def test_the_median_of_whole_numbers_may_lie_between_two() -> None:
    assert median(np.array([4, 1, 3, 2])) == 2.5
