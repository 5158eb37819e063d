"""Writers of one file wait for its lock: in a call of their own, or for each other's requests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from ioprism import Verdict, diagnose
from tests.call_tables import calls, trace_of

Rows = Iterator[dict[str, object]]
RANKS, STEPS, RECORDS = 6, 4, 64
SERVICE = 6e-4  # seconds of a request


def first(found: Verdict) -> str:
    return found.causes[0].code if found.causes else ""


@pytest.mark.parametrize("function", ["fcntl F_SETLKW", "flock"])
def test_the_wait_for_a_lock_belongs_to_the_request_behind_it(function: str) -> None:
    found = diagnose(trace_of(calls(_locked(function))))

    assert first(found) in ("small-requests", "shared-file-contention")
    assert "metadata" not in {one.code for one in found.causes}
    assert found.io_stall.seconds == pytest.approx(STEPS * RANKS * RECORDS * SERVICE, rel=0.1)


def test_a_lock_that_no_request_follows_is_a_call_of_its_own() -> None:
    found = diagnose(trace_of(calls(_locked("flock", size=None))))

    assert first(found) == "metadata"


def test_threads_that_wait_together_wait_once() -> None:
    rows = [
        {"start": step + 0.1, "seconds": 0.5, "operation": "metadata", "function": "flock"}
        for step in range(8) for _ in range(3)
    ] + [
        {"start": step + 0.6, "seconds": 1e-3, "operation": "write", "offset": 2**12 * step,
         "bytes": 2**12} for step in range(8)
    ]  # fmt: skip

    assert diagnose(trace_of(calls(rows))).io_stall.seconds == pytest.approx(8 * 0.501, rel=0.01)


def _locked(function: str, size: int | None = 2**12) -> Rows:
    """Ranks write a record in turn; each waits for the lock while the others have it."""
    for step in range(STEPS):
        for number in range(RECORDS * RANKS):
            now = 1 + step + number * SERVICE
            same = {"process": number % RANKS, "file": step}
            wait = min(number, RANKS - 1) * SERVICE
            yield {
                **same, "start": now - wait + 2e-5, "seconds": wait, "operation": "metadata",
                "function": function,
            }  # fmt: skip
            yield {
                **same, "start": now + 3e-5, "seconds": SERVICE - 3e-5,
                "operation": "write" if size else "stat", "offset": number * 2**12, "bytes": size,
            }  # fmt: skip


@pytest.mark.parametrize(("period", "clock_error"), [(0.5, 0.0), (0.24, SERVICE)])
def test_writers_that_take_turns_are_not_independent(period: float, clock_error: float) -> None:
    found = diagnose(trace_of(calls(_irregular_turns(period, clock_error))))

    assert found.io_stall.basis == "phases"
    # Clocks that differ show gaps and overlaps where there are none.
    assert found.io_stall.seconds == pytest.approx(STEPS * RANKS * RECORDS * SERVICE, rel=0.3)


def _irregular_turns(period: float, clock_error: float) -> Rows:
    """Ranks write in turn, in any order; the clock of each is off by up to the error."""
    chance = np.random.default_rng(seed=5)
    ahead = chance.uniform(-1, 1, RANKS) * clock_error
    for step in range(STEPS):
        order = chance.permutation(np.arange(RANKS * RECORDS) % RANKS)
        for number, rank in enumerate(order.tolist()):
            yield {
                "start": 1 + period * step + number * SERVICE + ahead[rank], "process": rank,
                "seconds": 0.98 * SERVICE, "file": step, "operation": "write",
                "offset": number * 2**12, "bytes": 2**12,
            }  # fmt: skip


def test_ranks_that_meet_in_a_file_by_chance_are_independent() -> None:
    start = np.sort(np.random.default_rng(seed=6).uniform(1.0, 1.9, (RANKS, 250)), axis=1)
    rows = [
        {"start": moment, "seconds": SERVICE, "process": rank, "file": 0, "operation": "write",
         "offset": 2**12 * (RANKS * number + rank), "bytes": 2**12}
        for rank in range(RANKS) for number, moment in enumerate(start[rank])
    ]  # fmt: skip

    assert diagnose(trace_of(calls(rows))).io_stall.basis == "ranks"
