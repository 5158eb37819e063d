"""Phases, queues, own time and common directories are what their names say."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism.diagnosis.limits import Limits
from ioprism.diagnosis.rows import departures, io_phases, own_time
from ioprism.diagnosis.targets import TargetPieces, common_directory, service_times
from tests.diagnosis.known_rows import writes


def test_bursts_with_even_pauses_are_phases_of_their_own() -> None:
    start = np.array([[step * 10.0 + rank * 0.01 for rank in range(4)] for step in range(5)])

    found = io_phases(start.ravel(), start.ravel() + 4.0)

    assert len(found) == 5
    assert found.start.tolist() == [0.0, 10.0, 20.0, 30.0, 40.0]


def test_calls_of_a_rank_that_overlap_count_once() -> None:
    calls = writes([0.0, 1.0, 5.0], [4.0, 3.0, 6.0], [0, 0, 0])

    assert own_time(calls).tolist() == [4.0, 0.0, 1.0]


def test_a_late_call_of_one_rank_does_not_cover_those_of_the_next() -> None:
    calls = writes([90.0, 0.0, 1.0], [100.0, 1.0, 3.0], [0, 1, 1])

    assert own_time(calls).tolist() == [10.0, 1.0, 2.0]


def test_departures_add_up_to_the_time_in_which_anyone_is_in_a_call() -> None:
    calls = writes([0.0, 0.5, 4.0, 4.0], [2.0, 3.0, 6.0, 5.0], [0, 1, 2, 3])

    assert departures(calls, np.zeros(4, np.int64)).tolist() == [2.0, 1.0, 1.0, 1.0]
    assert departures(calls, np.arange(4)).tolist() == [2.0, 2.5, 2.0, 1.0]


def test_the_service_time_of_a_queue_is_read_from_calls_that_wait() -> None:
    # Ranks 0 to 7 arrive together at one target that serves each for 10 ms.
    rounds, ranks, service = 20, 8, 0.01
    start = [r * 1.0 for r in range(rounds) for _ in range(ranks)]
    end = [r * 1.0 + service * (k + 1) for r in range(rounds) for k in range(ranks)]
    calls = writes(start, end, [k for _ in range(rounds) for k in range(ranks)])
    one = np.zeros(len(calls), np.int64)
    pieces = TargetPieces(np.arange(len(calls)), one, np.ones(len(calls)), (0,), one, one)

    found = service_times(calls, pieces, Limits())

    assert found.measured
    assert np.median(found.occupied) == pytest.approx(service, rel=0.01)


@pytest.mark.parametrize(
    ("paths", "directory"),
    [
        (["/a/b/c/1", "/a/b/d/2", "/a/b/e/3"], "/a/b"),
        (["/a//b/1", "/a/b//2"], "/a/b"),
        (["x", "y"], ""),
        (["."] + ["/a/b/c/1", "/a/b/d/2"] * 10, "/a/b"),
        ([], ""),
    ],
)
def test_the_common_directory_of_files(paths: list[str], directory: str) -> None:
    assert common_directory(paths) == directory
