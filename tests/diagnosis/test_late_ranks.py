"""Who computes longer is named, and waiting for it is not taken for I/O."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.simulated_storage.cases import make
from ioprism import Verdict, diagnose
from ioprism.diagnosis.late_ranks import find_late_ranks, start_at_last_arrival
from ioprism.diagnosis.limits import Limits
from ioprism.diagnosis.observed import LibraryCalls
from tests.diagnosis.known_rows import no_library, rounds


def codes(found: Verdict) -> list[str]:
    return [cause.code for cause in found.causes]


@pytest.mark.parametrize("kind", ["late-rank", "late-rank-collective"])
def test_a_rank_that_computes_longer_is_named_with_nothing_to_gain_in_io(kind: str) -> None:
    case = make(kind, seed=11)
    late = int(np.argmax(case.run.program.steps[-1].compute))

    found = diagnose(case.run.trace())

    (cause,) = found.causes
    assert cause.code == "compute-imbalance"
    assert cause.culprit == {"ranks": [late]}
    assert cause.saving.seconds == 0
    assert cause.facts["waited"] > 0.3 * found.runtime
    assert found.io_stall.share < 0.1


@pytest.mark.parametrize("kind", ["healthy", "healthy-shared", "healthy-collective"])
def test_nobody_is_late_where_all_compute_equally_long(kind: str) -> None:
    assert "compute-imbalance" not in codes(diagnose(make(kind, seed=12).run.trace()))


def test_ranks_that_write_one_after_the_other_are_not_late() -> None:
    turn = np.arange(8)[:, None] * 1.0
    calls = rounds(np.arange(6)[None, :] * 20.0 + turn, 1.0)

    assert find_late_ranks(calls, no_library(), 120.0, Limits()) is None


def test_a_rank_that_is_late_once_is_not_named() -> None:
    start = np.broadcast_to(np.arange(6) * 20.0, (8, 6)).copy()
    start[3, 2] += 10.0

    assert find_late_ranks(rounds(start, 1.0), no_library(), 120.0, Limits()) is None


def test_a_collective_call_counts_from_the_moment_the_last_rank_has_come() -> None:
    yes, file = np.ones(4, np.bool_), np.full(4, 7)
    above = LibraryCalls(
        np.array([0.0, 10.0, 4.0, 10.5]), np.array([5.0, 12.0, 5.0, 12.0]), np.array([0, 0, 1, 1]),
        file, file, yes, yes, yes,
    )  # fmt: skip

    assert start_at_last_arrival(above).tolist() == [4.0, 10.5, 4.0, 10.5]
