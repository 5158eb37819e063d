"""Counters in memory, and tables of them written by hand."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from polars.testing import assert_frame_equal

from ioprism.model.counters import SECOND, TABLE, VALUES
from ioprism.servers import COUNTERS, JOBS, ReadingOptions, Tally
from ioprism.servers.formats.tables import CounterTableReader
from ioprism.servers.job_metrics import job_metrics
from ioprism.servers.raw_files import read_jobs
from ioprism.servers.series import MetricSettings
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "servers"
CASES = sorted(path.name.partition(".")[0] for path in DATA.glob("*.expected.json"))


class Memory:
    """A source of counters that holds one table."""

    def __init__(self, table: pl.DataFrame) -> None:
        self.table = COUNTERS.conform(table)

    def servers(self) -> Sequence[str]:
        return self.table["server"].unique().sort().to_list()

    def per_job_servers(self) -> Sequence[str]:
        own = self.table.filter(pl.col("job").is_not_null())
        return own["server"].unique().sort().to_list()

    def span(self) -> tuple[int, int] | None:
        times = self.table["time_us"].to_list()
        return (min(times), max(times)) if times else None

    def counters(
        self, server: str, *, start_us: int, end_us: int, per_job: bool = False
    ) -> pl.DataFrame:
        mine = (pl.col("server") == server) & (pl.col("job").is_not_null() == per_job)
        return self.table.filter(mine & pl.col("time_us").is_between(start_us, end_us))


def samples(
    server: str,
    written: dict[float, int],
    *,
    job: str | None = None,
    source: str = TABLE,
    part: str = "",
    since: float | None = None,
) -> pl.DataFrame:
    """Samples of bytes written, at seconds; one operation a mebibyte, nothing read."""
    rows = [
        {"server": server, "part": part, "job": job, "source": source,
         "since_us": None if since is None else round(since * SECOND),
         "time_us": round(time * SECOND), "bw": value, "wc": value >> 20,
         **{name: 0 for name in VALUES if name not in ("bw", "wc")}}
        for time, value in written.items()
    ]  # fmt: skip
    return COUNTERS.conform(pl.DataFrame(rows, infer_schema_length=None))


def one_job(start: float, end: float, *servers: str, job: str = "1") -> pl.DataFrame:
    row = {
        "job": job,
        "start_us": round(start * SECOND),
        "end_us": round(end * SECOND),
        "servers": list(servers),
    }
    return JOBS.conform(pl.DataFrame([row], schema_overrides={"servers": pl.List(pl.String)}))


def measured(
    table: pl.DataFrame, jobs: pl.DataFrame, *, interval: float = 120.0, **settings: object
) -> pl.DataFrame:
    chosen = {"min_runtime": 0.0, **settings}
    method = MetricSettings(round(interval * SECOND), **chosen)  # type: ignore[arg-type]
    return job_metrics(Memory(table), jobs, settings=method).table


def assert_alike(found: pl.DataFrame, wanted: pl.DataFrame) -> None:
    """Compare tables; numbers may differ by rounding."""
    assert_frame_equal(found, wanted, rel_tol=1e-9, abs_tol=1e-9)


def case(name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The counters and the job of a case."""
    reader = CounterTableReader()
    tables = reader.read(DATA / f"{name}.counters.csv", ReadingOptions(), Tally())
    jobs = read_jobs(DATA / f"{name}.jobs.csv", ReadingOptions(), Tally())
    return pl.concat(tables), jobs
