"""The central-limit rule equals the vectors."""

from __future__ import annotations

import json
import math

import pytest

from ioprism.write_time.convergence import converged, finished, relative_half_width
from ioprism.write_time.system import SamplingRule
from tests.conftest import ROOT

VECTORS = json.loads((ROOT / "tests/data/write_time/convergence.expected.json").read_text())


@pytest.mark.parametrize("case", VECTORS)
def test_the_rule_equals_the_vectors(case: dict[str, object]) -> None:
    times, confidence = case["times"], case["confidence"]
    assert isinstance(times, list)
    assert isinstance(confidence, float)

    width = relative_half_width(times, confidence=confidence)

    assert width == pytest.approx(case["rel_halfwidth"], rel=1e-14)
    assert converged(times, SamplingRule(confidence=confidence)) is case["converged"]


def test_one_run_never_converges() -> None:
    assert relative_half_width([3.0], confidence=0.9) == math.inf
    assert not converged([3.0, 3.0], SamplingRule())


def test_nine_runs_are_enough_even_if_they_differ() -> None:
    assert finished([1.0, 9.0] * 5, SamplingRule())
    assert not finished([1.0, 9.0] * 4, SamplingRule())
