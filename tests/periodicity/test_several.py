"""All periods of a signal are reported, and three bursts are only a maybe."""

from __future__ import annotations

import numpy as np
import pytest

import ioprism
from benchmarks.period_families import PERIODIC, Stream, draw, rectangles
from ioprism import Periodicity
from ioprism.periodicity.of_signal import signal_periodicity
from ioprism.periodicity.sampling import sample


def period_of_stream(stream: Stream) -> Periodicity:
    return signal_periodicity(sample(stream.steps()))


def test_a_change_is_told_as_two_periodicitys_one_after_the_other() -> None:
    stream = draw(PERIODIC["change"], 3)

    found = period_of_stream(stream)

    periods = sorted(one.period.seconds for one in found.periods)
    assert periods == pytest.approx(sorted(stream.periods), rel=0.05)


def test_two_periodicitys_at_once_are_both_told() -> None:
    short, long = np.arange(0.0, 400.0, 10.0), np.arange(3.0, 400.0, 67.0)
    one, other = rectangles(short, 1.0), rectangles(long, 3.0)
    stream = Stream(
        np.concatenate((one.start, other.start)),
        np.concatenate((one.end, other.end)),
        np.concatenate((one.amount, 3.0 * other.amount)),
    )

    periods = sorted(one.period.seconds for one in period_of_stream(stream).periods)

    assert periods == pytest.approx([10.0, 67.0], rel=0.05)


def test_three_regular_bursts_are_a_maybe() -> None:
    steps = rectangles(np.array([5.0, 25.0, 45.0]), 2.0).steps()

    found = ioprism.period(steps.edges, steps.values)

    assert found is not None
    assert found.certainty == "maybe"
    assert found.seconds == pytest.approx(20.0, rel=0.01)


def test_a_phase_with_stragglers_is_as_long_as_its_bytes_need() -> None:
    starts = np.repeat(10.0 * np.arange(8), 2)
    lengths = np.tile([0.1, 4.0], 8)
    stream = Stream(starts, starts + lengths, np.full(16, 1e9))

    burst = period_of_stream(stream).burst

    assert burst is not None
    assert burst.width == pytest.approx(4.0, rel=0.1)
    assert burst.bytes == pytest.approx(2e9, rel=0.05)
