"""Filters keep what they should and shift nothing."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism import Signal, UsageError
from ioprism.periodicity.sampling import FrequencyFilter, apply_filter, parse_filter

TIMES = (np.arange(4000) + 0.5) / 10.0
SLOW = np.cos(2 * np.pi * 0.02 * TIMES)
MIDDLE = np.cos(2 * np.pi * 0.2 * TIMES)
FAST = np.cos(2 * np.pi * 2.0 * TIMES)


@pytest.mark.parametrize(
    ("text", "kept"),
    [("lowpass:0.06", SLOW), ("highpass:0.7", FAST), ("bandpass:0.08,0.6", MIDDLE)],
)
def test_a_filter_keeps_its_band_in_place(text: str, kept: np.ndarray) -> None:
    filtered = apply_filter(Signal(0.0, 0.1, SLOW + MIDDLE + FAST), parse_filter(text))

    inner = slice(500, -500)
    np.testing.assert_allclose(filtered.values[inner], kept[inner], atol=0.05)


def test_half_the_power_is_left_once_at_the_cut_off() -> None:
    gain = FrequencyFilter("lowpass", (0.1,), order=3).gain(np.array([0.0, 0.1, 10.0]))

    np.testing.assert_allclose(gain, [1.0, 0.5, 0.0], atol=1e-6)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("lowpass", "cannot read"),
        ("notch:0.1", "Hint: filters are lowpass"),
        ("bandpass:0.1", "2 cut-offs, not 1.\nHint: write"),
        ("bandpass:0.3,0.1", "cannot cut off at 0.3, 0.1 Hz.\nHint: "),
        ("lowpass:0", "cannot cut off at 0 Hz.\nHint: "),
        ("lowpass:0.1:0", "order 0.\nHint: "),
    ],
)
def test_filters_that_make_no_sense_are_refused(text: str, match: str) -> None:
    with pytest.raises(UsageError, match=match):
        parse_filter(text)


def test_a_cut_off_above_half_the_sampling_frequency_is_refused() -> None:
    with pytest.raises(UsageError, match="not below half"):
        apply_filter(Signal(0.0, 0.1, SLOW), parse_filter("lowpass:7"))
