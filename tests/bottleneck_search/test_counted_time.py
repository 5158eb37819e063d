"""The slowest process has the time that counters say: of shared records, and of syncs."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import ioprism
from benchmarks.simulated_storage.cases import make, write_case

DATA = Path(__file__).parents[1] / "data" / "darshan"


def test_syncs_count_where_extended_tracing_leaves_them_out() -> None:
    name = "a_ckpt_fpp_period5s"
    ranks = json.loads((DATA / f"{name}.truth.json").read_text())["ranks"]

    totals = ioprism.bottlenecks(ioprism.read(DATA / f"{name}.darshan")).totals

    assert totals["io_time"] == pytest.approx(max(rank["io_time_s"] for rank in ranks), rel=0.01)
    assert totals["io_time_sum"] == pytest.approx(sum(r["io_time_s"] for r in ranks), rel=0.01)


def test_a_record_of_all_ranks_takes_as_long_as_its_slowest(tmp_path: Path) -> None:
    write_case(tmp_path, "case", make("redundant-reads", seed=7), counters_only=True)
    trace = ioprism.read(tmp_path / "case.darshan")
    records = trace.counters["POSIX"]
    assert (records["rank"] == -1).any()

    totals = ioprism.bottlenecks(trace).totals

    shared = records.filter(pl.col("rank") == -1)["POSIX_F_SLOWEST_RANK_TIME"].to_numpy().sum()
    times = [f"POSIX_F_{kind}_TIME" for kind in ("READ", "WRITE", "META")]
    own = records.filter(pl.col("rank") >= 0).select(pl.sum_horizontal(times)).to_series()
    assert shared <= float(totals["io_time"] or 0) <= shared + own.to_numpy().sum() + 1e-6
    assert float(totals["io_time"] or 0) < float(totals["io_time_sum"] or 0) / 2
    assert totals["processes"] == trace.job.ranks
