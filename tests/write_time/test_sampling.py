"""Plans follow the paper's templates, scaled to the system."""

from __future__ import annotations

import pytest

from ioprism import UsageError
from ioprism.write_time import PlanSettings, load_system
from ioprism.write_time.sampling import cost, plan
from tests.write_time.machines import plain_system


def test_cetus_has_five_core_counts_for_every_burst_range() -> None:
    patterns = plan(load_system("cetus"))

    assert {p.cores_per_node for p in patterns} == {1, 2, 4, 8, 16}
    assert len([p for p in patterns if p.nodes == 8]) == 10 * 5
    assert len([p for p in patterns if p.nodes == 256]) == 7 * 5
    assert max(p.burst_bytes for p in patterns if p.nodes > 128) <= 2560 * 10**6


def test_titan_also_varies_the_stripe_count() -> None:
    patterns = [p for p in plan(load_system("titan")) if p.nodes == 4]

    assert len(patterns) == (7 * 8 + 3 * 4) * 5
    stripes = {p.stripe_count or 0 for p in patterns}
    assert min(stripes) <= 4
    assert 33 <= max(stripes) <= 64


def test_placements_are_both_in_a_row_and_scattered() -> None:
    lists = [p.node_list for p in plan(load_system("cetus")) if p.nodes == 32]

    spans = [nodes[-1] - nodes[0] + 1 for nodes in lists if nodes]
    assert min(spans) == 32
    assert max(spans) > 64


def test_limits_are_kept() -> None:
    settings = PlanSettings(scales=(1, 2), largest_burst=30 * 10**6, most_bytes=10**8)

    patterns = plan(plain_system(), settings)

    assert max(p.burst_bytes for p in patterns) <= 30 * 10**6
    assert max(p.total_bytes for p in patterns) <= 10**8


def test_the_same_seed_gives_the_same_plan() -> None:
    system = load_system("titan")
    assert plan(system) == plan(system)
    assert plan(system) != plan(system, PlanSettings(seed=2))


def test_a_plan_that_allows_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to sample"):
        plan(plain_system(), PlanSettings(scales=(5000,)))


def test_the_cost_spans_three_to_nine_runs() -> None:
    system = plain_system()
    patterns = plan(system, PlanSettings(scales=(2,)))

    found = cost(patterns, system, rate=1e9)

    total = sum(p.total_bytes for p in patterns)
    assert (found.fewest_bytes, found.most_bytes) == (3 * total, 9 * total)
    assert found.most_seconds == pytest.approx(9 * total / 2 / 1e9)
    assert found.node_hours == pytest.approx(2 * found.most_seconds / 3600)
