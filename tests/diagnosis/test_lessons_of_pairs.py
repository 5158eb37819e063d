"""What before and after runs of real programs taught, each as a small trace with known cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ioprism import Verdict, diagnose
from ioprism.diagnosis.steps import with_layout
from ioprism.model.usage import Striping
from tests.call_tables import calls, trace_of
from tests.diagnosis.test_counters_beside_calls import of_counters

MIB = 2**20
RANKS = 4
Rows = Iterator[dict[str, object]]


def codes(found: Verdict) -> list[str]:
    return [cause.code for cause in found.causes]


@pytest.mark.parametrize(
    ("order", "code"), [("random", "random-access"), ("forward", "small-requests")]
)
def test_random_order_is_named_by_calls_and_by_counters(
    tmp_path: Path, order: str, code: str
) -> None:
    trace = trace_of(calls(_reads(order)))

    assert codes(diagnose(trace))[:1] == [code]
    assert codes(of_counters(trace, tmp_path))[:1] == [code]


def _reads(order: str) -> Rows:
    """Reads of 16 KiB that take 5 ms, each in another place."""
    places = np.random.default_rng(seed=3).permutation(400)
    for rank in range(RANKS):
        for number in range(400):
            place = int(places[number]) if order == "random" else number
            yield {
                "start": 1 + number * 5e-3, "seconds": 4.9e-3, "process": rank, "file": rank,
                "operation": "read", "offset": 4 * place * 2**14, "bytes": 2**14,
            }  # fmt: skip


@pytest.mark.parametrize(("opens", "expected"), [(1, ["redundant-writes"]), (2, [])])
def test_a_file_written_twice_while_open_is_data_written_in_vain(
    tmp_path: Path, opens: int, expected: list[str]
) -> None:
    found = of_counters(trace_of(calls(_written_twice(opens))), tmp_path)

    assert codes(found) == expected


def _written_twice(opens: int) -> Rows:
    for rank in range(RANKS):
        same = {"process": rank, "file": rank}
        for turn in range(2):
            if turn < opens:
                yield {**same, "start": 1.0 + turn, "seconds": 1e-4, "operation": "open"}
            for number in range(16):
                yield {
                    **same, "start": 1.001 + turn + number * 0.05, "seconds": 0.049,
                    "operation": "write", "offset": number * 4 * MIB, "bytes": 4 * MIB,
                }  # fmt: skip


def test_a_sync_for_each_of_many_tiny_files_is_a_load_of_metadata() -> None:
    found = diagnose(trace_of(calls(_tiny_files())))

    assert codes(found) == ["metadata"]
    assert found.causes[0].saving.seconds == pytest.approx(3 * 31 * 5.2e-3, rel=0.1)


def _tiny_files() -> Rows:
    """Each rank writes and syncs 32 files of 16 KiB in each of three steps."""
    for rank in range(RANKS):
        for step in range(3):
            for number in range(32):
                now = 1 + step + number * 5.2e-3
                same = {"process": rank, "file": rank + RANKS * (32 * step + number)}
                yield {**same, "start": now, "seconds": 1e-4, "operation": "open"}
                yield {
                    **same, "start": now + 1e-4, "seconds": 1e-5, "operation": "write",
                    "offset": 0, "bytes": 2**14,
                }  # fmt: skip
                yield {**same, "start": now + 2e-4, "seconds": 4.9e-3, "operation": "sync"}
                yield {**same, "start": now + 5.1e-3, "seconds": 1e-5, "operation": "close"}


def test_ranks_that_start_every_burst_together_wait_for_each_other() -> None:
    found = diagnose(trace_of(calls(_bursts())))

    assert found.io_stall.basis == "phases"
    assert found.io_stall.seconds > 5 * 120 * 11e-3  # not only one rank's calls


def _bursts() -> Rows:
    """Calls at random moments of bursts that all ranks begin together."""
    chance = np.random.default_rng(seed=5)
    for rank in range(8):
        for burst in range(5):
            for number in range(120):
                yield {
                    "start": 1 + 3 * burst + number / 60 + chance.uniform(0, 4e-3) * (number > 0),
                    "seconds": chance.uniform(4e-3, 11e-3), "process": rank, "file": rank,
                    "operation": "write", "offset": (120 * burst + number) * 4 * MIB,
                    "bytes": 4 * MIB,
                }  # fmt: skip


def test_a_big_rank_that_waits_for_storage_may_share_one_limit(tmp_path: Path) -> None:
    trace = trace_of(calls(_big_rank()))

    for found in (diagnose(trace), of_counters(trace, tmp_path)):
        assert codes(found) == []
        assert "data-imbalance" in [one.code for one in found.possible]


def _big_rank() -> Rows:
    """Writes go to memory; each rank then syncs, and the big one takes longest."""
    for rank in range(RANKS):
        number, sync = (20, 0.75) if rank == 1 else (4, 0.2)
        for step in range(4):
            same = {"process": rank, "file": rank + RANKS * step}
            for place in range(number):
                yield {
                    **same, "start": 1 + step + place * 1e-4, "seconds": 8e-5,
                    "operation": "write", "offset": place * MIB, "bytes": MIB,
                }  # fmt: skip
            yield {**same, "start": 1.01 + step, "seconds": sync, "operation": "sync"}


def test_requests_that_share_a_server_may_be_limited_by_their_bytes() -> None:
    """Measured on GlusterFS: 64 KiB of 12 ranks, 0.9 s of writes, 0.2 s saved by larger ones."""
    found = diagnose(trace_of(calls(_side_by_side(size=2**16, reopen=False))))

    assert codes(found) == []
    assert [one.code for one in found.possible] == ["small-requests"]


def test_requests_of_nearly_a_block_gain_nothing_on_targets() -> None:
    """Measured on GlusterFS with a layout: 832 KiB were promised 0.25 s, and gain nothing."""
    trace = trace_of(calls(_in_turns()))
    layout = {path: Striping(MIB, (place % 2,)) for place, path in enumerate(trace.files["path"])}

    assert codes(diagnose(with_layout(trace, layout))) == []


def _in_turns() -> Rows:
    """Two targets serve four ranks each; another limit makes some requests wait longer."""
    for rank in range(8):
        for step in range(5):
            for number in range(30):
                begin = 1.0 + step + number * 2e-2
                turn = (rank // 2 + number) % 4
                yield {
                    "process": rank, "file": rank, "start": begin, "operation": "write",
                    "seconds": (1 + turn) * 2.4e-3 + (number % 3) * 4e-3,
                    "offset": (30 * step + number) * MIB, "bytes": 13 * 2**16,
                }  # fmt: skip


def test_small_requests_that_share_a_server_are_a_cause() -> None:
    found = diagnose(trace_of(calls(_side_by_side(size=2**12, reopen=False))))

    assert codes(found) == ["small-requests"]


def test_a_file_opened_for_each_request_hides_what_the_size_costs() -> None:
    """Measured on GlusterFS: keeping files open saves 1.35 s, larger requests alone 0.2 s."""
    found = diagnose(trace_of(calls(_side_by_side(size=2**14, reopen=True))))

    assert codes(found) == ["metadata"]
    assert [one.code for one in found.possible] == ["small-requests"]


def _side_by_side(*, size: int, reopen: bool) -> Rows:
    """Eight ranks write at the same time, each request 2 ms: at 64 KiB 260 MB/s together."""
    for rank in range(8):
        for step in range(5):
            begin = 1.0 + step
            for number in range(100):
                same = {"process": rank, "file": rank, "start": begin}
                if reopen:
                    yield {**same, "seconds": 9e-4, "operation": "open"}
                    yield {**same, "seconds": 1e-4, "operation": "close", "start": begin + 31e-4}
                yield {
                    **same, "start": begin + 1e-3, "seconds": 2e-3, "operation": "write",
                    "offset": (100 * step + number) * size, "bytes": size,
                }  # fmt: skip
                begin += 4e-3


def test_writes_between_syncs_may_wait_for_each_other_without_them() -> None:
    """Measured on GlusterFS: of 1.2 to 1.5 s a sync for each write costs 0.7 to 0.8 s."""
    rows = list(_written_and_synced())
    [cause] = diagnose(trace_of(calls(rows))).causes

    syncs = sum(float(str(row["seconds"])) for row in rows if row["operation"] == "sync") / 8
    assert cause.code == "frequent-sync"
    assert cause.saving.seconds == pytest.approx(0.95 * syncs, rel=0.15)
    assert cause.saving.low < 0.95 * syncs


def _written_and_synced() -> Rows:
    """Eight ranks write and sync in turn, each at its pace; requests never wait for servers."""
    random = np.random.default_rng(seed=5)
    for rank in range(8):
        for step in range(5):
            begin = 1.0 + step
            for number in range(20):
                write, sync = random.uniform(0.5e-3, 4e-3), random.uniform(2e-3, 5e-3)
                same = {"process": rank, "file": rank}
                yield {
                    **same, "start": begin, "seconds": write, "operation": "write",
                    "offset": (20 * step + number) * MIB, "bytes": MIB,
                }  # fmt: skip
                yield {**same, "start": begin + write, "seconds": sync, "operation": "sync"}
                begin += write + sync


def test_a_rank_that_writes_fill_values_for_all_is_not_an_imbalance() -> None:
    found = diagnose(trace_of(calls(_filled_by_one())))

    assert codes(found) == ["redundant-writes"]


def _filled_by_one() -> Rows:
    """Rank 0 fills a file of 32 MiB, then each of eight ranks writes its 4 MiB of it."""
    for step in range(3):
        same = {"operation": "write", "file": step, "bytes": MIB, "seconds": 9e-3}
        for place in range(32):
            begin = 1.0 + step + place * 1e-2
            yield {**same, "process": 0, "start": begin, "offset": place * MIB}
        for rank in range(8):
            for number in range(4):
                begin = 1.32 + step + number * 1e-2
                place = 4 * rank + number
                yield {**same, "process": rank, "start": begin, "offset": place * MIB}


@pytest.mark.parametrize(("openers", "expected"), [(1, ["serial-io"]), (8, [])])
def test_a_file_that_all_ranks_open_may_be_written_by_an_aggregator(
    openers: int, expected: list[str]
) -> None:
    """Measured on FUSE, where the trace lacks MPI-IO: four aggregators gain half as much."""
    found = diagnose(trace_of(calls(_one_writer(openers)), processes=8))

    assert codes(found) == expected
    assert "serial-io" in [*codes(found), *(one.code for one in found.possible)]


def _one_writer(openers: int) -> Rows:
    for step in range(4):
        for rank in range(8):
            yield {
                "process": rank, "file": step if rank < openers else 4 + rank,
                "start": 1.0 + step, "seconds": 1e-4, "operation": "open",
            }  # fmt: skip
        for number in range(8):
            yield {
                "process": 0, "file": step, "start": 1.01 + step + number * 0.05,
                "seconds": 0.049, "operation": "write", "offset": number * 4 * MIB,
                "bytes": 4 * MIB,
            }  # fmt: skip
