"""Forward checks train on small scales only, and the rule of choice prefers what explains."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism.write_time.fitting import (
    ForwardCheck,
    LinearFit,
    first_as_good,
    forward_checks,
    forward_error,
    forward_splits,
)
from ioprism.write_time.training_data import TrainingData


def made(scales: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)) -> TrainingData:
    nodes = np.repeat(scales, 10)
    seconds = 10.0 * nodes.astype(np.float64)
    return TrainingData(nodes[:, None] * 1.0, seconds, nodes, np.zeros(len(nodes), dtype=bool))


def constant(seconds: float) -> LinearFit:
    """Predicts as if nothing grew."""
    return LinearFit("constant", (), 0.0, None, seconds, np.zeros(1))


def test_checks_see_small_scales_and_predict_up_to_sixteen_times_larger_ones() -> None:
    splits = forward_splits(made())

    assert [seen.scales[-1] for seen, _ in splits] == [8, 16, 32, 64]
    assert next(ahead.scales for _, ahead in splits) == (16, 32, 64, 128)
    assert all(max(ahead.scales) <= 16 * max(seen.scales) for seen, ahead in splits)


def test_too_few_scales_allow_no_check() -> None:
    assert forward_splits(made((1, 2, 4))) == []
    assert len(forward_splits(made((1, 2, 4, 8)))) == 1


def test_an_error_that_grows_with_scale_is_measured_by_distance() -> None:
    checks = forward_checks(made(), lambda seen: constant(float(seen.seconds.max())))

    for cell in checks:
        assert np.allclose(cell.logarithms, cell.doublings * np.log(2))
    assert forward_error(checks) > np.log(2)


def test_of_kinds_that_noise_cannot_tell_apart_the_first_is_taken() -> None:
    def checks(*errors: float) -> tuple[ForwardCheck, ...]:
        return tuple(ForwardCheck(1.0, np.array([error, -error])) for error in errors)

    best = checks(0.10, 0.12, 0.08, 0.10)
    now_and_then_better = checks(0.12, 0.11, 0.09, 0.09)
    always_worse = checks(0.11, 0.13, 0.09, 0.11)

    assert first_as_good({"explains": now_and_then_better, "boosting": best}) == "explains"
    assert first_as_good({"explains": always_worse, "boosting": best}) == "boosting"
    assert first_as_good({"explains": best[:1], "boosting": best[:1]}) == "explains"


def test_a_check_counts_by_the_number_of_scales_it_saw() -> None:
    few = (
        ForwardCheck(1.0, np.array([0.4]), 1.5),
        ForwardCheck(2.0, np.array([0.2]), 1.5),
    )  # saw three scales
    many = (ForwardCheck(1.0, np.array([0.1]), 7.0),)

    assert forward_error((*few, *many)) == pytest.approx((3 * 0.3 + 7 * 0.1) / 10)
    assert (
        sum(cell.weight for cell in forward_checks(made(), lambda _: constant(1.0)))
        == 4 + 5 + 6 + 7
    )
