"""What must hold whatever the counters are."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from ioprism.model.counters import DIRECTIONS, SECOND, TABLE, VALUES
from ioprism.servers import COUNTERS, JOBS
from ioprism.servers.job_metrics import MEASURES, metric_column
from tests.servers.sources import assert_alike, measured

THRESHOLDS = (0, 131_072, 1_048_576)


@st.composite
def machines(draw: st.DrawFn) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One to four servers with resets, lost samples and offsets of their own, and some jobs."""
    names = [f"ion{number}" for number in range(draw(st.integers(1, 4)))]
    rows = []
    for name in names:
        offset = draw(st.integers(-120, 0))
        values = dict.fromkeys(VALUES, draw(st.sampled_from([0, 10**6, 2**60])))
        for step in range(draw(st.integers(2, 14))):
            growth = draw(st.sampled_from([0, 0, 1, 131_072, 1_048_577, 10**9]))
            restarts = draw(st.integers(0, 12)) == 0
            values = {key: growth if restarts else value + growth for key, value in values.items()}
            if draw(st.integers(0, 9)):
                time_us = (offset + 120 * step) * SECOND
                facts = {"server": name, "part": "", "source": TABLE, "time_us": time_us}
                rows.append(facts | values)
    jobs = [
        {"job": str(number), "start_us": start * SECOND, "end_us": (start + length) * SECOND,
         "servers": draw(st.lists(st.sampled_from(names), min_size=1, unique=True))}
        for number, (start, length) in enumerate(
            draw(st.lists(st.tuples(st.integers(-50, 1200), st.integers(1, 1500)), min_size=1,
                          max_size=4)))
    ]  # fmt: skip
    table = pl.DataFrame(rows, schema_overrides=dict(COUNTERS.schema)) if rows else COUNTERS.empty()
    return COUNTERS.conform(table), JOBS.conform(pl.DataFrame(jobs))


GRIDS = st.sampled_from(["job", "native"])
WINDOWS = st.sampled_from(["clip", "clip_abs", "full"])


@settings(max_examples=30, deadline=None)
@given(machines(), GRIDS, WINDOWS, st.sampled_from(["restart", "drop"]))
def test_shares_lie_between_nothing_and_everything(
    machine: tuple[pl.DataFrame, pl.DataFrame], grid: str, window: str, reset: str
) -> None:
    found = measured(*machine, grid=grid, window=window, reset=reset)

    names = [metric_column(d, m, c) for d in DIRECTIONS for m in MEASURES for c in THRESHOLDS]
    for name in [*names, "coverage"]:
        values = found[name].drop_nulls()
        assert ((values >= 0) & (values <= 1)).all(), name
    for direction in DIRECTIONS:
        assert (found[f"{direction}_bytes"].fill_null(0) >= 0).all()
        of_all = found[f"{direction}_max_bandwidth"] * (1 + 1e-9)
        assert (found[f"{direction}_max_server_bandwidth"] <= of_all).all()


@settings(max_examples=20, deadline=None)
@given(machines(), GRIDS, st.integers(-(10**9), 10**9))
def test_shifting_time_changes_nothing(
    machine: tuple[pl.DataFrame, pl.DataFrame], grid: str, seconds: int
) -> None:
    table, jobs = machine
    moved = table.with_columns(pl.col("time_us") + seconds * SECOND)
    later = jobs.with_columns(pl.col("start_us", "end_us") + seconds * SECOND)

    here, there = measured(table, jobs, grid=grid), measured(moved, later, grid=grid)

    assert there.drop("start_us", "end_us").equals(here.drop("start_us", "end_us"))


@settings(max_examples=20, deadline=None)
@given(machines(), GRIDS, st.randoms(use_true_random=False))
def test_names_and_order_of_servers_change_nothing(
    machine: tuple[pl.DataFrame, pl.DataFrame], grid: str, random: object
) -> None:
    table, jobs = machine
    names = ["ion0", "ion1", "ion2", "ion3"]
    others = names[:]
    random.shuffle(others)  # type: ignore[attr-defined]
    renamed = dict(zip(names, others, strict=True))
    swapped = table.with_columns(pl.col("server").replace(renamed)).reverse()
    servers = pl.col("servers").list.eval(pl.element().replace(renamed)).list.reverse()
    moved = jobs.with_columns(servers)

    here, there = measured(table, jobs, grid=grid), measured(swapped, moved, grid=grid)

    assert_alike(there, here)
