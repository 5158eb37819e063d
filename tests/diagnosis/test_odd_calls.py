"""Files without a name or a layout, and clocks too coarse for calls, do not stop a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ioprism import FILES, Trace, diagnose
from tests.call_tables import calls, trace_of

RANKS, CALLS = 8, 40
OfCall = Callable[[int, int], Any]  # of the rank and the number of a call


def made(
    *, file: OfCall, seconds: OfCall, offset: OfCall = lambda _, k: k * 2**20, first: float = 0.0,
    step: float = 0.05, **same: Any,
) -> list[dict[str, Any]]:  # fmt: skip
    """The same number of calls of each rank, one at every step."""
    return [
        {"operation": "write", "bytes": 2**20, **same, "start": first + k * step, "process": r,
         "file": file(r, k), "seconds": seconds(r, k), "offset": offset(r, k)}
        for r in range(RANKS) for k in range(CALLS)
    ]  # fmt: skip


def striped(trace: Trace, files: Collection[int]) -> Trace:
    """The trace with these files on three targets."""
    places = range(trace.files.height)
    table = trace.files.with_columns(
        stripe_size=pl.Series([2**20 if n in files else None for n in places], dtype=pl.Int64),
        targets=pl.Series([[0, 1, 2] if n in files else None for n in places]),
    )
    return replace(trace, load_files=lambda: FILES.conform(table))


def codes(trace: Trace) -> list[str]:
    return [cause.code for cause in diagnose(trace).causes]


def test_a_file_on_known_targets_that_no_call_touches_changes_nothing() -> None:
    rows = made(file=lambda r, _: r + 1, seconds=lambda r, _: 0.03 + 0.01 * (r == 3))

    assert codes(striped(trace_of(calls(rows)), {0})) == codes(trace_of(calls(rows)))


def test_calls_on_unknown_files_say_nothing_of_targets() -> None:
    rows = made(file=lambda *_: None, seconds=lambda *_: 0.05)

    assert codes(striped(trace_of(calls(rows), paths=["/s/a", "/s/b"]), {0})) == []


def test_writes_through_mpiio_that_the_trace_does_not_show_below_are_not_called_rewritten() -> None:
    above = made(file=lambda *_: 0, seconds=lambda *_: 0.05, layer="mpiio")
    below = made(file=lambda *_: 0, seconds=lambda *_: 0.04, operation="read")

    assert "read-modify-write" not in codes(trace_of(calls(above + below)))


def test_contention_is_told_beside_a_write_to_an_unknown_file() -> None:
    chance = np.random.default_rng(seed=1)
    rows = made(
        file=lambda r, k: None if (r, k) == (0, 1) else 0,
        seconds=lambda _, k: chance.uniform(0.03, 0.05) if k % 4 else chance.uniform(0.001, 0.002),
        offset=lambda r, k: (k * 8 + r) * 2**16 if k % 4 else 2**40 + (k * 8 + r) * 2**20,
        bytes=2**16,
    )

    found = diagnose(trace_of(calls(rows)))

    assert found.causes[0].code == "shared-file-contention"
    assert found.causes[0].culprit == {"file": "/scratch/run/part0/data.0"}


def test_random_access_is_told_beside_a_read_of_an_unknown_file() -> None:
    chance = np.random.default_rng(seed=2)
    rows = made(
        file=lambda r, k: None if (r, k) == (0, 1) else r,
        seconds=lambda _, k: chance.uniform(0.03, 0.05) if k % 5 < 3 else 0.001,
        offset=lambda _, k: (
            (k // 5 * 977 % 501 * 100 + (7 * (k % 5), 12 + k % 5)[k % 5 > 2]) * 2**14
        ),
        operation="read",
        bytes=2**14,
    )

    found = diagnose(trace_of(calls(rows)))

    assert found.causes[0].code == "random-access"


def test_files_that_take_no_time_make_no_target_hot() -> None:
    private = made(file=lambda r, _: r, seconds=lambda *_: 0.0, bytes=4096)
    shared = made(
        file=lambda *_: 8, seconds=lambda *_: 0.05, offset=lambda r, k: (r * 40 + k) * 2**20,
        first=5.0,
    )  # fmt: skip

    assert "hot-target" not in codes(striped(trace_of(calls(private + shared)), range(8)))


def test_most_calls_on_a_shared_file_may_be_shorter_than_the_clock_tells() -> None:
    rows = made(
        file=lambda *_: 0, seconds=lambda r, k: 0.0 if (r + k) % 8 else 0.3,
        offset=lambda r, k: (k * 8 + r) * 2**16, step=0.5, bytes=2**16,
    )  # fmt: skip

    assert "shared-file-contention" not in codes(trace_of(calls(rows)))


def test_a_slow_rank_is_found_where_most_calls_are_shorter_than_the_clock_tells() -> None:
    def seconds(rank: int, call: int) -> float:
        return 0.5 if rank == 3 and call % 2 else 0.0 if call % 3 else 0.1

    rows = [
        row
        for first in (0.0, 40.0, 80.0, 120.0)
        for row in made(file=lambda r, _: r, seconds=seconds, first=first, step=0.5)
    ]

    assert codes(trace_of(calls(rows))) == ["slow-rank"]
