"""Calls of all ranks that wait for each other are told from calls that merely take long."""

from __future__ import annotations

import polars as pl
import pytest

from ioprism import EVENTS, PROCESSES, Job, MemoryPartition, Trace, diagnose, file_table

RANKS, STEPS, PIECES = 8, 5, 40
WRITE_SECONDS, OPEN_SECONDS = 2e-4, 3e-4


def served_one_by_one(*, reopen: bool) -> pl.DataFrame:
    """Ranks that meet at each step; one server serves their calls in the order they come.

    They start one after the other, so that some moments are quiet.
    """
    cost = {"write": WRITE_SECONDS, "open": OPEN_SECONDS}
    script = ["open", *(["write", "open"] if reopen else ["write"]) * PIECES]
    rows, now = [], 0.0
    for _ in range(STEPS):
        now += 0.5
        ready = {rank: now + 0.003 * rank for rank in range(RANKS)}
        left = dict.fromkeys(range(RANKS), 0)
        server = now
        while ready:
            rank = min(ready, key=lambda one: (ready[one], one))
            operation, begin = script[left[rank]], ready[rank]
            server = max(server, begin) + cost[operation]
            rows.append((begin, server, rank, operation))
            left[rank] += 1
            ready[rank] = server + 1e-6
            if left[rank] == len(script):
                del ready[rank]
        now = server
    return pl.DataFrame(rows, schema=["start", "end", "rank", "operation"], orient="row")


def last(calls: pl.DataFrame) -> float:
    return float(calls["end"].to_numpy().max())


def traced(calls: pl.DataFrame) -> Trace:
    moved = pl.when(pl.col("operation") == "write").then(65536)
    events = EVENTS.conform(
        calls.sort("start").with_columns(
            process=pl.col("rank"), layer=pl.lit("posix"), function=pl.col("operation"),
            file=pl.col("rank"), bytes=moved, offset=pl.lit(None, dtype=pl.Int64),
            collective=pl.lit(None, dtype=pl.Boolean),
        )
    )  # fmt: skip
    files = file_table([f"/data/out.{rank}" for rank in range(RANKS)], [])
    numbers = list(range(RANKS))
    processes = PROCESSES.conform(
        pl.DataFrame({"process": numbers, "rank": numbers, "pid": numbers, "host": ["n"] * RANKS})
    )
    return Trace(
        "table", (), Job(ranks=RANKS, runtime=last(calls)), (MemoryPartition(events),),
        load_files=lambda: files, load_processes=lambda: processes,
    )  # fmt: skip


def test_reopening_saves_what_the_server_works_for_it_and_not_what_calls_wait() -> None:
    before, after = (served_one_by_one(reopen=flag) for flag in (True, False))
    saved = last(before) - last(after)

    found = diagnose(traced(before))

    assert found.causes[0].code == "metadata"
    assert found.causes[0].saving.seconds == pytest.approx(saved, rel=0.15)
    assert found.causes[0].saving.low <= saved <= found.causes[0].saving.high
