"""A signal in bounded memory: no byte is lost, the past is coarser, any order will do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import MsgspecError

from ioprism.live.state import pack, unpack
from ioprism.periodicity.stream_buffers import BINS, MAX_SIGNAL_SAMPLES, Ring


def volume(ring: Ring, **options: float) -> float:
    signal = ring.signal(**options)
    return float(signal.values.sum() * signal.interval)


def test_amounts_are_spread_exactly() -> None:
    ring = Ring(finest=0.5)
    ring.add(np.array([0.25]), np.array([1.25]), np.array([8.0]))

    np.testing.assert_allclose(ring.signal().values, [4.0, 8.0, 4.0])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 5e4), st.floats(0, 500), st.floats(0, 1e9)), min_size=1, max_size=30
    )
)
def test_no_byte_is_lost_in_whatever_order_requests_come(
    requests: list[tuple[float, float, float]],
) -> None:
    ring = Ring()
    for start, length, amount in requests:
        ring.add(np.array([start]), np.array([start + length]), np.array([amount]))

    assert volume(ring) == pytest.approx(sum(amount for *_, amount in requests), rel=1e-5, abs=1e-3)


def test_memory_does_not_grow_with_the_length_of_a_job() -> None:
    ring = Ring()
    for day in range(60):
        start = 86400.0 * day + np.arange(100.0)
        ring.add(start, start + 0.5, np.ones(100))

    assert sum(level.values.size for level in ring.levels) <= 24 * BINS
    assert len(ring.signal().values) <= MAX_SIGNAL_SAMPLES
    assert volume(ring) == pytest.approx(6000.0)


def test_the_last_stretch_is_finer_than_the_whole() -> None:
    ring = Ring()
    start = np.arange(0.0, 1000.0)
    ring.add(start, start + 0.2, np.ones(1000))

    assert ring.signal(start=999.0).interval < ring.signal().interval / 8
    assert volume(ring, start=990.0) == pytest.approx(10.0, abs=1.0)


def test_what_is_too_old_is_counted_not_kept() -> None:
    ring = Ring()
    ring.add(np.array([1e11]), np.array([1e11 + 1]), np.array([5.0]))
    ring.add(np.array([0.0]), np.array([1.0]), np.array([7.0]))

    assert ring.too_old == pytest.approx(7.0)


def test_a_restored_ring_is_the_same() -> None:
    ring = Ring()
    start = np.arange(0.0, 300.0, 7.0)
    ring.add(start, start + 2, np.full(len(start), 1e6))
    again = unpack(pack(ring), Ring)

    np.testing.assert_array_equal(again.signal().values, ring.signal().values)


def test_a_damaged_state_is_refused() -> None:
    ring = Ring()
    ring.add(np.array([0.0]), np.array([1.0]), np.array([1.0]))
    ring.levels[0].values = ring.levels[0].values[:1]

    with pytest.raises(MsgspecError, match="instead of 2048"):
        unpack(pack(ring), Ring)


def test_samples_of_a_metric_are_returned_as_they_came() -> None:
    rng = np.random.default_rng(4)
    values, length = rng.uniform(0.0, 5.0, 60), 0.7
    start = 3.1 + length * np.arange(60.0)
    ring = Ring()
    ring.add(start, start + length, values * length)

    signal = ring.samples(start=-np.inf, length=length, edge=float(start[20]))

    assert signal.interval == length
    assert signal.values == pytest.approx(values, abs=0.1)


def test_of_many_samples_bins_at_least_as_long_are_returned() -> None:
    start = 0.7 * np.arange(2000.0)
    ring = Ring()
    ring.add(start, start + 0.7, np.full(2000, 0.7))

    assert ring.samples(start=-np.inf, length=0.7, edge=0.0).interval >= 0.7
