"""A rank that needs more requests for the same bytes is slowed by them, not by its place."""

from __future__ import annotations

from pathlib import Path

import pytest

import ioprism
from ioprism import Trace
from tests.call_tables import calls, trace_of

MIB = 2**20


def _checkpoints(*, slow: int, pieces: int, latency: float, ranks: int = 6) -> Trace:
    """Six ranks write 8 MiB to a file each, four times; one does so in many requests."""
    rows = []
    for checkpoint in range(4):
        for rank in range(ranks):
            count = pieces if rank == slow else 2
            size = 8 * MIB // count
            seconds = latency + size / 1e9
            rows += [
                {
                    "start": 2.0 * checkpoint + request * seconds * 1.01, "seconds": seconds,
                    "process": rank, "file": rank, "operation": "write",
                    "offset": 8 * MIB * checkpoint + request * size, "bytes": size,
                }
                for request in range(count)
            ]  # fmt: skip
    return trace_of(calls(rows))


@pytest.mark.parametrize(("slow", "pieces"), [(4, 64), (0, 128)])
def test_one_rank_with_small_requests_is_told_to_join_them(slow: int, pieces: int) -> None:
    found = ioprism.diagnose(_checkpoints(slow=slow, pieces=pieces, latency=5e-3))

    first = found.causes[0]
    assert (first.code, first.culprit["ranks"]) == ("small-requests", [slow])
    # In requests of a MiB it would need 8 of them: the rest of its 5 ms each is saved.
    assert first.saving.seconds == pytest.approx(4 * (pieces - 8) * 5e-3, rel=0.15)
    assert all(cause.code != "slow-rank" for cause in found.causes)


def test_many_requests_that_cost_nothing_are_no_cause() -> None:
    found = ioprism.diagnose(_checkpoints(slow=3, pieces=64, latency=1e-6))

    assert not found.causes


def _synced(counts: list[int]) -> Trace:
    """Ranks write a MiB to a file each, eight times, and sync after it as often as given."""
    rows: list[dict[str, object]] = []
    for step in range(8):
        for rank, count in enumerate(counts):
            same = {"process": rank, "file": rank}
            begin = 2.0 * step
            rows.append({
                **same, "start": begin, "seconds": 0.01, "operation": "write",
                "offset": MIB * step, "bytes": MIB,
            })  # fmt: skip
            rows += [
                {**same, "start": begin + 0.02 * (n + 1), "seconds": 0.02, "operation": "sync"}
                for n in range(count)
            ]
    return trace_of(calls(rows))


def test_the_rank_that_syncs_most_is_named() -> None:
    first = ioprism.diagnose(_synced([1, 1, 60, 1, 1])).causes[0]

    assert (first.code, first.culprit["ranks"]) == ("frequent-sync", [2])
    assert first.title.startswith("480 syncs by rank 2 ")
    # One sync of each step is needed.
    assert first.saving.seconds == pytest.approx(8 * 59 * 0.02, rel=0.15)


def test_no_rank_is_named_where_all_sync() -> None:
    first = ioprism.diagnose(_synced([60] * 5)).causes[0]

    assert first.code == "frequent-sync"
    assert "ranks" not in first.culprit
    assert first.title.startswith("2,400 syncs ")


@pytest.mark.corpus
def test_the_straggler_of_a_real_log_is_slow_by_its_requests(shared_data: Path) -> None:
    found = ioprism.diagnose(ioprism.read(shared_data / "darshan/made/g_straggler_rank2.darshan"))

    first = found.causes[0]
    assert (first.code, first.culprit["ranks"]) == ("small-requests", [2])
    assert first.title.startswith("1,280 small writes (256 KiB on average) by rank 2 ")
    # 11.4 s in its writes, 2.6 s in those of the next slowest rank, as the program counted.
    assert 0.75 * (11.4 - 2.6) < first.saving.seconds < 11.4 - 2.6
    assert {"stragglers", "rank-time-imbalance"} <= set(first.symptoms)
