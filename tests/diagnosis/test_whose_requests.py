"""Requests are blamed on who makes them, and on what all of them have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

import ioprism
from ioprism import Trace
from tests.call_tables import calls, trace_of

MIB = 2**20


def test_one_rank_with_small_requests_is_named_and_not_called_slow_at_the_same_work() -> None:
    small, large = 640, 20
    rows = [
        {"start": 20.0 * phase + 0.005 * place, "seconds": 0.005, "process": rank, "file": rank,
         "operation": "write", "bytes": 80 * MIB // count, "offset": 80 * MIB // count * place}
        for phase in range(6) for rank in range(6)
        for count in (small if rank == 4 else large,) for place in range(count)
    ]  # fmt: skip

    found = ioprism.diagnose(trace_of(calls(rows)))

    assert [cause.code for cause in found.causes] == ["small-requests"]
    assert found.causes[0].culprit["ranks"] == [4]
    assert "by rank 4" in found.causes[0].title


def test_independent_reads_of_mpi_io_are_the_programs_own() -> None:
    below = [
        {"start": 0.02 * step, "seconds": 0.015, "process": rank, "file": 0, "operation": "read",
         "bytes": 600 + rank, "offset": 10_000 * step + 1000 * rank}
        for step in range(400) for rank in range(8)
    ]  # fmt: skip
    asked = [{**row, "layer": "mpiio", "seconds": 0.016} for row in below]
    joined = [{**row, "bytes": 8 * 600} for row in asked]

    found = [
        [cause.code for cause in ioprism.diagnose(trace_of(calls([*below, *above]))).causes]
        for above in (asked, joined)
    ]

    assert found == [["small-requests"], []]


def on_targets(rows: list[dict[str, Any]], targets: list[list[int]]) -> Trace:
    trace = trace_of(calls(rows))
    files = trace.files.with_columns(
        pl.Series("targets", targets, dtype=trace.files.schema["targets"]),
        stripe_size=pl.lit(MIB, trace.files.schema["stripe_size"]),
    )
    return replace(trace, load_files=lambda: files)


def test_ranks_that_wait_for_a_target_once_saw_an_incident_and_no_slow_target() -> None:
    def written(times: int) -> Trace:
        rows = [
            {"start": 10.0 * step, "seconds": (2.0 if rank < 6 else 0.2) + rank / 1000,
             "process": rank, "file": rank, "operation": "write", "bytes": 512,
             "offset": 512 * step}
            for step in range(times) for rank in range(60)
        ]  # fmt: skip
        return on_targets(rows, [[rank // 6] for rank in range(60)])

    once, often = (ioprism.diagnose(written(times)) for times in (1, 6))

    assert "slow-target" not in [cause.code for cause in once.causes]
    assert (often.causes[0].code, often.causes[0].culprit["target"]) == ("slow-target", 0)
