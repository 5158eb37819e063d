"""The stage model finds the speeds a machine has, and gives no cost to what it cannot see."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism.write_time import WritePattern, load_system
from ioprism.write_time.loads import LOADS, stage_loads, whole_machine
from ioprism.write_time.stage_model import Shape, StageFit, fit_stages
from tests.write_time.machines import titan_samples

COSTS = np.array([0.0, 1 / 1000, 0.0, 0.0, 1 / 2500, 0.0, 1 / 300])
TRUTH = StageFit(Shape(3.0, 0.0, (0,)), 1.5, 0.01, COSTS, COSTS, COSTS)


def made() -> tuple[np.ndarray, np.ndarray]:
    loads = stage_loads([s.pattern for s in titan_samples()], system=load_system("titan"))
    noise = np.random.default_rng(2).lognormal(0, 0.03, size=len(loads))
    return loads, TRUTH.predict(loads, loads) * noise


def test_speeds_are_found_and_unseen_stages_cost_nothing() -> None:
    loads, seconds = made()

    found = fit_stages(loads, seconds, Shape(3.0, 0.03, (0,)), with_bounds=True)

    shown = COSTS > 0
    creating = np.arange(len(COSTS)) == 0
    assert found.costs[shown] == pytest.approx(COSTS[shown], rel=0.1)
    assert np.allclose(found.costs[~shown & ~creating], 0.0, atol=1e-4)
    assert 0.0 < found.costs[0] < found.bounds[0]
    assert (found.bounds >= found.costs).all()
    assert (found.slowest(loads) >= found.predict(loads, loads)).all()


def test_parts_are_never_negative_and_add_up() -> None:
    loads, _ = made()

    start, by_load, waiting = TRUTH.parts(loads[7])

    whole = TRUTH.predict(loads[7:8], loads[7:8])[0]
    assert start + by_load.sum() + waiting == pytest.approx(whole)
    assert (by_load >= 0).all()


def test_wild_samples_do_not_move_the_fit() -> None:
    loads, seconds = made()
    seconds[::20] *= 8

    found = fit_stages(loads, seconds, Shape(3.0, 0.03, (0,)))

    assert np.median(found.predict(loads, loads) / seconds) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("name", ["cetus", "titan"])
def test_every_load_grows_with_the_burst_or_does_not_depend_on_it(name: str) -> None:
    system = load_system(name)
    patterns = [WritePattern(32, 8, size * 10**6, None, None) for size in (100, 200, 400)]

    loads = stage_loads(patterns, system=system)

    assert loads.shape == (3, len(LOADS[system.filesystem]))
    counted = [load.name in ("m*n", "s_io*m", "m*n*p_sub") for load in LOADS[system.filesystem]]
    assert (np.diff(loads, axis=0)[:, ~np.array(counted)] >= 0).all()


def test_a_shared_stage_that_no_sample_shows_is_about_as_fast_as_those_that_one_shows() -> None:
    loads, seconds = made()
    shared = (2, 4, 5, 6)
    whole = whole_machine(load_system("titan"), "write")
    found = fit_stages(loads, seconds, Shape(3.0, 0.03, (0,), 1.0, shared), with_bounds=True)

    shape = Shape(3.0, 0.03, (0,), 1.0, shared, tuple(whole))
    filled = fit_stages(loads, seconds, shape, with_bounds=True)

    unseen = [number for number in shared if found.costs[number] == 0.0]
    assert 2 in unseen  # the network
    slowest = (whole * found.costs)[list(shared)].max()
    together = ((whole * filled.costs)[unseen] ** 3.0).sum() ** (1 / 3.0)
    assert slowest / 2 < together <= slowest * (1 + 1e-9)
    assert (filled.costs[found.costs > 0] == found.costs[found.costs > 0]).all()
    assert (filled.fastest(loads) <= found.predict(loads, loads)).all()


def test_the_slowest_of_many_equal_components_counts() -> None:
    system = load_system("titan")
    few, many = (WritePattern(1, 1, 10**9, stripe_count=width) for width in (1, 64))

    loads = stage_loads([few, many], system=system)[:, -1]

    assert loads[0] == pytest.approx(1000.0)
    assert 1.05 < loads[1] / (1000.0 / 64) < 1.15


def test_a_shared_component_is_slower_for_many_streams() -> None:
    loads, _ = made()
    crowded = StageFit(Shape(3.0, 0.0, (0,), 1.0, (4, 6), (), 0.1), 1.5, 0.01, COSTS, COSTS, COSTS)
    seconds = crowded.predict(loads, loads)

    found = fit_stages(loads, seconds, Shape(3.0, 0.03, (0,), 1.0, (4, 6), (), 0.1))

    assert (seconds >= TRUTH.predict(loads, loads)).all()
    assert found.costs[COSTS > 0] == pytest.approx(COSTS[COSTS > 0], rel=0.05)
    one_stream = np.array([[1.0, 100.0, 100.0, 100.0, 100.0, 0.0, 50.0]])
    assert crowded.predict(one_stream, one_stream) == TRUTH.predict(one_stream, one_stream)
    start, by_load, waiting = crowded.parts(loads[7])
    assert start + by_load.sum() + waiting == pytest.approx(seconds[7])
