"""What calls tell is gathered whatever they leave out."""

from __future__ import annotations

from ioprism import LocalEngine, Thresholds
from ioprism.diagnosis.evidence import evidence_of_trace
from ioprism.diagnosis.rules.registry import judge
from tests.call_tables import calls, trace_of
from tests.counted_passes import Counted


def test_a_trace_that_knows_no_ranks_is_judged_as_a_whole() -> None:
    rows = [
        {"start": float(n), "seconds": 0.5, "bytes": 4096, "process": None, "operation": "write"}
        for n in range(8)
    ]
    evidence = evidence_of_trace(trace_of(calls(rows)), LocalEngine(), Thresholds())

    assert evidence.usages["posix"].rank == [-1]
    assert "small-writes" in {finding.code for finding in judge(evidence).findings}


def test_calls_are_read_once_for_when_there_is_io_and_once_for_all_else() -> None:
    rows = [{"start": float(n), "seconds": 0.5, "bytes": 4096} for n in range(8)]
    engine = Counted()

    evidence_of_trace(trace_of(calls(rows)), engine, Thresholds())

    assert len(engine.passes) == 2
