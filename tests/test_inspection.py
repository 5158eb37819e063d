"""What lies behind a finding is all that its numbers count, and nothing else."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from ioprism import FindingInspection, LocalEngine, Thresholds, Trace
from ioprism.diagnosis.evidence import evidence_of_trace
from ioprism.diagnosis.rules.registry import RULES
from ioprism.diagnosis.rules.rule import WORST
from ioprism.inspection import inspected_finding, rule_called
from tests.call_tables import calls, trace_of

MIB = 2**20


def inspected(trace: Trace, code: str, thresholds: Thresholds | None = None) -> FindingInspection:
    rule = rule_called(code)
    assert rule is not None
    engine = LocalEngine()
    evidence = evidence_of_trace(trace, engine, thresholds or Thresholds())
    return inspected_finding(rule, evidence, trace, engine)


def operations(found: FindingInspection, perspective: str) -> dict[str, float]:
    part = found.parts[perspective]
    return dict(zip(part["name"].to_list(), part["operations"].to_list(), strict=True))


def write(number: int, **more: Any) -> dict[str, Any]:
    return {"start": number * 0.1, "seconds": 0.1, "operation": "write", "bytes": 100, **more}


def test_all_files_that_are_concerned_are_counted_and_the_worst_named() -> None:
    files = 3 * WORST
    table = calls([write(n, file=n % files, process=n % 2) for n in range(10 * files)])
    found = inspected(trace_of(table), "small-writes")

    assert found.finding.evidence["small"] == 10 * files
    assert len(found.finding.to_dict()["details"]) == WORST
    for perspective in ("process", "size", "function"):
        assert sum(operations(found, perspective).values()) == 10 * files


def test_a_file_without_a_name_is_not_all_files() -> None:
    forward = [write(n, file=0, offset=100 * n, bytes=100) for n in range(40)]
    backward = [write(50 + n, file=None, offset=200 * (40 - n), bytes=99) for n in range(40)]
    found = inspected(trace_of(calls(forward + backward)), "random-writes")

    assert sum(operations(found, "process").values()) == 40
    assert set(found.calls["bytes"]) == {99}


def test_files_that_are_not_concerned_are_left_out() -> None:
    good = [write(n, file=0, offset=100 * n) for n in range(40)]
    bad = [write(50 + n, file=1, offset=100 * (40 - n)) for n in range(40)]
    found = inspected(trace_of(calls(good + bad)), "random-writes")

    assert sum(operations(found, "process").values()) == 40


def test_many_stragglers_are_all_counted() -> None:
    slow = 2 * WORST
    ranks = 3 * slow
    rows = [
        write(0, process=rank, file=rank, bytes=4 * MIB, seconds=60.0 if rank < slow else 1.0)
        for rank in range(ranks)
    ]
    found = inspected(trace_of(calls(rows)), "stragglers")

    assert found.finding.evidence["stragglers"] == slow
    assert len(found.finding.details) == WORST
    assert sum(operations(found, "size").values()) == slow


@pytest.mark.parametrize("limit", [1000, 4 * MIB])
def test_what_is_small_is_what_the_threshold_says(limit: float) -> None:
    sizes = [500, 5000, 2 * MIB] * 20
    table = calls([write(n, bytes=size) for n, size in enumerate(sizes)])
    found = inspected(trace_of(table), "small-writes", Thresholds(small_bytes=limit))

    assert found.finding.evidence["small"] == sum(size < limit for size in sizes)
    assert sum(operations(found, "size").values()) == found.finding.evidence["small"]


def mpi(kinds: dict[bool | None, tuple[int, int]]) -> Trace:
    """Two ranks that share a file: whether calls are collective -> how many, and their size."""
    rows = [
        write(n, process=n % 2, layer="mpiio", bytes=size, function=f"{kind}")
        for kind, (count, size) in kinds.items()
        for n in range(count)
    ]
    known = pl.Series([kind for kind, (count, _) in kinds.items() for _ in range(count)])
    return trace_of(calls(rows).with_columns(collective=known.cast(pl.Boolean)))


def test_independent_calls_of_any_size_are_shown_and_collective_ones_are_not() -> None:
    found = inspected(mpi({False: (40, 100), True: (8, 200)}), "independent-writes")

    assert operations(found, "function") == {"False": 40}
    assert set(found.calls["function"]) == {"False"}

    large = mpi({False: (20, 100)})
    mixed = calls([write(9, process=1, layer="mpiio", bytes=2 * MIB, seconds=9.0, function="big")])
    both = pl.concat([large.events(), mixed.with_columns(collective=pl.lit(value=False))])
    found = inspected(trace_of(both), "independent-writes")

    assert operations(found, "function") == {"False": 20, "big": 1}
    assert found.calls["function"][0] == "big"


def test_collective_calls_are_shown_without_independent_ones() -> None:
    found = inspected(mpi({False: (8, 4 * MIB), True: (40, 4 * MIB)}), "collective-writes")

    assert operations(found, "function") == {"True": 40}


def test_calls_of_which_the_trace_does_not_tell_may_be_meant() -> None:
    found = inspected(
        mpi({False: (30, 100), None: (10, 100), True: (2, 100)}), "independent-writes"
    )

    assert set(operations(found, "function")) == {"False", "None"}


def test_what_limits_small_calls_is_said_of_every_such_rule() -> None:
    limited = {rule.code for rule in RULES if "small_bytes" in rule.thresholds}
    mean_only = {"independent-reads", "independent-writes", "no-parallel-interface"}

    assert {rule.code for rule in RULES if rule.call_kind.small} == limited - mean_only
