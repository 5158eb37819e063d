"""Phases, queues, tests of significance and the ledger do what their names say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioprism import CallGroup, Contrast
from ioprism.analyses.diagnosis.attribution import Candidate, attributed, ledger
from ioprism.analyses.diagnosis.calls import WRITE, Calls, own_time
from ioprism.analyses.diagnosis.cells import Cells, explained
from ioprism.analyses.diagnosis.directories import common_directory
from ioprism.analyses.diagnosis.io_phases import io_phases
from ioprism.analyses.diagnosis.queues import fit_queues
from ioprism.analyses.diagnosis.significance import outlier_test, rank_test
from ioprism.analyses.diagnosis.target_pieces import TargetPieces


def writes(start: list[float], end: list[float], rank: list[int]) -> Calls:
    count = len(start)
    zeros = np.zeros(count, np.int64)
    return Calls(
        np.array(start), np.array(end), np.array(rank), zeros, np.full(count, WRITE), zeros,
        np.full(count, 2**20), np.zeros(count, np.bool_),
    ).ordered()  # fmt: skip


def test_bursts_with_even_pauses_are_phases_of_their_own() -> None:
    start = np.array([[step * 10.0 + rank * 0.01 for rank in range(4)] for step in range(5)])

    found = io_phases(start.ravel(), start.ravel() + 4.0, np.tile(np.arange(4), 5))

    assert len(found) == 5
    assert found.start.tolist() == [0.0, 10.0, 20.0, 30.0, 40.0]


def test_calls_of_a_rank_that_overlap_count_once() -> None:
    calls = writes([0.0, 1.0, 5.0], [4.0, 3.0, 6.0], [0, 0, 0])

    assert own_time(calls).tolist() == [4.0, 0.0, 1.0]


def test_the_service_time_of_a_queue_is_read_from_calls_that_wait() -> None:
    # Ranks 0 to 7 arrive together at one target that serves each for 10 ms.
    rounds, ranks, service = 20, 8, 0.01
    start = [r * 1.0 for r in range(rounds) for _ in range(ranks)]
    end = [r * 1.0 + service * (k + 1) for r in range(rounds) for k in range(ranks)]
    calls = writes(start, end, [k for _ in range(rounds) for k in range(ranks)])
    one = np.zeros(len(calls), np.int64)

    found = fit_queues(calls, TargetPieces(np.arange(len(calls)), one, (0,), one, one))

    assert np.median(found.held) == pytest.approx(service, rel=0.01)


def test_chance_is_called_significant_no_more_often_than_asked() -> None:
    rng = np.random.default_rng(seed=3)
    tests = [rank_test(rng.normal(size=20), rng.normal(size=60)) for _ in range(2000)]

    assert sum(value < 0.05 for value in tests) <= 130  # 5 % of 2000, and three standard errors


def test_a_value_far_from_its_peers_is_an_outlier_and_one_among_them_is_not() -> None:
    peers = np.array([0.0, 0.02, -0.03, 0.05, 0.01])

    assert outlier_test(2.0, peers, floor=0.05) < 1e-4
    assert outlier_test(0.04, peers, floor=0.05) > 0.05


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


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=6),
    st.lists(st.lists(st.floats(0, 200), min_size=6, max_size=6), max_size=5),
)
def test_savings_never_exceed_what_is_held_up_and_the_ledger_adds_up(
    held: list[float], saved: list[list[float]]
) -> None:
    phases = np.array(held)
    candidates = [
        Candidate("metadata", {}, np.array(seconds[: len(held)]), 0.0, 1.0, 0.0,
                  Contrast("", CallGroup(0)))
        for seconds in saved
    ]  # fmt: skip

    found = attributed(candidates, phases, runtime=float(phases.sum()) + 1)

    total = sum(cause.saving.seconds for cause in found.causes)
    left = sum(found.left)
    lines = ledger(found.causes, left, transfer=left / 2)
    assert total <= phases.sum() * (1 + 1e-9)
    assert sum(line.seconds for line in lines) == pytest.approx(phases.sum())
    for cause in found.causes:
        assert 0 <= cause.saving.low <= cause.saving.seconds
        assert cause.saving.seconds <= cause.saving.high * (1 + 1e-9)


def test_what_a_part_explains_is_not_below_nothing_by_rounding() -> None:
    level = np.array([-1.2, 0.1, -0.2, -0.5])
    none = np.zeros(4, np.int64)

    assert explained(Cells(none, none, none, level, none), np.arange(4) < 2) == 0.0
