"""What counters say of a run holds what its single calls say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from benchmarks.simulated_storage.cases import COUNTERS_ONLY, make, write_case
from benchmarks.synthetic.darshan_content import FILE_ALIGNMENT, log_content
from benchmarks.synthetic.darshan_writer import write_log
from ioprism import Cause, Trace, Verdict, diagnose, read
from ioprism.model.verdict import Possible
from tests.call_tables import calls, trace_of

MIB = 2**20
STEPS = 4
OUTLIER = 23e-3  # seconds of one write of each rank, which was interrupted


def of_counters(trace: Trace, folder: Path) -> Verdict:
    path = folder / "job.darshan"
    write_log(path, log_content(trace, file_alignment=FILE_ALIGNMENT, modules=COUNTERS_ONLY))
    return diagnose(read(path))


def most_saved(found: Verdict, code: str) -> float:
    """Seconds that a cause, or what may be one, saves at most."""
    causes = [cause.saving.high for cause in found.causes if cause.code == code]
    return max([*causes, *(one.upper for one in found.possible if one.code == code)], default=0.0)


def _file_per_process(ranks: int, targets: int, *, slow: int) -> Trace:
    """Each rank writes one file on one target and syncs it; on a slow target that takes long."""
    rows = [
        row
        for rank in range(ranks)
        for sync in ((0.5 + 0.03 * (rank // targets)) * (40.0 if rank % targets == slow else 1.0),)
        for row in (
            *({"start": 0.1 + 0.002 * n, "seconds": 0.002, "process": rank, "file": rank,
               "operation": "write", "bytes": 4 * MIB, "offset": 4 * MIB * n} for n in range(16)),
            {"start": 0.2, "seconds": sync, "process": rank, "file": rank, "operation": "sync",
             "function": "fsync"},
        )
    ]  # fmt: skip
    trace = trace_of(calls(rows))
    files = trace.files.with_columns(
        pl.Series("targets", [[rank % targets] for rank in range(ranks)]),
        stripe_size=pl.lit(MIB, pl.Int64),
    )
    job = replace(trace.job, start_time=1e9, end_time=1e9 + 50.0, runtime=50.0)
    return replace(trace, job=job, load_files=lambda: files)


def test_ranks_that_share_a_target_do_not_hide_that_another_target_is_slow(tmp_path: Path) -> None:
    found = of_counters(_file_per_process(192, 8, slow=3), tmp_path)

    assert (found.causes[0].code, found.causes[0].culprit["target"]) == ("slow-target", 3)
    assert found.causes[0].saving.seconds == pytest.approx(39 * (0.5 + 0.03 * 23), rel=0.1)
    assert "38.6 times as long" in found.causes[0].title  # with the writes before the sync
    assert not any("-o" in (one.snippet or "") for one in found.causes[0].advice)  # for all files


@pytest.mark.parametrize(("ranks", "targets"), [(16, 4), (12, 6), (24, 8)])
def test_a_slow_target_is_found_however_few_ranks_use_it(
    ranks: int, targets: int, tmp_path: Path
) -> None:
    found = of_counters(_file_per_process(ranks, targets, slow=1), tmp_path)

    assert (found.causes[0].code, found.causes[0].culprit["target"]) == ("slow-target", 1)
    slowest = 0.5 + 0.03 * ((ranks - 1) // targets)
    assert found.causes[0].saving.seconds == pytest.approx(39 * slowest, rel=0.1)
    assert found.causes[0].saving.low > 0.6 * found.causes[0].saving.seconds


@pytest.mark.parametrize("seed", [5212, 5213, 5215])
def test_counters_promise_no_more_for_a_single_writer_than_its_calls(
    seed: int, tmp_path: Path
) -> None:
    case = make("rank-zero", seed=seed)
    answers = []
    for name, counters_only in (("calls", False), ("counters", True)):
        write_case(tmp_path, name, case, counters_only=counters_only)
        answers.append(diagnose(read(tmp_path / f"{name}.darshan")).causes[0])

    assert {one.code for one in answers} == {"serial-io"}
    assert answers[1].saving.seconds == pytest.approx(answers[0].saving.seconds, rel=0.1)
    saving = case.truth["saving"]
    assert isinstance(saving, float)
    assert answers[1].saving.low <= saving <= answers[1].saving.high


def test_a_write_that_was_interrupted_does_not_hide_what_syncs_cost(tmp_path: Path) -> None:
    found = of_counters(trace_of(calls(_syncing(writes=40, write=20e-6, sync=4e-3))), tmp_path)

    true = STEPS * 39 * 4e-3  # one sync of each step remains
    assert true <= most_saved(found, "frequent-sync") <= 1.33 * true
    assert found.status != "none"


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
    found = of_counters(trace_of(calls(_gathered(sync)), processes=4), tmp_path)

    # Under one shared limit nothing is gained; with several, three of four parts of the writes go.
    assert found.status == "possible"
    assert found.possible[0].code == "serial-io"
    assert found.possible[0].upper >= 0.75 * STEPS * 32 * 2e-3
    assert "single rank" in found.line


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
    found = of_counters(trace_of(calls(_uneven(heavy=64, dear=3e-3, cheap=2e-4))), tmp_path)

    even = (64 + 3 * 3) / 4
    # At the least, what the others' part of it takes at its own pace remains.
    assert most_saved(found, "data-imbalance") >= STEPS * (64 - even) * 3e-3
    told: list[Cause | Possible] = [*found.causes, *found.possible]
    assert [one.culprit for one in told if one.code == "data-imbalance"] == [{"ranks": [1]}]


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
