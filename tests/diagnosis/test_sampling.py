"""A large trace is judged by a sample of its phases, and the answer stays about the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchmarks.simulated_storage.cases import make, write_case
from ioprism import (
    EVENTS,
    FILES,
    PROCESSES,
    Job,
    LocalEngine,
    MemoryPartition,
    Trace,
    diagnose,
    file_table,
    read,
)
from ioprism.diagnosis import sampling
from ioprism.model.arrays import unite
from tests.call_tables import calls, trace_of
from tests.counted_passes import Counted


def test_a_sample_finds_the_same_cause_and_about_the_same_saving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_case(tmp_path, "case", make("slow-target", seed=2))
    trace = read(next(tmp_path.glob("*.darshan")))
    whole = diagnose(trace)
    calls = trace.events().height

    monkeypatch.setattr(sampling.sampled_calls, "__kwdefaults__", {"most": calls // 2})
    part = diagnose(trace)

    assert part.causes[0].code == whole.causes[0].code == "slow-target"
    assert part.causes[0].culprit == whole.causes[0].culprit
    assert part.causes[0].saving.seconds == pytest.approx(whole.causes[0].saving.seconds, rel=0.25)
    assert part.io_stall.seconds == pytest.approx(whole.io_stall.seconds, rel=0.15)


RANKS, STEPS, CALLS, TARGETS = 32, 4, 2000, 8
CALL, SLOWER = 1e-4, 4.0


def long_phases() -> Trace:
    """Few phases of many calls; ranks whose file lies on the last target are in calls longest."""
    ranks = np.arange(RANKS)
    each = np.where(ranks % TARGETS == TARGETS - 1, SLOWER * CALL, CALL)[None, :, None]
    noise = np.random.default_rng(seed=5).lognormal(0.0, 0.1, (STEPS, RANKS, CALLS))
    taken = (each * noise / noise.mean(axis=2, keepdims=True)).cumsum(axis=2)
    length = SLOWER * CALL * CALLS
    before = np.concatenate((np.zeros((STEPS, RANKS, 1)), taken[:, :, :-1]), axis=2)
    begin = (np.arange(STEPS) * (length + 1))[:, None, None]
    start, end = (begin + before).ravel(), (begin + taken).ravel() - 1e-6
    rank = np.broadcast_to(ranks[None, :, None], (STEPS, RANKS, CALLS)).ravel()
    offset = np.broadcast_to(np.arange(CALLS) * 65536, (STEPS, RANKS, CALLS)).ravel()
    events = EVENTS.conform(
        pl.DataFrame(
            {
                "start": start, "end": end, "rank": rank, "process": rank,
                "file": rank, "offset": offset, "bytes": 65536, "layer": "posix",
                "operation": "write", "function": "pwrite",
            }
        )
    )  # fmt: skip
    files = file_table([f"/scratch/out.{number}" for number in ranks], []).with_columns(
        stripe_size=pl.lit(2**20, pl.Int64),
        targets=pl.Series([[int(number) % TARGETS] for number in ranks], dtype=pl.List(pl.Int64)),
    )
    processes = PROCESSES.conform(pl.DataFrame({"process": ranks, "rank": ranks, "pid": ranks}))
    return Trace(
        "table", (), Job(ranks=RANKS, runtime=STEPS * (length + 1)), (MemoryPartition(events),),
        load_files=lambda: FILES.conform(files), load_processes=lambda: processes,
    )  # fmt: skip


def test_slices_of_phases_that_are_too_large_tell_when_ranks_are_done() -> None:
    trace = long_phases()
    length = SLOWER * CALL * CALLS * STEPS

    sample = sampling.sampled_calls(trace, LocalEngine(), most=30_000)

    assert sample.events.height <= 30_000
    spent = pl.col("end") - pl.col("start")
    slow = sample.events.filter(pl.col("rank") % TARGETS == TARGETS - 1).select(spent.sum()).item()
    sound = sample.events.select(spent.sum()).item() - slow
    seen = slow / (RANKS // TARGETS), sound / (RANKS - RANKS // TARGETS)
    assert seen[0] == pytest.approx(length * sample.share, rel=0.1)
    assert seen[1] == pytest.approx(length / SLOWER * sample.share, rel=0.25)


def test_a_slow_target_is_found_in_slices_of_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling.sampled_calls, "__kwdefaults__", {"most": 30_000})

    found = diagnose(long_phases())

    length = SLOWER * CALL * CALLS * STEPS
    assert found.io_stall.seconds == pytest.approx(length, rel=0.1)
    assert found.causes[0].code == "slow-target"
    assert found.causes[0].culprit["target"] == TARGETS - 1
    assert found.causes[0].saving.seconds == pytest.approx(length * (1 - 1 / SLOWER), rel=0.33)


def test_a_sample_stands_for_just_as_much_time_as_its_calls_take() -> None:
    trace = long_phases()

    part = sampling.sampled_calls(trace, LocalEngine(), most=20_000)

    seconds = [
        float((end - start).sum())
        for events in (part.events, trace.events())
        for start, end in [unite(events["start"].to_numpy(), events["end"].to_numpy())]
    ]
    assert part.events.height <= 20_000
    assert part.share == pytest.approx(seconds[0] / seconds[1])


@pytest.mark.parametrize("last", [0.0, 5.0])
def test_a_sample_of_calls_without_duration_stands_for_their_number(
    last: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"start": n / 10, "seconds": last * (n == 999), "bytes": 4096} for n in range(1000)]
    trace = trace_of(calls(rows))

    sample = sampling.sampled_calls(trace, LocalEngine(), most=100)
    monkeypatch.setattr(sampling.sampled_calls, "__kwdefaults__", {"most": 100})

    assert sample.share == pytest.approx(sample.events.height / 1000)
    assert diagnose(trace).io_stall.seconds == 0.0


def test_calls_of_a_single_phase_are_not_counted_before_it_is_sliced() -> None:
    rows = [{"start": n / 10, "seconds": 0.1, "bytes": 4096} for n in range(1000)]
    engine = Counted()

    sample = sampling.sampled_calls(trace_of(calls(rows)), engine, most=100)

    assert 0 < sample.events.height <= 100
    assert engine.passes == [3, 1, 1]  # when there is I/O, calls by slice, some of them


def test_few_calls_are_taken_with_the_first_pass() -> None:
    rows = [{"start": n / 10, "seconds": 0.1, "bytes": 4096} for n in range(1000)]
    engine = Counted()

    sample = sampling.sampled_calls(trace_of(calls(rows)), engine, most=1000)

    assert sample.share == 1
    assert sample.events.height == 1000
    assert len(engine.passes) == 1
