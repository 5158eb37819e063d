"""Replay: what a change saves is what arithmetic says, and no second is counted twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioprism import CallGroup, Contrast
from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.replay import Change, Proposal, Scenario, replay
from ioprism.diagnosis.rows import Floats
from ioprism.diagnosis.verdict import attribute, ledger
from tests.diagnosis.known_rows import observed, writes

# Two ranks, two phases: 4 s and 2 s of calls in the first, 1 s and 3 s in the second.
PHASES = [(0.0, 4.0), (10.0, 13.0)]


def two_ranks(*, runtime: float = 20.0) -> Observed:
    rows = writes(
        [0.0, 2.0, 0.0, 1.0, 10.0, 10.0, 11.0],
        [2.0, 4.0, 1.0, 2.0, 11.0, 11.0, 13.0],
        [0, 0, 1, 1, 0, 1, 1],
    )
    return observed(rows, PHASES, [4.0, 3.0], runtime=runtime)


def surely(chain: Floats) -> Change:
    """A change of which nothing is in doubt."""
    after = Scenario(chain)
    return Change(after, after, after)


def shortened(job: Observed, rank: int, factor: float) -> Floats:
    return np.where(job.rows.rank == rank, factor * job.own, job.own)


def test_the_table_is_read_as_it_is_meant() -> None:
    job = two_ranks()

    assert job.by_rank(job.own).tolist() == [[4.0, 2.0], [1.0, 3.0]]
    assert job.busiest_rank(job.own).tolist() == [4.0, 3.0]
    assert job.waiting.tolist() == [0.0, 0.0]


def test_no_change_saves_nothing() -> None:
    job = two_ranks()
    saved = replay(job, surely(job.own))

    assert (saved.seconds, saved.low, saved.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("rank", "factor", "saved"),
    [
        (0, 0.5, [2.0, 0.0]),  # 4 s become 2 s; in the second phase rank 1 is the longest anyhow
        (1, 0.5, [0.0, 1.5]),
        (0, 0.25, [2.0, 0.0]),  # rank 1 takes 2 s: the phase does not end before
        (0, 0.75, [1.0, 0.0]),
        (1, 0.0, [0.0, 2.0]),
    ],
)
def test_shorter_calls_of_one_rank_save_what_the_busiest_rank_no_longer_needs(
    rank: int, factor: float, saved: list[float]
) -> None:
    job = two_ranks()
    found = replay(job, surely(shortened(job, rank, factor)))

    assert found.by_phase.tolist() == pytest.approx(saved)
    assert found.seconds == pytest.approx(sum(saved))
    assert found.low <= found.seconds <= found.high


def test_longer_calls_save_nothing_rather_than_less() -> None:
    job = two_ranks()

    assert replay(job, surely(2 * job.own)).seconds == 0.0


def test_a_phase_lasts_at_least_as_long_as_its_floor() -> None:
    job = two_ranks()
    after = Scenario(0.0 * job.own, floor=np.array([1.0, 2.5]))
    found = replay(job, Change(after, after, after))

    assert found.by_phase.tolist() == pytest.approx([3.0, 0.5])


def test_a_rank_that_waits_for_others_waits_less_when_their_calls_are_shorter() -> None:
    """Ranks take turns: the busiest is in calls for 2 of 4 s and waits for the other."""
    rows = writes([0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1])
    job = observed(rows, [(0.0, 4.0)], [4.0], runtime=10.0)

    assert job.waiting.tolist() == [2.0]
    assert replay(job, surely(0.5 * job.own)).seconds == pytest.approx(2.0)


def test_what_is_in_doubt_widens_the_interval_on_its_side() -> None:
    job = two_ranks()
    half, none, all_of_it = (Scenario(factor * job.own) for factor in (0.5, 1.0, 0.0))
    sure = replay(job, Change(half, half, half))
    may_be_none = replay(job, Change(half, none, half))
    may_be_all = replay(job, Change(half, half, all_of_it))

    assert sure.seconds == may_be_none.seconds == may_be_all.seconds == pytest.approx(3.5)
    assert may_be_none.low == 0.0 < sure.low
    assert may_be_none.high == sure.high < may_be_all.high
    assert may_be_all.low == sure.low


def proposal(job: Observed, change: Change, code: str = "metadata") -> Proposal:
    everything = np.ones(len(job.rows), np.bool_)
    return Proposal(code, {}, everything, change, 0.0, Contrast(code, CallGroup(1)))


def test_what_may_save_nothing_is_possible_and_no_cause() -> None:
    job = two_ranks()
    half, none = Scenario(0.5 * job.own), Scenario(job.own)

    found = attribute(job, [proposal(job, Change(half, none, half))])

    assert found.causes == ()
    assert [one.code for one in found.possible] == ["metadata"]
    assert found.left.tolist() == [4.0, 3.0]


def test_two_changes_of_the_same_calls_do_not_save_the_same_seconds_twice() -> None:
    job = two_ranks()
    each = surely(0.5 * job.own)

    found = attribute(job, [proposal(job, each, code) for code in ("metadata", "small-requests")])

    first, second = (cause.saving.seconds for cause in found.causes)
    assert first == pytest.approx(3.5)  # half of all
    assert second == pytest.approx(1.75)  # half of what is left
    assert found.left.sum() == pytest.approx(1.75)


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=6),
    st.lists(st.lists(st.floats(0, 1), min_size=6, max_size=6), max_size=5),
)
def test_savings_never_exceed_the_stall_time_and_the_ledger_adds_up(
    stall: list[float], kept: list[list[float]]
) -> None:
    phases = [(200.0 * place, 200.0 * place + lasts) for place, lasts in enumerate(stall)]
    rows = writes([one[0] for one in phases], [one[1] for one in phases], [0] * len(stall))
    job = observed(rows, phases, stall, runtime=sum(stall) + 1)
    proposals = [
        proposal(job, surely(job.own * np.array(factors[: len(stall)]))) for factors in kept
    ]

    found = attribute(job, proposals)

    total = sum(cause.saving.seconds for cause in found.causes)
    lines = ledger(job, found)
    assert total <= sum(stall) * (1 + 1e-9)
    assert sum(line.seconds for line in lines) == pytest.approx(sum(stall))
    assert all(line.seconds >= 0 for line in lines)
    for cause in found.causes:
        assert 0 <= cause.saving.low <= cause.saving.seconds
        assert cause.saving.seconds <= cause.saving.high * (1 + 1e-9)
