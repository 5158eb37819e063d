"""Thresholds that are ours: what they tell apart does not hang on their exact value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.synthetic import synthesise
from ioprism import LocalEngine, Thresholds
from ioprism.diagnosis.evidence import Evidence, evidence_of_trace
from ioprism.diagnosis.rules.registry import judge
from tests.diagnosis.rules.jobs import Entry, evidence, moves, usage
from tests.diagnosis.rules.test_truth import FAULTS, high


@pytest.fixture(scope="module")
def jobs() -> dict[str, Evidence]:
    return {
        fault: evidence_of_trace(synthesise(work).trace, LocalEngine(), Thresholds())
        for fault, (work, _) in FAULTS.items()
    }


@pytest.mark.parametrize("name", ["rank_time_imbalance", "negligible_seconds", "imbalance_seconds"])
@pytest.mark.parametrize("factor", [0.5, 0.75, 1.25, 1.5])
def test_half_more_or_less_changes_no_finding_of_a_made_job(
    jobs: dict[str, Evidence], name: str, factor: float
) -> None:
    default = getattr(Thresholds(), name)
    moved = replace(Thresholds(), **{name: factor * default})
    found = {fault: high(judge(replace(job, thresholds=moved))) for fault, job in jobs.items()}

    assert found == {fault: expected for fault, (_, expected) in FAULTS.items()}


@pytest.mark.parametrize("ranks", [16, 256, 2048])
def test_ranks_that_vary_by_a_tenth_by_chance_are_even(ranks: int) -> None:
    """With the paper's 0.15, most of these jobs would be called uneven."""
    rng = np.random.default_rng(seed=1)
    shares = {0.15: 0, Thresholds().rank_time_imbalance: 0}
    for _ in range(20):
        times = rng.normal(10.0, 1.0, ranks).tolist()
        entries = [Entry(r, r, write=moves(9, seconds=time)) for r, time in enumerate(times)]
        job = evidence(usage("posix", *entries), ranks=ranks)
        for limit in shares:
            tuned = replace(job, thresholds=Thresholds(rank_time_imbalance=limit))
            shares[limit] += "rank-time-imbalance" in high(judge(tuned))

    assert shares[Thresholds().rank_time_imbalance] <= 1
    assert shares[0.15] >= 5
