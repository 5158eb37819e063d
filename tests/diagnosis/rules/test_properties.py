"""Shares do not change when ranks are doubled, files are split, or time is shifted."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

import ioprism
from benchmarks.synthetic import (
    Burst,
    MetadataStorm,
    Requests,
    Straggler,
    Workload,
    synthesise,
)
from ioprism import Job, MemoryPartition, Trace

SHARES = ("share", "imbalance", "consecutive_share")
MIXED = Workload(
    4,
    (
        Burst("/scratch/in.{rank}", "read", Requests(60, 2**18, small=0.5, random=0.5), length=6.0),
        Burst("/scratch/out.{rank}", "write", Requests(40, 2**21, misaligned=0.4), start=20.0,
              length=5.0),
    ),
    (MetadataStorm("/scratch/m{rank}.{number}", 40.0, 12.0, 100, 100, 50),),
    (Straggler(2, 3.0),),
    runtime=80.0,
)  # fmt: skip


def shares(trace: Trace) -> dict[tuple[str, str], float]:
    return {
        (finding.code, name): finding.evidence[name]
        for finding in ioprism.insights(trace).findings
        for name in SHARES
        if name in finding.evidence
    }


def changed(trace: Trace, events: pl.DataFrame, **job: object) -> Trace:
    facts: Job = replace(trace.job, **job)  # type: ignore[arg-type]
    return replace(trace, job=facts, partitions=(MemoryPartition(events),))


@pytest.fixture(scope="module")
def trace() -> Trace:
    return synthesise(MIXED).trace


@pytest.fixture(scope="module")
def expected(trace: Trace) -> dict[tuple[str, str], float]:
    return shares(trace)


def test_there_is_something_to_compare(expected: dict[tuple[str, str], float]) -> None:
    assert {"small-reads", "random-reads", "misaligned-file", "rank-time-imbalance"} <= {
        code for code, _ in expected
    }


def test_doubling_the_ranks_changes_no_share(
    trace: Trace, expected: dict[tuple[str, str], float]
) -> None:
    events = trace.events()
    files = trace.files.height
    twins = events.with_columns(
        rank=pl.col("rank") + 4, process=pl.col("process") + 4, file=pl.col("file") + files
    )
    doubled = changed(trace, pl.concat([events, twins]), ranks=8)
    both = pl.concat([trace.files, trace.files.with_columns(file=pl.col("file") + files)])
    seen = shares(replace(doubled, load_files=lambda: both))

    assert seen == pytest.approx(expected)


def test_splitting_files_changes_no_share(
    trace: Trace, expected: dict[tuple[str, str], float]
) -> None:
    files = trace.files.height
    later = pl.col("start") >= 20.0
    events = trace.events().with_columns(
        file=pl.when(later).then(pl.col("file") + files).otherwise("file")
    )
    both = pl.concat([trace.files, trace.files.with_columns(file=pl.col("file") + files)])
    seen = shares(replace(changed(trace, events), load_files=lambda: both))

    assert seen == pytest.approx(expected)


def test_shifting_time_changes_no_share(
    trace: Trace, expected: dict[tuple[str, str], float]
) -> None:
    events = trace.events().with_columns(pl.col("start", "end") + 1000.0)

    assert shares(changed(trace, events)) == pytest.approx(expected)
