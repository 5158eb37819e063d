"""Phases are cut where a job stops for long, whatever the shortest gaps look like."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism import PhaseSettings, StepFunction
from ioprism.phase_detection import burst_borders, phase_borders

STEPS = 123


def intervals(gaps: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    start = np.concatenate(([0.0], np.cumsum(gaps + lengths[:-1])))
    return start, start + lengths


def phases_of(gaps: np.ndarray, lengths: np.ndarray) -> int:
    _, (start, _) = phase_borders(*intervals(gaps, lengths), PhaseSettings())
    return len(start)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shortest", [1e-15, 1e-9, 1e-6])
def test_gaps_that_rounding_left_do_not_become_borders(seed: int, shortest: float) -> None:
    chance = np.random.default_rng(seed)
    within = 10 ** chance.uniform(np.log10(shortest), -3, (STEPS, 200))
    between = chance.normal(1.7, 0.05, (STEPS, 1))
    gaps = np.hstack([within, between]).ravel()[:-1]

    assert phases_of(gaps, np.full(len(gaps) + 1, 1e-4)) == STEPS


@pytest.mark.parametrize("seed", range(5))
def test_a_stream_with_random_pauses_is_one_phase(seed: int) -> None:
    chance = np.random.default_rng(seed)
    gaps = chance.exponential(1e-3, 50_000)

    assert phases_of(gaps, chance.exponential(1e-3, 50_001)) == 1


def test_one_long_pause_does_not_hide_the_checkpoints() -> None:
    within, between = np.full((12, 50), 1e-4), np.full((12, 1), 5.0)
    between[5] = 500.0
    gaps = np.hstack([within, between]).ravel()[:-1]

    assert phases_of(gaps, np.full(len(gaps) + 1, 1e-2)) == 12


@pytest.mark.parametrize("before", [0.1, 0.5, 1.5])
def test_one_request_beside_a_phase_does_not_decide_what_separates_phases(before: float) -> None:
    start = np.sort(np.append(10.0 * np.arange(8), 40.0 - before))
    end = start + np.where(start == 40.0 - before, 1e-4, 2.0)

    threshold, (first, _) = phase_borders(start, end, PhaseSettings())

    assert len(first) == 8
    assert threshold > 4.0


def rate(background: float, bursts: int, *, width: float = 8.0) -> StepFunction:
    """A stream at `background` with bursts of 100 bytes per second every 50 s."""
    edges, values = [0.0], []
    for burst in range(bursts):
        edges += [50.0 * burst + 20.0, 50.0 * burst + 20.0 + width]
        values += [background, 100.0]
    return StepFunction(np.array([*edges, 50.0 * bursts]), np.array([*values, background]))


def test_bursts_above_a_trickle_are_phases() -> None:
    borders = burst_borders(rate(0.5, 12))

    assert borders is not None
    assert borders[0] == pytest.approx(50.0 * np.arange(12) + 20, abs=1.0)
    assert borders[1] == pytest.approx(50.0 * np.arange(12) + 28, abs=1.0)


@pytest.mark.parametrize("signal", [rate(50.0, 12), rate(0.5, 12, width=28.0)])
def test_a_stream_whose_rate_hardly_changes_has_no_bursts(signal: StepFunction) -> None:
    assert burst_borders(signal) is None
