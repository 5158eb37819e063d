"""What pairs on other programs taught: many files, journals, locks, records in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ioprism import Verdict, diagnose
from tests.call_tables import calls, trace_of
from tests.diagnosis.test_counters_beside_calls import of_counters
from tests.diagnosis.test_heat_maps import of_heat_maps

Rows = Iterator[dict[str, object]]


def first(found: Verdict) -> str:
    return found.causes[0].code if found.causes else ""


def test_opens_between_short_writes_are_one_phase_for_counters(tmp_path: Path) -> None:
    found = of_counters(trace_of(calls(_many_files())), tmp_path)

    assert first(found) == "metadata"
    # In each step, as long as the slowest of three ranks.
    assert found.io_stall.seconds == pytest.approx(4 * 12 * 31e-3, rel=0.25)


def _many_files() -> Rows:
    """In four steps, 3 ranks create 12 files each and write each once; none is in step."""
    chance = np.random.default_rng(seed=1)
    for rank in range(3):
        for step in range(4):
            now = 1.0 + step
            for number in range(12):
                opening = chance.uniform(1e-3, 60e-3)
                same = {"process": rank, "file": rank + 3 * (12 * step + number)}
                yield {**same, "start": now, "seconds": opening, "operation": "open"}
                yield {
                    **same, "start": now + opening, "seconds": 4e-4, "operation": "write",
                    "offset": 0, "bytes": 2**13,
                }  # fmt: skip
                now += opening + 5e-4


def test_writers_that_take_turns_keep_each_other_waiting(tmp_path: Path) -> None:
    trace = trace_of(calls(_turns()))

    for found in (diagnose(trace), of_counters(trace, tmp_path)):
        assert found.io_stall.seconds == pytest.approx(4 * 6 * 64 * 6e-4, rel=0.1)
        assert first(found) in ("small-requests", "shared-file-contention")


def _turns() -> Rows:
    """Six ranks append 64 records of 4 KiB to a file of each step, one after the other."""
    for step in range(4):
        for number in range(64 * 6):
            yield {
                "start": 1 + step + number * 6e-4, "seconds": 5.9e-4, "process": number % 6,
                "file": step, "operation": "write", "offset": number * 2**12, "bytes": 2**12,
            }  # fmt: skip


def test_records_read_in_three_requests_are_in_random_order_if_the_jumps_cost() -> None:
    found = diagnose(trace_of(calls(_records())))

    assert first(found) == "random-access"
    assert found.causes[0].saving.seconds == pytest.approx(400 * 6e-3, rel=0.25)


def test_counters_leave_open_whether_records_are_small_or_out_of_order(tmp_path: Path) -> None:
    found = of_counters(trace_of(calls(_records())), tmp_path)

    assert not found.causes
    assert {one.code for one in found.possible} == {"small-requests", "random-access"}


def _records() -> Rows:
    """Records of 12 KiB in random order: the first request of each takes a seek."""
    places = np.random.default_rng(seed=3).permutation(400)
    now = 1.0
    for place in places.tolist():
        for part, seconds in enumerate((6.5e-3, 5e-4, 5e-4)):
            yield {
                "start": now, "seconds": seconds, "process": 0, "file": 0, "operation": "read",
                "offset": (3 * place + part) * 2**12, "bytes": 2**12,
            }  # fmt: skip
            now += seconds + 1e-5


def test_with_a_sync_goes_the_journal_that_is_made_for_it(tmp_path: Path) -> None:
    trace = trace_of(calls(_commits()))

    for found in (diagnose(trace), of_counters(trace, tmp_path)):
        assert first(found) == "frequent-sync"
        assert found.causes[0].saving.seconds == pytest.approx(60 * 33e-3, rel=0.15)


def _commits() -> Rows:
    """Sixty commits: a journal is created, written and synced, then the database."""
    for commit in range(60):
        now = 1 + commit * 0.05
        journal, data = ({"process": 0, "file": file} for file in (0, 1))
        yield {**journal, "start": now, "seconds": 8e-3, "operation": "open"}
        for number in range(8):
            yield {
                **journal, "start": now + 8e-3 + number * 1e-3, "seconds": 9e-4,
                "operation": "write", "offset": number * 2**9, "bytes": 2**9,
            }  # fmt: skip
        yield {**journal, "start": now + 16e-3, "seconds": 8.5e-3, "operation": "sync"}
        yield {
            **data, "start": now + 24.6e-3, "seconds": 6e-4, "operation": "write",
            "offset": commit * 2**12, "bytes": 2**12,
        }  # fmt: skip
        yield {**data, "start": now + 25.3e-3, "seconds": 8.5e-3, "operation": "sync"}


@pytest.mark.parametrize(("below", "expected"), [(2**11, "small-requests"), (2**13, "")])
def test_pieces_of_an_independent_call_are_the_programs_layout(below: int, expected: str) -> None:
    found = diagnose(trace_of(calls(_pieces(below))))

    assert first(found) == expected


def _pieces(below: int) -> Rows:
    """Three ranks ask MPI-IO for 256 pieces of 2 KiB; the library may read what lies between."""
    for rank in range(3):
        for step in range(4):
            now = 1 + step
            same = {"process": rank, "file": step, "operation": "read"}
            yield {
                **same, "start": now, "seconds": 0.2, "layer": "mpiio", "offset": rank * 2**11,
                "bytes": 256 * 2**11,
            }  # fmt: skip
            for number in range(256):
                yield {
                    **same, "start": now + number * 7e-4, "seconds": 6.9e-4,
                    "offset": (3 * number + rank) * 2**11, "bytes": below,
                }  # fmt: skip


def test_each_slow_phase_of_a_heat_map_counts_as_evidence(tmp_path: Path) -> None:
    found = of_heat_maps(trace_of(calls(_slow_stretch())), tmp_path)

    assert first(found) == "interference"
    assert found.causes[0].saving.seconds == pytest.approx(4 * 4 * 70e-3, rel=0.3)


def _slow_stretch() -> Rows:
    """Six ranks read from files that stay the same; four of sixteen steps take much longer."""
    now = 0.4
    for step in range(16):
        seconds = 85e-3 if 4 <= step < 8 else (5e-3, 30e-3)[step % 2]
        for rank in range(6):
            for number in range(4):
                yield {
                    "start": now + number * seconds, "seconds": seconds * (0.9 + 0.02 * rank),
                    "process": rank, "file": rank, "operation": "read",
                    "offset": (4 * step + number) * 2**19, "bytes": 2**19,
                }  # fmt: skip
        now += 4 * seconds + 0.25


@pytest.mark.parametrize(("size", "expected"), [(2**18, ""), (2**12, "small-requests")])
def test_counters_of_one_size_do_not_show_that_slow_storage_would_serve_more_sooner(
    tmp_path: Path, size: int, expected: str
) -> None:
    found = of_counters(trace_of(calls(_one_size(size))), tmp_path)

    assert first(found) == expected
    assert expected or "small-requests" in {one.code for one in found.possible}


def _one_size(size: int) -> Rows:
    """Two ranks read in order; each request takes 11 ms."""
    for rank in range(2):
        for number in range(300):
            yield {
                "start": 1 + number * 11.1e-3, "seconds": 11e-3, "process": rank, "file": rank,
                "operation": "read", "offset": number * size, "bytes": size,
            }  # fmt: skip


@pytest.mark.parametrize(("queue", "expected"), [(False, "slow-rank"), (True, "")])
def test_one_of_three_ranks_is_slow_if_it_is_not_the_last_of_a_queue(
    tmp_path: Path, queue: bool, expected: str
) -> None:
    found = of_counters(trace_of(calls(_three_ranks(queue=queue))), tmp_path)

    assert first(found) == expected
    assert not expected or found.causes[0].culprit["ranks"] == [1]


def _three_ranks(*, queue: bool) -> Rows:
    """In six steps, rank 1 takes five times as long; or one server serves it after the others."""
    for step in range(6):
        for turn, rank in enumerate((0, 2, 1)):
            each = 50e-3 if rank == 1 and not queue else 10e-3
            waited = turn * 80e-3 if queue else 0.0
            now = 1.0 + step
            for number in range(8):
                seconds = each + (waited if number == 0 else 0.0) + 1e-5 * step * rank
                yield {
                    "start": now, "seconds": seconds, "process": rank, "file": 3 * step + rank,
                    "operation": "write", "offset": number * 2**20, "bytes": 2**20,
                }  # fmt: skip
                now += seconds


def test_threads_of_a_loader_hide_what_larger_requests_would_gain(tmp_path: Path) -> None:
    found = of_counters(trace_of(calls(_threads(4, 16e-3))), tmp_path)

    assert not found.causes


def test_threads_with_files_in_use_at_the_same_time_prefetch_already() -> None:
    alone, together = (
        {one.code for one in diagnose(trace_of(calls(rows))).causes}
        for rows in (_threads(1, 45e-3), _threads(4, 45e-3))
    )

    assert "no-prefetch" in alone
    assert "no-prefetch" not in together


def _threads(number: int, seconds: float) -> Rows:
    """40 times, so many threads read four files in two requests each, and the process computes."""
    for batch in range(40):
        for file in range(4):
            begin = 1 + batch * (0.1 + 8.5 * seconds / number)
            for half in range(2):
                yield {
                    "start": begin + (2 * (file // number) + half) * 1.01 * seconds,
                    "seconds": seconds, "file": 4 * batch + file, "operation": "read",
                    "offset": half * 2**17, "bytes": 2**17,
                }  # fmt: skip


@pytest.mark.parametrize("slow", [{3}, {3, 4, 5}])
def test_a_single_slow_phase_may_be_an_incident(slow: set[int]) -> None:
    found = diagnose(trace_of(calls(_steps(slow))))

    assert ("interference" in {one.code for one in found.causes}) is (len(slow) > 1)
    assert ("interference" in {one.code for one in found.possible}) is (len(slow) == 1)


def _steps(slow: set[int]) -> Rows:
    for step in range(12):
        seconds = 40e-3 if step in slow else 8e-3
        for rank in range(4):
            for number in range(8):
                yield {
                    "start": 0.5 + 0.7 * step + number * seconds * 1.01,
                    "seconds": seconds * (1 + 0.01 * rank), "process": rank,
                    "file": 4 * step + rank, "operation": "write",
                    "offset": number * 2**20, "bytes": 2**20,
                }  # fmt: skip


@pytest.mark.parametrize("writers", [1, 4])
def test_collective_calls_in_small_pieces_are_named_whoever_writes_them(
    tmp_path: Path, writers: int
) -> None:
    events = calls(_collective(writers))
    together = pl.col("layer").cast(pl.String) == "mpiio"
    found = of_counters(trace_of(events.with_columns(collective=together)), tmp_path)

    assert first(found) == "collective-not-aggregated"
    assert found.causes[0].saving.seconds == pytest.approx(3 * 1.28, rel=0.2)


def _collective(writers: int) -> Rows:
    """Four ranks write 8 MiB together, three times; it reaches storage in pieces of 16 KiB."""
    for step in range(3):
        begin, same = 1 + 2 * step, {"file": step, "operation": "write"}
        for rank in range(4):
            yield {
                **same, "start": begin, "seconds": 1.3, "process": rank, "layer": "mpiio",
                "function": "MPI_File_write_all", "offset": rank * 2**21, "bytes": 2**21,
            }  # fmt: skip
            if rank < writers:
                number = 512 // writers
                each = 1.28 / number
                for piece in range(number):
                    yield {
                        **same, "start": begin + piece * each, "seconds": each * 0.99,
                        "process": rank, "offset": (rank * number + piece) * 2**14,
                        "bytes": 2**14,
                    }  # fmt: skip
