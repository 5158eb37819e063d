"""The simulated machine keeps bytes and order, obeys its queues, and repeats itself."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from benchmarks.simulated_storage.hardware import FileSystem, Machine, MiB, Noise, Window
from benchmarks.simulated_storage.patterns import Builder, session, stripes, transfer
from benchmarks.simulated_storage.play import Recorded
from benchmarks.simulated_storage.program import Asked, Call, Program, Step
from benchmarks.simulated_storage.simulate import Run, run

STILL = FileSystem(targets=4, rate=100 * MiB, request_cost=0.0, noise=Noise(spread=0.0))


def machine(**changes: object) -> Machine:
    system = replace(STILL, **changes)  # type: ignore[arg-type]
    return Machine(
        ranks_per_host=4, link_rate=1e15, latency=0.0, copy_rate=1e15, call_cost=0.0,
        file_systems=(system,),
    )  # fmt: skip


def writers(ranks: int, *, targets: int, size: int = MiB, count: int = 4) -> Program:
    builder = Builder(ranks)
    files = builder.file_per_rank("/scratch/f{rank}", lambda rank: (rank % targets,))
    scripts = {r: transfer(f, "write", 0, size * count, size) for r, f in enumerate(files)}
    builder.step(scripts, 1.0)
    return builder.program()


def seconds_in_calls(done: Run) -> float:
    return max(done.recorded.end) - min(done.recorded.start)


@pytest.mark.parametrize("discipline", ["fifo", "sharing"])
def test_a_target_never_serves_more_than_its_rate(discipline: str) -> None:
    done = run(writers(8, targets=2), machine(discipline=discipline), seed=1)

    # 16 MiB on each of two targets of 100 MiB/s
    assert seconds_in_calls(done) == pytest.approx(0.16, rel=0.01)


def test_sharing_lets_all_end_together_where_a_queue_lets_them_end_in_turn() -> None:
    program = writers(4, targets=1, count=1)

    shared = run(program, machine(discipline="sharing"), seed=1).recorded.end
    queued = run(program, machine(discipline="fifo"), seed=1).recorded.end

    assert max(shared) - min(shared) < 0.001
    assert sorted(queued) == pytest.approx([1.01, 1.02, 1.03, 1.04], abs=0.001)


def test_every_byte_asked_for_is_in_the_trace() -> None:
    events = run(writers(6, targets=4), machine(), seed=3).trace().events()

    moved = events.filter(operation="write").group_by("rank").agg(pl.col("bytes").sum())
    assert moved["bytes"].to_list() == [4 * MiB] * 6


def test_calls_of_one_rank_never_overlap() -> None:
    events = run(writers(8, targets=3), Machine(), seed=5).trace().events().sort("rank", "start")

    overlap = (pl.col("end").shift(1) - pl.col("start")).over("rank").max()
    assert events.select(overlap).item() <= 1e-9


def test_the_same_seed_gives_the_same_run_and_another_one_does_not() -> None:
    program = writers(8, targets=4)

    first, again, other = (run(program, Machine(), seed=seed).recorded.end for seed in (7, 7, 8))

    assert first == again
    assert first != other


def test_a_slow_target_slows_its_files_only() -> None:
    ends = run(writers(4, targets=4), machine(slow={2: 5.0}), seed=1).trace().events()

    last = dict(ends.group_by("rank").agg(pl.col("end").max()).iter_rows())
    assert last[2] - 1.0 == pytest.approx(5 * (last[0] - 1.0), rel=0.02)


def test_others_jobs_slow_down_only_their_stretch_of_time() -> None:
    busy = machine(windows=(Window(0.0, 1.02, 4.0),))

    slow, fast = (run(writers(1, targets=1), one, seed=1).runtime for one in (busy, machine()))

    assert slow - fast == pytest.approx(0.03, rel=0.01)  # one of four requests began in it


def test_a_lock_block_changes_hands_for_a_price() -> None:
    builder = Builder(2)
    file = builder.file("/scratch/shared", stripes(0, 4, 4))
    builder.step({r: [Call("write", file, r * 1024, 1024)] for r in range(2)}, 1.0)

    done = run(builder.program(), machine(lock_cost=0.5), seed=1)

    assert done.runtime == pytest.approx(1.5, rel=0.01)


def test_reads_out_of_order_pay_for_seeks_and_reads_in_order_do_not() -> None:
    def reading(places: list[int]) -> float:
        builder = Builder(1)
        file = builder.file("/scratch/data")
        builder.step({0: [Call("read", file, p * 4096, 4096) for p in places]}, 0.0)
        return run(builder.program(), machine(seek_cost=0.1), seed=1).runtime

    assert reading([0, 1, 2, 3]) < 0.01
    assert reading([3, 1, 2, 0]) == pytest.approx(0.2, rel=0.05)


def test_one_metadata_server_serves_opens_one_after_the_other() -> None:
    builder = Builder(10)
    files = builder.file_per_rank("/scratch/f{rank}", lambda _: (0,))
    builder.step({r: session(f, []) for r, f in enumerate(files)}, 0.0)

    one, several = (
        run(builder.program(), machine(metadata_cost=0.1, metadata_servers=n), seed=1).runtime
        for n in (1, 4)
    )

    assert one == pytest.approx(1.0, rel=0.01)
    assert several <= one


def test_collective_calls_begin_apart_and_end_together() -> None:
    builder = Builder(4)
    file = builder.file("/scratch/all", stripes(0, 4, 4))
    asked = {r: Asked("write", file, r * MiB, MiB) for r in range(4)}
    whole = {0: transfer(file, "write", 0, 4 * MiB, 4 * MiB)}
    builder.steps.append(Step(whole, [0.1, 0.2, 0.3, 0.4], asked, collective=True))

    events = run(builder.program(), machine(), seed=1).trace().events()

    above = events.filter(layer="mpiio")
    assert above["end"].n_unique() == 1
    assert above["start"].n_unique() == 4
    assert above["bytes"].sum() == events.filter(layer="posix")["bytes"].sum()


def test_independent_ranks_do_not_wait_for_each_other() -> None:
    builder = Builder(2)
    files = builder.file_per_rank("/scratch/f{rank}", lambda r: (r,))
    for _ in range(3):
        builder.step({r: [Call("write", f, 0, MiB)] for r, f in enumerate(files)}, [0.1, 1.0])

    together = run(builder.program(), machine(), seed=1).recorded
    apart = run(builder.program(independent=True), machine(), seed=1).recorded

    def last_of_first(recorded: Recorded) -> float:
        return max(e for e, r in zip(recorded.end, recorded.rank, strict=True) if r == 0)

    assert last_of_first(apart) < 0.5 < last_of_first(together)
