"""Who computes longer is named, and waiting for it is not taken for I/O."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from benchmarks.simulated_storage.cases import make
from ioprism import Diagnosis, diagnose
from ioprism.analyses.diagnosis.calls import WRITE, Calls
from ioprism.analyses.diagnosis.late_ranks import from_the_last_arrival, late_ranks

NOTHING_ABOVE = pl.DataFrame(
    schema={"unit": pl.Int64, "start": pl.Float64, "end": pl.Float64, "file": pl.Int64,
            "collective": pl.Boolean}
)  # fmt: skip


def writes(start: np.ndarray, length: float) -> Calls:
    """One write of each rank in each round: rank by round."""
    ranks, rounds = start.shape
    count = ranks * rounds
    zeros = np.zeros(count, np.int64)
    return Calls(
        start.ravel(), start.ravel() + length, np.repeat(np.arange(ranks), rounds), zeros,
        np.full(count, WRITE), zeros, np.full(count, 2**20), np.zeros(count, np.bool_),
    )  # fmt: skip


def codes(found: Diagnosis) -> list[str]:
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
    assert found.held_up.share < 0.1


@pytest.mark.parametrize("kind", ["healthy", "healthy-shared", "healthy-collective"])
def test_nobody_is_late_where_all_compute_equally_long(kind: str) -> None:
    assert "compute-imbalance" not in codes(diagnose(make(kind, seed=12).run.trace()))


def test_ranks_that_write_one_after_the_other_are_not_late() -> None:
    turn = np.arange(8)[:, None] * 1.0
    rounds = np.arange(6)[None, :] * 20.0

    assert late_ranks(writes(rounds + turn, 1.0), NOTHING_ABOVE, 120.0) is None


def test_a_rank_that_is_late_once_is_not_named() -> None:
    start = np.broadcast_to(np.arange(6) * 20.0, (8, 6)).copy()
    start[3, 2] += 10.0

    assert late_ranks(writes(start, 1.0), NOTHING_ABOVE, 120.0) is None


def test_a_collective_call_counts_from_the_moment_the_last_rank_has_come() -> None:
    above = pl.DataFrame(
        {"unit": [0, 1, 0, 1], "start": [0.0, 4.0, 10.0, 10.5], "end": [5.0, 5.0, 12.0, 12.0],
         "file": [7, 7, 7, 7], "collective": [True] * 4}
    )  # fmt: skip

    changed = from_the_last_arrival(above).sort("unit", "start")

    assert changed["start"].to_list() == [4.0, 10.5, 4.0, 10.5]
