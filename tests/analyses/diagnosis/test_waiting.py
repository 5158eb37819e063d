"""Whether ranks wait for each other decides how long I/O holds a job up."""

from __future__ import annotations

import numpy as np
import pytest

import ioprism
from ioprism.analyses.diagnosis.calls import WRITE, Calls
from ioprism.analyses.diagnosis.waiting import is_independent
from tests.call_tables import calls, trace_of

RANKS, STEPS = 8, 60
Starts = np.ndarray[tuple[int, int], np.dtype[np.float64]]  # rank by step


def at_random() -> Starts:
    return np.sort(np.random.default_rng(seed=4).uniform(0.0, 9.0, (RANKS, STEPS)), axis=1)


def together() -> Starts:
    return np.broadcast_to(np.arange(STEPS) * 0.15, (RANKS, STEPS))


def in_turn() -> Starts:
    return np.arange(STEPS)[None, :] * 0.15 + np.arange(RANKS)[:, None] * 0.015


def writes(start: Starts, seconds: float) -> Calls:
    begin, count = start.ravel(), start.size
    nothing = np.zeros(count, np.int64)
    rank = np.repeat(np.arange(RANKS), STEPS)
    return Calls(begin, begin + seconds, rank, nothing, np.full(count, WRITE), nothing,
                 np.full(count, 2**22), np.zeros(count, np.bool_)).ordered()  # fmt: skip


@pytest.mark.parametrize(
    ("start", "independent"), [(at_random(), True), (together(), False), (in_turn(), False)]
)
def test_ranks_are_independent_where_as_many_are_in_calls_at_once_as_by_chance(
    start: Starts, independent: bool
) -> None:
    assert is_independent(writes(start, 0.014)) == independent


def test_one_rank_waits_for_nobody_and_few_calls_tell_nothing() -> None:
    assert not is_independent(writes(at_random(), 0.014).where(np.arange(STEPS)))
    assert not is_independent(writes(at_random(), 0.014).where(np.arange(0, RANKS * STEPS, 20)))


def test_independent_ranks_hold_the_job_up_for_as_long_as_the_longest_of_them() -> None:
    start = at_random()
    rows = [
        {"start": moment, "seconds": 0.014, "process": rank, "file": rank, "operation": "write",
         "bytes": 2**22, "offset": 2**22 * step}
        for rank in range(RANKS) for step, moment in enumerate(start[rank])
    ]  # fmt: skip

    found = ioprism.diagnose(trace_of(calls(rows)))

    assert found.held_up.how == "ranks"
    assert found.held_up.seconds == pytest.approx(STEPS * 0.014, rel=0.05)
