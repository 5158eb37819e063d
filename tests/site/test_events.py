"""What is planted in a centre's tables is named with its dates, and nothing else is."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ioprism.site.events import SiteEvent, noisy_neighbours, site_events
from ioprism.site.store import SITE_TABLES
from ioprism.site.summary import Chosen, SiteTables, site_story, site_table, with_hours
from ioprism.units import DAY

DAYS = 60.0
JOBS = 1500
SICK, HALVED, ALONE = (20.0, 30.0), 25.0, 35.0  # days
NOISY = "noisy"


def tables(seed: int, *, planted: bool = True) -> SiteTables:
    """A centre of ten applications; users run inputs of two sizes, each for some weeks."""
    rng = np.random.default_rng(seed)
    start = np.sort(rng.uniform(0, DAYS, JOBS))
    names = rng.integers(0, 10, JOBS)
    noisy_days = rng.random(int(DAYS)) < 0.5
    noise = np.array([noisy_days[int(day)] and day % 1 < 0.3 for day in start]) & planted
    large = np.sin(start / 9 + names) > 0  # campaigns, not changes
    moved = np.where(large, 8, 1) * 2**30
    halved = (names == 3) & (start >= HALVED) & planted
    request = np.where(halved, 2**19, 2**20) * np.where(large, 4, 1)
    held = rng.lognormal(2.0, 0.2, JOBS) * np.where(noise, 3.0, 1.0)
    keys = [f"job{number}" for number in range(JOBS)]
    jobs = pl.DataFrame(
        {
            "job": keys,
            "application": [f"code{name}" for name in names],
            "user": [f"user{name % 4}" for name in names],
            "start": start * DAY,
            "runtime": 60.0 + held,
            "io_stall": held,
            "nodes": 1,
            "ranks": np.where(large, 64, 8),
            "bytes_written": moved,
            "bytes_read": 0,
            "operations": moved // request,
            "request_bytes": request.astype(float),
            "collective": np.where((names == 5) & (start >= ALONE) & planted, 0.0, 1.0),
            "metadata": rng.poisson(50, JOBS),
            "files": 8,
            "stripe_count": 4.0,
            "rate": moved / held,
        }
    )
    runs = [day for day in range(int(DAYS)) if noisy_days[day]]
    neighbour = pl.DataFrame(
        {
            "job": [f"noisy{day}" for day in runs],
            "application": NOISY,
            "user": "user9",
            "start": [day * DAY for day in runs],
            "runtime": 0.3 * DAY,
            "io_stall": 600.0,
        }
    )
    columns = SITE_TABLES["jobs"].schema
    every = pl.concat([jobs, neighbour], how="diagonal_relaxed")
    missing = {
        name: pl.lit("" if dtype == pl.String else 0, dtype=dtype)
        for name, dtype in columns.items()
        if name not in every.columns
    }
    filled = every.with_columns(**missing).with_columns(
        pl.col("bytes_read", "bytes_written").fill_null(0),
        pl.col("nodes", "ranks", "operations", "metadata", "files").fill_null(1),
    )
    return with_hours(
        SiteTables(
            filled.select(pl.col(name).cast(dtype) for name, dtype in columns.items()),
            SITE_TABLES["causes"].empty(),
            parts(rng, start, keys, "target", sick=4 if planted else -1, span=SICK),
            parts(rng, start, keys, "host", sick=2 if planted else -1, span=(40.0, 43.0)),
            SITE_TABLES["files"].empty(),
        )
    )


def parts(
    rng: np.random.Generator,
    start: np.ndarray,
    keys: list[str],
    name: str,
    *,
    sick: int,
    span: tuple[float, float],
) -> pl.DataFrame:
    """Four of eight targets or nodes for every job."""
    rows = []
    for key, when in zip(keys, start.tolist(), strict=True):
        for number in rng.permutation(8)[:4].tolist():
            slow = number == sick and span[0] <= when < span[1]
            rate = float(rng.lognormal(0.0, 0.15)) * (0.3 if slow else 1.0)
            rows.append((key, when * DAY, str(number), 1, 2**30, 1.0, rate, rate))
    columns = ["job", "start", name, "operations", "bytes", "seconds", "rate", "relative"]
    made = pl.DataFrame(rows, schema=columns, orient="row").with_columns(
        file_system=pl.lit("/scratch")
    )
    return SITE_TABLES[f"{name}s"].conform(made)


def days(event: SiteEvent) -> tuple[str, str]:
    return event.kind, event.subject


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_planted_is_named_with_its_dates_and_nothing_else(seed: int) -> None:
    made = tables(seed)
    found = {
        days(event): event
        for event in site_events(made.jobs, made.causes, made.targets, made.hosts)
    }

    assert set(found) == {
        ("slow-target", "4"),
        ("slow-node", "2"),
        ("changed-application", "code3"),
        ("changed-application", "code5"),
        ("noisy-neighbour", NOISY),
    }
    target, node = found["slow-target", "4"], found["slow-node", "2"]
    assert target.end is not None
    assert node.end is not None
    assert [target.start / DAY, target.end / DAY] == pytest.approx(SICK, abs=1.0)
    assert [node.start / DAY, node.end / DAY] == pytest.approx((40.0, 43.0), abs=1.0)
    for name, since in (("code3", HALVED), ("code5", ALONE)):
        later = made.jobs.filter(application=name).filter(pl.col("start") >= since * DAY)
        changed = found["changed-application", name].start
        assert changed == pytest.approx(later["start"].min(), abs=DAY)
    assert target.evidence["relative_rate"] == pytest.approx(0.3, rel=0.2)
    assert "request_bytes" in found["changed-application", "code3"].evidence
    assert "collective" in found["changed-application", "code5"].evidence


def test_a_noisy_neighbour_is_dated_by_its_own_runs_though_others_saw_few_of_them() -> None:
    made = tables(4)
    own = pl.col("application") == NOISY
    seen = made.jobs.filter(own | pl.col("start").is_between(20 * DAY, 40 * DAY))

    (event,) = noisy_neighbours(seen)

    runs = seen.filter(own)
    assert event.start == runs["start"].min()
    assert event.end == (runs["start"] + runs["runtime"]).max()


def test_one_campaign_is_not_evidence_against_a_target() -> None:
    made = tables(3, planted=False)
    one = made.jobs.filter(application="code1").head(30)
    jobs = made.jobs.update(
        one.select("job", start=pl.lit(30 * DAY) + pl.int_range(30)), on="job", how="left"
    )
    slow = pl.col("job").is_in(one["job"].implode()) & (pl.col("target") == "6")
    targets = made.targets.with_columns(
        start=pl.when(pl.col("job").is_in(one["job"].implode()))
        .then(30 * DAY + 1)
        .otherwise("start"),
        relative=pl.when(slow).then(0.1).otherwise("relative"),
    )

    assert site_events(jobs, made.causes, targets, made.hosts) == []


def test_an_application_may_change_more_than_once() -> None:
    made = tables(4, planted=False)
    own = pl.col("application") == "code6"
    small = own & (pl.col("start") >= 20 * DAY) & (pl.col("start") < 40 * DAY)
    jobs = made.jobs.with_columns(
        request_bytes=pl.when(small).then(pl.col("request_bytes") / 8).otherwise("request_bytes")
    )

    changes = site_events(jobs, made.causes, made.targets, made.hosts)

    assert {days(change) for change in changes} == {("changed-application", "code6")}
    first, second = sorted(changes, key=lambda change: change.start)
    assert [first.start / DAY, second.start / DAY] == pytest.approx([20.0, 40.0], abs=1.0)
    assert second.evidence["jobs_before"] == first.evidence["jobs_after"]
    sizes = [change.evidence["request_bytes"] for change in (first, second)]
    assert sizes[0]["after"] < sizes[0]["before"]
    assert sizes[1]["after"] > sizes[1]["before"]


def test_jobs_that_suffer_while_others_keep_the_servers_busy_are_named() -> None:
    made = tables(5, planted=False)
    busy = np.random.default_rng(1).random(made.jobs.height) < 0.4
    suffers = pl.Series(busy) & (pl.col("application") == "code2")
    jobs = made.jobs.with_columns(
        others_rate=pl.Series(np.where(busy, 5e9, 1e9)),
        io_stall=pl.when(suffers).then(2.5 * pl.col("io_stall")).otherwise("io_stall"),
    )

    (event,) = site_events(jobs, made.causes, made.targets, made.hosts)

    assert days(event) == ("busy-servers", "code2")
    assert event.evidence["factor"] == pytest.approx(2.5, rel=0.2)
    assert event.evidence["others_rate_busy"] == 5e9
    assert site_events(jobs.drop("others_rate"), made.causes, made.targets, made.hosts) == []


def test_a_healthy_centre_has_no_events() -> None:
    made = tables(3, planted=False)

    assert site_events(made.jobs, made.causes, made.targets, made.hosts) == []


def test_tables_keep_to_the_jobs_asked_for() -> None:
    made = tables(1, planted=False)
    chosen = made.chosen(Chosen(since=10 * DAY, until=20 * DAY, application="code3"))

    assert set(chosen.jobs["application"]) == {"code3"}
    assert chosen.jobs["start"].min() >= 10 * DAY  # type: ignore[operator]
    assert chosen.jobs["start"].max() < 20 * DAY  # type: ignore[operator]
    assert set(chosen.targets["job"]) <= set(chosen.jobs["job"])


def test_sums_over_applications_and_users_are_the_same() -> None:
    made = tables(2)
    whole = float(made.jobs["node_hours"].sum())

    for subject in ("applications", "users", "jobs"):
        rows = site_table(made, subject).rows
        assert sum(row["node_hours"] for row in rows) == pytest.approx(whole)
    assert site_story(made).totals["node_hours"] == pytest.approx(whole)
