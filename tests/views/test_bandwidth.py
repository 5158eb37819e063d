"""Bandwidth over time loses no byte, whole or in bins, and does not depend on the partitioning."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioprism import (
    EVENTS,
    PROCESSES,
    Job,
    LocalEngine,
    MemoryPartition,
    NotEnoughDetailError,
    StepFunction,
    Trace,
    UsageError,
    file_table,
    read,
)
from ioprism.views import intervals as view
from ioprism.views.bandwidth import bandwidth, bandwidth_by
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"
ENGINE = LocalEngine()


def trace_of(*calls: tuple[float, float, int, str, int], pieces: int = 1) -> Trace:
    """Calls of start, end, bytes, operation and file (0 or 1)."""
    names = ["start", "end", "bytes", "operation", "file"]
    frame = pl.DataFrame([dict(zip(names, call, strict=True)) for call in calls])
    frame = frame.with_columns(layer=pl.lit("posix"), rank=pl.col("file"), process=pl.col("file"))
    events = EVENTS.conform(frame)
    size = -(-events.height // pieces)
    processes = pl.DataFrame({"process": [0, 1], "rank": [0, 1], "application": ["a", "b"]})
    return Trace(
        "made",
        (),
        Job(),
        tuple(MemoryPartition(part) for part in events.iter_slices(size)),
        load_files=lambda: file_table(["/x/one", "/y/two"]),
        load_processes=lambda: PROCESSES.conform(processes),
    )


def volume(steps: StepFunction) -> float:
    return float((steps.values * np.diff(steps.edges)).sum())


def test_overlapping_requests_add_up() -> None:
    trace = trace_of((0, 4, 400, "write", 0), (2, 6, 800, "write", 1), (1, 2, 50, "read", 0))
    steps = bandwidth(trace, ENGINE, direction="write")

    assert steps.edges.tolist() == [0, 2, 4, 6]
    assert steps.values.tolist() == [100, 300, 200]


def test_directions_are_told_apart() -> None:
    trace = trace_of((0, 4, 400, "write", 0), (1, 2, 50, "read", 0))

    assert volume(bandwidth(trace, ENGINE, direction="read")) == pytest.approx(50)
    assert volume(bandwidth(trace, ENGINE, direction="both")) == pytest.approx(450)


def test_a_call_without_length_keeps_its_bytes() -> None:
    steps = bandwidth(trace_of((1, 1, 4096, "write", 0), (3, 4, 10, "write", 0)), ENGINE)

    assert volume(steps) == pytest.approx(4106)


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("file", {0, 1}),
        ("rank", {0, 1}),
        ("directory", {"/x", "/y"}),
        ("application", {"a", "b"}),
    ],
)
def test_each_key_gets_its_own_bytes(key: str, names: set[object]) -> None:
    trace = trace_of((0, 4, 400, "write", 0), (2, 6, 800, "write", 1), (8, 9, 5, "write", 0))
    parts = bandwidth_by(trace, ENGINE, key=key)

    assert set(parts) == names
    assert sorted(round(volume(part)) for part in parts.values()) == [405, 800]


calls = st.tuples(
    st.floats(0, 1000), st.floats(0, 50), st.integers(1, 2**40), st.sampled_from(["read", "write"]),
    st.integers(0, 1),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(found=st.lists(calls, min_size=1, max_size=40), pieces=st.integers(1, 5))
def test_no_byte_is_lost_whole_or_in_bins_or_in_pieces(
    found: list[tuple[float, float, int, str, int]], pieces: int
) -> None:
    events = [(start, start + length, size, op, file) for start, length, size, op, file in found]
    moved = sum(call[2] for call in events)
    exact = bandwidth(trace_of(*events, pieces=pieces), ENGINE)

    assert volume(exact) == pytest.approx(moved, rel=1e-6)
    assert (exact.values >= 0).all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view, "EXACT_CALLS", 0)
        patch.setattr(view, "BINS", 64)
        binned = bandwidth(trace_of(*events, pieces=pieces), ENGINE)
    assert len(binned.values) == 64
    assert volume(binned) == pytest.approx(moved, rel=1e-6)


def test_bins_hold_the_integral_of_the_exact_function(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = trace_of((0.25, 3.5, 325, "write", 0), (1.5, 1.75, 8, "write", 1), (3, 4, 9, "read", 0))
    exact = bandwidth(trace, ENGINE)
    monkeypatch.setattr(view, "EXACT_CALLS", 0)
    monkeypatch.setattr(view, "BINS", 15)
    binned = bandwidth(trace, ENGINE)
    running = np.concatenate(([0.0], np.cumsum(exact.values * np.diff(exact.edges))))

    expected = np.diff(np.interp(binned.edges, exact.edges, running)) / np.diff(binned.edges)
    np.testing.assert_allclose(binned.values, expected, atol=1e-9)


def test_requests_are_counted_at_the_deepest_layer_once() -> None:
    trace = read(DATA / "e_mpiio_collective.darshan")
    posix = trace.events().filter(layer="posix", operation="write")["bytes"].sum()
    upper = trace.events().filter(layer="mpiio", operation="write")["bytes"].sum()

    assert volume(bandwidth(trace, ENGINE, direction="write")) == pytest.approx(posix)
    found = bandwidth(trace, ENGINE, direction="write", layer="mpiio")
    assert volume(found) == pytest.approx(upper)


def test_heat_maps_answer_where_there_are_no_calls() -> None:
    trace = read(DATA / "l_killed_job_merged.darshan")
    steps = bandwidth(trace, ENGINE)

    assert trace.partitions == ()
    assert volume(steps) == pytest.approx(trace.counters["POSIX"]["POSIX_BYTES_WRITTEN"].sum())


def test_a_trace_without_times_says_what_to_record() -> None:
    trace = trace_of((0, 1, 5, "write", 0))

    with pytest.raises(NotEnoughDetailError, match="Hint: trace with DXT enabled"):
        bandwidth(trace, ENGINE, direction="read")


def test_an_unknown_key_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="Hint: there are file, rank"):
        bandwidth_by(trace_of((0, 1, 5, "write", 0)), ENGINE, key="colour")
