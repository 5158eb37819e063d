"""Training runs: computing hides I/O, and a loop that reads its samples itself is told so."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ioprism import (
    EVENTS,
    PROCESSES,
    Job,
    LocalEngine,
    MemoryPartition,
    Trace,
    Verdict,
    diagnose,
    file_table,
    read,
)
from ioprism.diagnosis.training import kind_of, list_stages, stage_events

RANKS, EPOCHS, BATCHES, READ, COMPUTE = 4, 2, 5, 0.5, 1.0
WORKER = 100  # added to the thread number of a reading worker
CORPUS = Path(__file__).parents[2] / ".." / "shared" / "data" / "dftracer" / "dlio"


def row(start: float, seconds: float, rank: int, function: str, **more: Any) -> dict[str, Any]:
    told = {"layer": "application", "operation": "other", "process": rank, **more}
    return {"start": start, "end": start + seconds, "rank": rank, "function": function, **told}


def read_call(start: float, rank: int, *, thread: int) -> dict[str, Any]:
    data = {"layer": "posix", "operation": "read", "file": rank, "offset": 0, "bytes": 2**20}
    return row(start, READ, rank, "pread", **(data | {"process": thread}))


def loop(*, prefetch: bool) -> Trace:
    """Epochs of batches: read and compute in turn, or read the next batch while computing."""
    rows: list[dict[str, Any]] = []
    now = 0.0
    for _ in range(EPOCHS):
        begin = now
        for batch in range(BATCHES):
            waits = READ if batch == 0 or not prefetch else 0.001
            for rank in range(RANKS):
                rows.append(row(now, waits, rank, "fetch.iter"))
                rows.append(row(now + waits, COMPUTE, rank, "model.compute"))
                thread = rank + (WORKER if prefetch else 0)
                if batch == 0 or not prefetch:
                    rows.append(read_call(now, rank, thread=thread))
                elif batch:
                    rows.append(read_call(now - COMPUTE, rank, thread=thread))
            now += waits + COMPUTE
        rows += [row(begin, now - begin, rank, "train_epoch") for rank in range(RANKS)]
    rows += [row(0.0, now, rank, "app.run") for rank in range(RANKS)]
    events = EVENTS.conform(pl.DataFrame(rows, infer_schema_length=None)).sort("start")
    paths = [f"/data/train/{rank}.npz" for rank in range(RANKS)]
    ranks = pl.DataFrame({"process": range(RANKS), "rank": range(RANKS)})
    return Trace(
        "made", (), Job(ranks=RANKS, runtime=now), (MemoryPartition(events),),
        load_files=partial(file_table, paths), load_processes=lambda: PROCESSES.conform(ranks),
    )  # fmt: skip


def of(trace: Trace) -> Verdict:
    return diagnose(trace)


def test_a_loop_that_reads_its_samples_itself_could_hide_all_but_the_first_of_each_epoch() -> None:
    found = of(loop(prefetch=False))

    cause = found.causes[0]
    assert cause.code == "no-prefetch"
    assert cause.culprit == {"stage": "fetch.iter", "directory": "/data/train"}
    assert cause.saving.seconds == pytest.approx(EPOCHS * (BATCHES - 1) * READ, rel=0.05)
    assert found.io_stall.basis == "exposed"


def test_reading_that_computing_covers_stalls_nobody() -> None:
    found = of(loop(prefetch=True))

    assert found.io_stall.seconds == pytest.approx(EPOCHS * READ, rel=0.1)
    assert not [cause for cause in found.causes if cause.code == "no-prefetch"]


def test_computing_covers_reading_where_the_trace_does_not_tell_ranks() -> None:
    trace = loop(prefetch=True)
    alone = trace.events().filter(rank=0).with_columns(rank=pl.lit(None))

    found = of(replace(trace, partitions=(MemoryPartition(EVENTS.conform(alone)),)))

    assert found.io_stall.seconds == pytest.approx(EPOCHS * READ, rel=0.1)


def test_stages_have_their_time_and_their_share_of_each_epoch() -> None:
    told = {
        stage.name: stage
        for stage in list_stages(stage_events(loop(prefetch=False), LocalEngine()))
    }

    length = BATCHES * (READ + COMPUTE)
    assert told["application"].seconds == pytest.approx(EPOCHS * length)
    assert told["compute"].seconds == pytest.approx(EPOCHS * BATCHES * COMPUTE)
    assert told["compute"].unoverlapped == 0
    assert told["fetch"].unoverlapped == pytest.approx(EPOCHS * BATCHES * READ)
    assert [round(epoch.share, 3) for epoch in told["fetch"].epochs] == [0.333, 0.333]


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("TorchFramework.compute", "compute"),
        ("loop.iter", "fetch"),
        ("loop.yield", None),
        ("epoch.iter", "epoch"),
        ("DLIOBenchmark._train", "epoch"),
        ("TorchDataset.__getitem__", "sample"),
        ("PyTorchCheckpointing.save_checkpoint", "checkpoint"),
        ("DLIOBenchmark.run", "application"),
    ],
)
def test_functions_are_known_by_their_names(function: str, kind: str | None) -> None:
    assert kind_of(function) == kind


@pytest.mark.corpus
def test_a_public_training_run_without_workers_is_told_to_prefetch() -> None:
    found = of(read(CORPUS))

    told = {stage.name: stage.seconds for stage in found.stages}
    assert found.causes[0].code == "no-prefetch"
    assert told["application"] == pytest.approx(55.2, abs=0.1)
    assert told["fetch"] == pytest.approx(16.9, abs=0.1)
    # Every process computes 25 times 1.362 s; at some moment of 37.1 s at least one does.
    assert 34.0 <= told["compute"] <= 40.9
    assert found.causes[0].saving.seconds <= found.io_stall.seconds <= found.runtime
