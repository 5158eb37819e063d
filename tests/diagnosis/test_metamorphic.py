"""What does not matter does not change a verdict: when a job ran, names, partitions, units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ioprism
from benchmarks.simulated_storage.cases import make
from ioprism import Insights, IoprismError, MemoryPartition, Trace, Verdict
from ioprism.engine.base import in_memory
from tests.conftest import SHARED_DATA, TEST_DATA

CLOSE = 0.05  # of a saving
SHIFT = 1000.0  # seconds
LARGEST = 2_000_000  # bytes of a log: enough kinds of them are smaller
SIMULATED = (
    "slow-node", "slow-rank", "interference", "data-skew", "rank-zero", "small-requests",
    "interleaved-shared", "misaligned-shared", "random-reads", "metadata-storm", "sync-each",
    "two-causes", "single-aggregator", "healthy",
)  # fmt: skip
SAMPLES = [
    *sorted(TEST_DATA.glob("darshan/*.darshan")),
    *sorted(path for path in TEST_DATA.glob("dftracer/*.pfw*") if "agg" not in path.name),
    *sorted(path for path in TEST_DATA.glob("recorder/*") if path.is_dir()),
    TEST_DATA / "strace/randread_np2.strace",
]


def _corpus() -> list[Path]:
    if not SHARED_DATA.is_dir():
        return []
    planted = sorted((SHARED_DATA / "causes").glob("*_1.darshan"))
    real = sorted((SHARED_DATA / "real_programs").rglob("*dxt*.darshan"))
    real = real or sorted((SHARED_DATA / "real_programs").rglob("*.darshan"))
    return [path for path in (*planted[::3], *real[::8]) if path.stat().st_size <= LARGEST]


LOGS = [
    *(pytest.param(kind, id=kind) for kind in SIMULATED),
    *(pytest.param(path, id=path.name) for path in SAMPLES),
    *(
        pytest.param(path, id=f"{path.parent.name}/{path.stem}", marks=pytest.mark.corpus)
        for path in _corpus()
    ),
]


@cache
def original(log: str | Path) -> Trace:
    """The trace with all its calls in memory and no counters beside them.

    Counters hold times and ranks of their own, which these tests do not change.
    """
    try:
        trace = make(log, seed=7).run.trace() if isinstance(log, str) else ioprism.read(log)
    except IoprismError as error:
        pytest.skip(str(error))
    held = replace(in_memory(trace), counters={})
    if not held.partitions or not held.events().height:
        pytest.skip("no single calls")
    return held


@cache
def insights_on(log: str | Path) -> Insights:
    return ioprism.insights(original(log))


def verdict_on(log: str | Path) -> Verdict:
    return insights_on(log).verdict


def with_events(trace: Trace, *pieces: pl.DataFrame, **more: Any) -> Trace:
    kept = {"load_files": lambda: trace.files, "load_processes": lambda: trace.processes}
    return replace(trace, partitions=tuple(map(MemoryPartition, pieces)), **(kept | more))


def stretched(trace: Trace, *, factor: float = 1.0, shift: float = 0.0) -> Trace:
    """The trace with all times multiplied, then moved; the clock may start at any moment."""
    events = trace.events().with_columns(pl.col("start", "end") * factor + shift)
    runtime = trace.job.runtime
    job = replace(trace.job, runtime=None if runtime is None else runtime * factor)
    return with_events(trace, events, job=job)


def renamed_files(trace: Trace) -> Trace:
    """Every last part of a name reversed; directories and endings stay."""

    def other(path: str) -> str:
        folder, _, name = path.rpartition("/")
        stem, dot, ending = name.partition(".")
        return f"{folder}/{stem[::-1]}{dot}{ending}" if folder else path

    table = trace.files.with_columns(
        path=pl.col("path").map_elements(other, return_dtype=pl.String)
    )
    return with_events(trace, trace.events(), load_files=lambda: table)


def by_time(events: pl.DataFrame) -> list[pl.DataFrame]:
    ordered = events.sort("start", maintain_order=True)
    return list(ordered.iter_slices(max(1, -(-events.height // 3))))


def by_rank(events: pl.DataFrame) -> list[pl.DataFrame]:
    maker = pl.coalesce("rank", "process", pl.lit(0)) % 4
    return [events.filter(maker == rest) for rest in range(4)]


def odd_and_even(events: pl.DataFrame) -> list[pl.DataFrame]:
    return [events.gather_every(2), events.gather_every(2, 1)]


# Requests of one size are split into a cost per request and a transfer at rates that storage has:
# these do not change with the clock. The interval holds all the same.
ABSOLUTE = {"small-requests"}


def check_same(
    changed: Verdict, log: str | Path, *, factor: float = 1.0,
    culprit: Callable[[dict[str, Any]], dict[str, Any]] = dict, shift: float = 0.0,
) -> None:  # fmt: skip
    """The same causes with the same culprits, and savings that are this many times as long."""
    known = verdict_on(log)
    assert changed.status == known.status
    stall = known.io_stall.seconds * factor
    assert changed.io_stall.seconds == pytest.approx(stall, rel=CLOSE, abs=1e-6)
    assert [one.code for one in changed.causes] == [one.code for one in known.causes]
    for now, before in zip(changed.causes, known.causes, strict=True):
        saved = before.saving
        if now.code in ABSOLUTE and factor != 1:
            assert saved.low * factor <= now.saving.seconds <= saved.high * factor
        else:
            expected_saving = saved.seconds * factor
            assert now.saving.seconds == pytest.approx(expected_saving, rel=CLOSE, abs=1e-6)
        expected = culprit(dict(before.culprit))
        for moment in ("from", "to"):
            if moment in expected:
                when = expected.pop(moment) * factor + shift
                assert now.culprit[moment] == pytest.approx(when, rel=1e-3, abs=1e-3)
        assert {key: now.culprit[key] for key in expected} == expected


@pytest.mark.parametrize("log", LOGS)
def test_when_a_job_runs_does_not_matter(log: str | Path) -> None:
    trace = original(log)
    if trace.job.runtime is None:
        pytest.skip("without a run time, the last call tells when the job ends")

    check_same(ioprism.diagnose(stretched(trace, shift=SHIFT)), log, shift=SHIFT)


@pytest.mark.parametrize("log", LOGS)
def test_twice_the_time_costs_twice_the_time(log: str | Path) -> None:
    slow = ioprism.diagnose(stretched(original(log), factor=2.0))

    check_same(slow, log, factor=2.0)


@pytest.mark.parametrize("log", LOGS)
def test_names_of_files_do_not_matter(log: str | Path) -> None:
    trace = original(log)
    other = renamed_files(trace)
    names = dict(zip(trace.files["path"], other.files["path"], strict=True))

    def culprit(named: dict[str, Any]) -> dict[str, Any]:
        changed = dict(named)
        if "file" in changed:
            changed["file"] = names.get(changed["file"], changed["file"])
        if "files" in changed:
            changed["files"] = [names[path] for path in changed["files"]]
        return changed

    check_same(ioprism.diagnose(other), log, culprit=culprit)


@pytest.mark.parametrize("log", LOGS)
def test_numbers_of_ranks_do_not_matter(log: str | Path) -> None:
    trace = original(log)
    events, processes = trace.events(), trace.processes
    known = sorted(set(events["rank"].drop_nulls()) | set(processes["rank"].drop_nulls()))
    if len(known) < 2:
        pytest.skip("there is one rank")
    new = {rank: known[len(known) - 1 - place] for place, rank in enumerate(known)}

    def look_up_rows(table: pl.DataFrame) -> pl.DataFrame:
        same = table.schema["rank"]
        return table.with_columns(pl.col("rank").replace_strict(new, return_dtype=same))

    def culprit(named: dict[str, Any]) -> dict[str, Any]:
        changed = dict(named)
        if "ranks" in changed:
            changed["ranks"] = sorted(new[rank] for rank in changed["ranks"])
        if changed.get("rank") is not None:
            changed["rank"] = new[changed["rank"]]
        return changed

    other = with_events(trace, look_up_rows(events), load_processes=lambda: look_up_rows(processes))
    check_same(ioprism.diagnose(other), log, culprit=culprit)


@pytest.mark.parametrize("split", [by_time, by_rank, odd_and_even])
@pytest.mark.parametrize("log", LOGS)
def test_partitions_do_not_matter(
    log: str | Path, split: Callable[[pl.DataFrame], list[pl.DataFrame]]
) -> None:
    trace = original(log)
    parts = with_events(trace, *(piece for piece in split(trace.events()) if piece.height))

    found = ioprism.insights(parts)  # has the verdict of `diagnose`, see test_one_verdict

    check_same(found.verdict, log)
    known = insights_on(log).findings
    assert {one.code for one in found.findings} == {one.code for one in known}
