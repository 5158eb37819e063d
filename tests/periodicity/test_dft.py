"""The paper's rules on spectra made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism import Signal, UsageError
from ioprism.model.arrays import FloatArray
from ioprism.periodicity.dft import OUTLIERS, candidates, dominant, find_period, stand_out

BINS = 400
FREQUENCIES = np.arange(1, BINS + 1) / 100.0


def spectrum(**lines: float) -> FloatArray:
    """A flat floor and lines at the bins named ``k<bin>``, normalised."""
    power = 1.0 + 0.1 * np.sin(np.arange(BINS))
    for name, height in lines.items():
        power[int(name[1:]) - 1] = height
    shares: FloatArray = power / power.sum()
    return shares


def test_a_flat_spectrum_has_no_candidate() -> None:
    assert stand_out(FREQUENCIES, spectrum()) == ()
    assert dominant(()) is None


def test_one_candidate_is_the_dominant_frequency_with_full_confidence() -> None:
    found = stand_out(FREQUENCIES, spectrum(k7=500.0))

    chosen = dominant(found)
    assert chosen is not None
    assert chosen.frequency == pytest.approx(0.07)
    assert chosen.confidence == pytest.approx(1.0)


def test_of_two_candidates_the_stronger_is_dominant_with_less_confidence() -> None:
    found = stand_out(FREQUENCIES, spectrum(k7=450.0, k11=500.0))

    chosen = dominant(found)
    assert len(found) == 2
    assert chosen is not None
    assert chosen.frequency == pytest.approx(0.11)
    assert chosen.confidence == pytest.approx(500 / 950, abs=0.02)


def test_three_candidates_mean_not_periodic() -> None:
    found = stand_out(FREQUENCIES, spectrum(k7=480.0, k11=500.0, k17=490.0))

    assert len(found) == 3
    assert dominant(found) is None


def test_multiples_of_two_of_a_candidate_are_ignored() -> None:
    found = stand_out(FREQUENCIES, spectrum(k7=500.0, k14=490.0, k28=480.0))

    assert [candidate.frequency for candidate in found] == [pytest.approx(0.07)]
    assert found[0].confidence == pytest.approx(1.0)


def test_an_odd_multiple_is_a_candidate_of_its_own() -> None:
    assert len(stand_out(FREQUENCIES, spectrum(k7=500.0, k21=490.0))) == 2


@pytest.mark.parametrize(("height", "count"), [(0.82, 2), (0.75, 1)])
def test_a_candidate_needs_the_tolerated_share_of_the_highest_score(
    height: float, count: int
) -> None:
    assert len(stand_out(FREQUENCIES, spectrum(k7=500.0, k11=height * 500.0))) == count


@pytest.mark.parametrize("outliers", OUTLIERS)
def test_every_outlier_method_finds_a_line(outliers: str) -> None:
    if outliers not in ("zscore", "peaks"):
        pytest.importorskip("sklearn")
    times = np.arange(600) / 10.0
    wave = Signal(0.0, 0.1, 5.0 + np.sin(2 * np.pi * times / 4.0))

    found = candidates(wave, outliers=outliers)

    assert found[0].frequency == pytest.approx(0.25)


def test_a_period_as_long_as_the_signal_is_not_reported() -> None:
    wave = Signal(0.0, 0.1, 1.0 + np.cos(np.linspace(0.0, 2 * np.pi, 400)))

    assert find_period(wave) is None


def test_unknown_outlier_methods_and_tolerances_are_refused() -> None:
    with pytest.raises(UsageError, match="there are zscore"):
        stand_out(FREQUENCIES, spectrum(), outliers="guess")
    with pytest.raises(UsageError, match="between 0 and 1"):
        stand_out(FREQUENCIES, spectrum(), tolerance=1.5)
