"""Whether ranks wait for each other decides how long I/O stalls a job."""

from __future__ import annotations

import numpy as np
import pytest

import ioprism
from ioprism.diagnosis import sampling
from ioprism.diagnosis.late_ranks import is_independent
from ioprism.diagnosis.limits import Limits
from tests.call_tables import calls, trace_of
from tests.diagnosis.known_rows import rounds

RANKS, STEPS = 8, 60
WHOLE = np.empty(0)  # the calls are no sample
Starts = np.ndarray[tuple[int, int], np.dtype[np.float64]]  # rank by step


def at_random() -> Starts:
    return np.sort(np.random.default_rng(seed=4).uniform(0.0, 9.0, (RANKS, STEPS)), axis=1)


def together() -> Starts:
    return np.broadcast_to(np.arange(STEPS) * 0.15, (RANKS, STEPS))


def in_turn() -> Starts:
    return np.arange(STEPS)[None, :] * 0.15 + np.arange(RANKS)[:, None] * 0.015


@pytest.mark.parametrize(
    ("start", "independent"), [(at_random(), True), (together(), False), (in_turn(), False)]
)
def test_ranks_are_independent_where_as_many_are_in_calls_at_once_as_by_chance(
    start: Starts, independent: bool
) -> None:
    assert is_independent(rounds(start, 0.014), WHOLE, Limits()) == independent


def test_one_rank_waits_for_nobody_and_few_calls_tell_nothing() -> None:
    every = rounds(at_random(), 0.014)

    for some in (np.arange(STEPS), np.arange(0, RANKS * STEPS, 20)):
        assert not is_independent(every.select(some), WHOLE, Limits())


def test_independent_ranks_stall_the_job_for_as_long_as_the_longest_of_them() -> None:
    start = at_random()
    rows = [
        {"start": moment, "seconds": 0.014, "process": rank, "file": rank, "operation": "write",
         "bytes": 2**22, "offset": 2**22 * step}
        for rank in range(RANKS) for step, moment in enumerate(start[rank])
    ]  # fmt: skip

    found = ioprism.diagnose(trace_of(calls(rows)))

    assert found.io_stall.basis == "ranks"
    assert found.io_stall.seconds == pytest.approx(STEPS * 0.014, rel=0.05)


def test_few_ranks_are_independent_where_chance_lasts_and_not_where_they_meet() -> None:
    rng = np.random.default_rng(seed=8)
    alone = np.sort(rng.uniform(0.0, 90.0, (RANKS // 2, 20 * STEPS)), axis=1)
    meeting = (
        np.arange(STEPS)[None, :, None] * 1.5
        + rng.uniform(0.02, 0.03, (RANKS // 2, STEPS, 20)).cumsum(axis=2)
    ).reshape(RANKS // 2, -1)

    found = [
        ioprism.diagnose(trace_of(calls([
            {"start": moment, "seconds": 0.02, "process": rank, "file": rank, "offset": 4096 * step,
             "operation": "read", "bytes": 4096}
            for rank in range(RANKS // 2) for step, moment in enumerate(start[rank])
        ]))).io_stall
        for start in (alone, meeting)
    ]  # fmt: skip

    assert [stall.basis for stall in found] == ["ranks", "phases"]


def test_a_sample_of_independent_ranks_stands_for_all_their_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = np.sort(np.random.default_rng(seed=9).uniform(0.0, 60.0, (4, 3000)), axis=1)
    rows = [
        {"start": moment, "seconds": 0.008, "process": rank, "file": 0, "operation": "read",
         "bytes": 2**20, "offset": 2**20 * (step % 8)}
        for rank in range(4) for step, moment in enumerate(start[rank])
    ]  # fmt: skip
    trace = trace_of(calls(rows), paths=["/scratch/table.bin"])
    whole = ioprism.diagnose(trace)

    monkeypatch.setattr(sampling.sampled_calls, "__kwdefaults__", {"most": 3000})
    part = ioprism.diagnose(trace)

    assert part.io_stall.basis == whole.io_stall.basis == "ranks"
    assert part.io_stall.seconds == pytest.approx(whole.io_stall.seconds, rel=0.02)
    assert part.causes[0].code == whole.causes[0].code == "redundant-reads"
    assert part.causes[0].contrast.slow.count == pytest.approx(12_000, rel=0.1)
    assert part.causes[0].facts["copies"] == pytest.approx(375, rel=0.1)  # of each rank
