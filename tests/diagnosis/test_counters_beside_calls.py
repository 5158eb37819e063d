"""What counters say of a run holds what its single calls say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.simulated_storage.cases import COUNTERS_ONLY
from ioprism import Cause, Trace, diagnose, read
from ioprism.formats.darshan.from_trace import FILE_ALIGNMENT, log_content
from ioprism.formats.darshan.writer import write_log
from tests.call_tables import calls, trace_of

MIB = 2**20
STEPS = 4
OUTLIER = 23e-3  # seconds of one write of each rank, which was interrupted


def first_of_counters(trace: Trace, folder: Path) -> Cause:
    path = folder / "job.darshan"
    write_log(path, log_content(trace, file_alignment=FILE_ALIGNMENT, modules=COUNTERS_ONLY))
    return diagnose(read(path)).causes[0]


def test_a_write_that_was_interrupted_does_not_hide_what_syncs_cost(tmp_path: Path) -> None:
    counted = first_of_counters(
        trace_of(calls(_syncing(writes=40, write=20e-6, sync=4e-3))), tmp_path
    )

    assert counted.code == "frequent-sync"
    true = STEPS * 39 * 4e-3  # one sync of each step remains
    assert counted.saving.seconds == pytest.approx(true, rel=0.33)
    assert counted.saving.low < true


def _syncing(*, writes: int, write: float, sync: float) -> Iterator[dict[str, object]]:
    for rank in range(4):
        same = {"process": rank, "file": rank}
        for step in range(STEPS):
            now = 1.0 + 2.0 * step
            for number in range(writes):
                seconds = OUTLIER if number == step == 0 else write
                yield {
                    **same, "start": now, "seconds": seconds, "operation": "write",
                    "offset": (step * writes + number) * MIB // 8, "bytes": MIB // 8,
                }  # fmt: skip
                yield {**same, "start": now + seconds, "seconds": sync, "operation": "sync"}
                now += seconds + sync


@pytest.mark.parametrize("sync", [0.0, 0.05])
def test_one_rank_that_may_wait_for_storage_is_told_with_doubt(tmp_path: Path, sync: float) -> None:
    counted = first_of_counters(trace_of(calls(_gathered(sync)), processes=4), tmp_path)

    assert (counted.code, counted.culprit) == ("serial-io", {"rank": 0})
    saving = counted.saving
    # Three of four parts of the writes go; how long its syncs wait, counters do not tell.
    assert (saving.low < 0.2 * saving.seconds) is (sync > 0)


def _gathered(sync: float) -> Iterator[dict[str, object]]:
    same = {"process": 0, "file": 0}
    for step in range(STEPS):
        now = 1.0 + 2.0 * step
        for number in range(32):
            yield {
                **same, "start": now + 2e-3 * number, "seconds": 2e-3, "operation": "write",
                "offset": (32 * step + number) * MIB, "bytes": MIB,
            }  # fmt: skip
        if sync:
            yield {**same, "start": now + 0.07, "seconds": sync, "operation": "sync"}


def test_a_heavy_rank_whose_bytes_cost_more_is_told_with_doubt(tmp_path: Path) -> None:
    counted = first_of_counters(trace_of(calls(_uneven(heavy=64, dear=3e-3, cheap=2e-4))), tmp_path)

    assert (counted.code, counted.culprit) == ("data-imbalance", {"ranks": [1]})
    even = (64 + 3 * 3) / 4
    # At the least, what the others' part of it takes at its own pace remains.
    assert counted.saving.low == pytest.approx(STEPS * (64 - even) * 3e-3, rel=0.05)
    assert counted.saving.high == pytest.approx(STEPS * (64 * 3e-3 - even * 2e-4), rel=0.05)


def _uneven(*, heavy: int, dear: float, cheap: float) -> Iterator[dict[str, object]]:
    for rank in range(4):
        count, seconds = (heavy, dear) if rank == 1 else (3, cheap)
        for step in range(STEPS):
            for number in range(count):
                yield {
                    "process": rank, "file": rank, "start": 1.0 + 2.0 * step + number * seconds,
                    "seconds": seconds, "operation": "write",
                    "offset": (count * step + number) * MIB, "bytes": MIB,
                }  # fmt: skip
