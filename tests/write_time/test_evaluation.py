"""How much the same write varies, which writes are underestimated, and what middleware is told."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism.write_time import Sample, WritePattern
from ioprism.write_time.evaluation import underestimation, variability
from ioprism.write_time.tuning import hints
from tests.write_time.machines import plain_system


def test_the_distribution_of_slowest_over_fastest_ends_at_the_largest() -> None:
    times = [(10.0, 10.0), (10.0, 20.0), (5.0, 20.0), (7.0,)]
    found = variability([Sample(WritePattern(1, 1, 8), runs) for runs in times])

    assert found.ratios.tolist() == [1.0, 2.0, 4.0]
    assert found.quantile(0.5) == 2.0
    assert found.distribution()[-1] == (4.0, 1.0)


def test_without_repetitions_there_is_no_distribution() -> None:
    found = variability([Sample(WritePattern(1, 1, 8), (3.0,))])

    assert found.distribution() == []
    assert found.quantile(0.5) is None


def test_what_underestimated_writes_have_in_common_is_found() -> None:
    chance = np.random.default_rng(1)
    samples = [
        Sample(WritePattern(2, int(chance.integers(1, 17)), 10**6 * size), (10.0,))
        for size in range(1, 101)
    ]
    predicted = np.array([6.0 if s.pattern.burst_bytes <= 25 * 10**6 else 10.0 for s in samples])

    found = underestimation(samples, predicted, system=plain_system())

    assert (found.too_low, found.parameter, found.at_least) == (25, "K", False)
    assert found.inside[0] / found.inside[1] > 0.9
    assert found.outside[0] <= 1


def test_good_predictions_are_not_explained() -> None:
    samples = [Sample(WritePattern(2, 1, 10**6), (10.0,))] * 30

    found = underestimation(samples, np.full(30, 10.0), system=plain_system())

    assert (found.too_low, found.parameter) == (0, None)


def test_fewer_writers_become_aggregators_and_stripes_are_set() -> None:
    now = WritePattern(64, 16, 10**9, None, 4)
    better = WritePattern(32, 2, 16 * 10**9, None, 16)

    found = {hint.middleware: dict(hint.settings) for hint in hints(now, better)}

    assert found["MPI-IO"]["cb_nodes"] == "64"
    assert found["MPI-IO"]["cb_config_list"] == "*:2"
    assert found["MPI-IO"]["striping_factor"] == "16"
    assert found["ADIOS2"]["NumAggregators"] == "64"
    assert found["Lustre"] == {"lfs setstripe": "-c 16 FOLDER"}


@pytest.mark.parametrize("better", [WritePattern(64, 16, 10**9, None, 4)])
def test_nothing_is_advised_where_nothing_changes(better: WritePattern) -> None:
    assert hints(WritePattern(64, 16, 10**9, None, 4), better) == ()
