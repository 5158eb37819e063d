"""The search over Gram matrices finds what scikit-learn finds, sample by sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ioprism.write_time.lasso import MAX_SCALES, Objective, all_subsets, search
from ioprism.write_time.system import FloatArray
from ioprism.write_time.training_data import TrainingData

PENALTIES = (1.0, 0.1, 0.01, 0.001)


def made_data(*, samples: int = 240, seed: int = 3, decades: float = 3.0) -> TrainingData:
    chance = np.random.default_rng(seed)
    table = chance.normal(size=(samples, 12)) @ (np.eye(12) + 0.3 * chance.normal(size=(12, 12)))
    table = table * 10.0 ** np.linspace(-decades, decades, 12) + 5.0
    scaled = (table - table.mean(axis=0)) / table.std(axis=0)
    seconds = 60 + scaled[:, :5] @ [4.0, -3.0, 2.0, 1.0, 0.5] + chance.normal(size=samples)
    nodes = np.array([1, 2, 4])[np.arange(samples) % 3]
    return TrainingData(table, seconds, nodes, np.arange(samples) % 5 == 0)


def by_scikit_learn(
    data: TrainingData, penalty: float, objective: Objective
) -> tuple[float, FloatArray]:
    linear: Any = pytest.importorskip("sklearn.linear_model")
    weights = objective.weights(data.seconds)
    centre = np.average(data.table, axis=0, weights=weights)
    spread = np.sqrt(np.average((data.table - centre) ** 2, axis=0, weights=weights))
    if not objective.scaled:
        spread = np.ones_like(spread)
    fitted = linear.Lasso(
        alpha=penalty, tol=1e-13, max_iter=1_000_000, positive=objective.non_negative
    ).fit((data.table - centre) / spread, data.seconds, sample_weight=weights)
    coefficients = fitted.coef_ / spread
    return float(fitted.intercept_ - coefficients @ centre), coefficients


@pytest.mark.parametrize(
    "objective",
    [
        Objective(relative=False),
        Objective(relative=True),
        Objective(relative=True, non_negative=True),
        Objective(relative=False, scaled=False),
    ],
)
def test_every_training_set_and_penalty_equals_scikit_learn(objective: Objective) -> None:
    # In raw units coordinate descent itself does not converge over many decades.
    data = made_data(decades=3.0 if objective.scaled else 0.3)
    found = search(data, objective, penalties=PENALTIES, relative_penalties=False)

    for number, subset in enumerate(found.subsets):
        wanted = ~data.held_out & np.isin(data.nodes, [data.scales[s] for s in subset])
        for step, penalty in enumerate(PENALTIES):
            intercept, coefficients = found.raw(step, number)
            expected = by_scikit_learn(data.part(wanted), penalty, objective)
            # A coefficient at the edge of zero is compared on the scale of its feature.
            spread = data.table.std(axis=0)
            np.testing.assert_allclose(
                coefficients * spread, expected[1] * spread, rtol=1e-6, atol=1e-8
            )
            assert intercept == pytest.approx(expected[0], rel=1e-6)


def test_scores_from_moments_equal_scores_from_predictions() -> None:
    data, objective = made_data(), Objective()
    found = search(data, objective, penalties=PENALTIES)
    held_out = data.part(data.held_out)

    errors = found.squared_errors(held_out, objective)

    intercept, coefficients = found.raw(2, 3)
    missed = (intercept + held_out.table @ coefficients) / held_out.seconds - 1
    weights = objective.weights(held_out.seconds)
    expected = float(np.sum(missed**2) / np.sum(weights))
    assert errors[2, 3] == pytest.approx(expected, rel=1e-8)


def test_a_feature_that_is_constant_in_a_training_set_gets_no_coefficient() -> None:
    data = made_data()
    table = data.table.copy()
    table[data.nodes == 1, 0] = 7.0
    data = TrainingData(table, data.seconds, data.nodes, data.held_out)

    found = search(data, Objective(), penalties=(0.0,))

    alone = found.subsets.index((0,))
    assert found.coefficients[0, alone, 0] == 0.0
    assert np.isfinite(found.coefficients).all()


def test_equal_columns_do_not_break_the_search() -> None:
    data = made_data()
    table = np.column_stack([data.table, data.table[:, 0], data.table[:, 0] * (1 + 1e-13)])
    twins = TrainingData(table, data.seconds, data.nodes, data.held_out)

    found = search(twins, Objective(), penalties=(0.1, 0.01, 0.001))
    alone = search(data, Objective(), penalties=(0.1, 0.01, 0.001))

    errors = found.squared_errors(twins, Objective())
    np.testing.assert_allclose(errors, alone.squared_errors(data, Objective()), rtol=1e-4)


def test_255_training_sets_of_eight_scales_and_ranges_of_many() -> None:
    assert len(all_subsets(range(8))) == 255
    assert len(all_subsets(range(MAX_SCALES + 2))) == 12 * 13 // 2
