"""Volumes of a year of real benchmark jobs come out as the public tables say."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

from ioprism.model.counters import SECOND, TARGET
from ioprism.servers import COUNTERS, JOBS
from ioprism.servers.fleet import summarise_fleet
from ioprism.servers.job_metrics import job_metrics
from ioprism.servers.load import machine_load
from ioprism.servers.series import MetricSettings
from tests.servers.sources import Memory

NEEDED = ("_jobid", "_datetime_start", "_datetime_end", "fs_tot_bytes_read", "fs_tot_bytes_written")


def public_table(path: Path) -> pl.DataFrame:
    """Read the columns needed; these tables have no heading over their first column."""
    names = ["row", *gzip.decompress(path.read_bytes()).partition(b"\n")[0].decode().split(",")]
    table = pl.read_csv(path, has_header=False, skip_rows=1, infer_schema=False)
    return table.rename(dict(zip(table.columns, names, strict=True))).select(NEEDED)


@pytest.mark.corpus
@pytest.mark.parametrize("system", ["cori", "edison"])
def test_a_year_of_jobs_keeps_its_volumes(shared_data: Path, system: str) -> None:
    path = next((shared_data / "tokio").glob(f"{system}-*.csv.gz"))
    runs = (
        public_table(path)
        .with_columns(pl.col(NEEDED[1:]).cast(pl.Float64, strict=False))
        .drop_nulls()
        .filter(pl.col("_datetime_end") > pl.col("_datetime_start"))
        .unique("_jobid", keep="first", maintain_order=True)
    )
    start, end = pl.col("_datetime_start") * SECOND, pl.col("_datetime_end") * SECOND
    jobs = runs.select(job="_jobid", start_us=start.cast(pl.Int64), end_us=end.cast(pl.Int64))
    counted = runs.select(
        job="_jobid", server=pl.lit("all"), part=pl.lit(""), source=pl.lit(TARGET),
        since_us=start.cast(pl.Int64), time_us=end.cast(pl.Int64),
        br=pl.col("fs_tot_bytes_read").cast(pl.Int64),
        bw=pl.col("fs_tot_bytes_written").cast(pl.Int64),
    )  # fmt: skip
    table = JOBS.conform(jobs).with_columns(pl.col("servers").fill_null([]))

    source, settings = Memory(COUNTERS.conform(counted)), MetricSettings(5 * SECOND, min_runtime=0)
    metrics = job_metrics(source, table, settings=settings)
    load = machine_load(source, table, settings=settings)

    assert metrics.table.height == runs.height > 500
    joined = metrics.table.join(runs, left_on="job", right_on="_jobid")
    for ours, theirs in (("read_bytes", NEEDED[3]), ("write_bytes", NEEDED[4])):
        assert (joined[ours] - joined[theirs]).abs().to_numpy().max() <= 1
    totals = summarise_fleet(metrics, load).totals["write"]
    assert totals.bytes == totals.attributed == pytest.approx(runs[NEEDED[4]].sum())
