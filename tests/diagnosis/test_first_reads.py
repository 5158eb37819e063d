"""Reads from memory are no measure of reads from storage."""

from __future__ import annotations

import pytest

import ioprism
from ioprism import Verdict
from tests.call_tables import calls, trace_of

BLOCKS, SIZE = 40, 2**22


def epochs(*seconds: float) -> Verdict:
    """One process reads a file once in each epoch, in order."""
    rows = []
    for epoch, each in enumerate(seconds):
        begin = sum(earlier * BLOCKS + 0.5 for earlier in seconds[:epoch])
        rows += [{"start": begin + each * n, "seconds": each, "bytes": SIZE, "offset": SIZE * n}
                 for n in range(BLOCKS)]  # fmt: skip
    return ioprism.diagnose(trace_of(calls(rows)))


def spent_on(found: Verdict, what: str) -> float:
    return sum(line.seconds for line in found.ledger if line.what == what)


def test_what_a_first_reading_takes_longer_than_the_next_is_told_by_itself() -> None:
    found = epochs(0.1, 0.001, 0.001)

    assert spent_on(found, "first-reads") == pytest.approx(40 * 0.099, rel=0.1)
    assert "cold-cache reads" in found.line


def test_readings_that_take_alike_are_all_transfer() -> None:
    found = epochs(0.02, 0.02, 0.02)

    assert spent_on(found, "first-reads") == 0.0
