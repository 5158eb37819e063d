"""The week and the months show when a machine is busy, in the administrators' own time."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ioprism.model.counters import SECOND
from ioprism.servers.load import MachineLoad, machine_load
from ioprism.servers.profile import profile, trend
from ioprism.servers.settings import MetricSettings
from tests.servers.sources import Memory, one_job, samples

MONDAY = 1_767_571_200  # 2026-01-05 00:00 UTC
HOUR = 3600.0
SETTINGS = MetricSettings(round(HOUR) * SECOND, min_runtime=0.0)


def load_of(growth: np.ndarray, jobs: pl.DataFrame | None = None) -> MachineLoad:
    """A server that moved some bytes in each hour from a Monday on."""
    totals = np.concatenate([[0], np.cumsum(growth.astype(np.int64))]).tolist()
    values = {MONDAY + HOUR * n: total for n, total in enumerate(totals)}
    chosen = one_job(MONDAY, MONDAY + HOUR, "ion0") if jobs is None else jobs
    return machine_load(Memory(samples("ion0", values)), chosen, settings=SETTINGS)


def test_the_busy_hour_is_found_in_the_local_week() -> None:
    growth = np.zeros(14 * 24)
    growth[[24 + 9, 8 * 24 + 9]] = 3.6e12  # Tuesdays from 9 to 10

    here, there = (profile(load_of(growth), zone) for zone in ("UTC", "Asia/Kolkata"))

    assert here.rates[1, 1, 9] == pytest.approx(1e9)
    assert here.rates[1].sum() == pytest.approx(1e9)
    assert there.rates[1, 1, [14, 15]].tolist() == pytest.approx([5e8, 5e8])  # half an hour each
    assert here.rates[0].sum() == 0


def test_hours_that_nobody_recorded_are_unknown() -> None:
    found = profile(load_of(np.ones(24)))

    assert not np.isnan(found.rates[1, 0]).any()
    assert np.isnan(found.rates[1, 1:]).all()


def test_a_month_is_compared_with_the_one_before_by_day() -> None:
    days = 27 + 28 + 3  # to the end of January, February, and a little of March
    growth = np.full(days * 24, 1e9)
    growth[27 * 24 :] = 1.5e9
    runs = [one_job(MONDAY + HOUR, MONDAY + 9 * HOUR, "ion0", job="1"),
            one_job(MONDAY + 28 * 24 * HOUR, MONDAY + 30 * 24 * HOUR, "ion0", job="2")]  # fmt: skip
    jobs = pl.concat(runs).with_columns(account=pl.lit("a"))

    found = trend(load_of(growth, jobs))

    assert [month.month for month in found.months] == ["2026-01", "2026-02", "2026-03"]
    assert [month.days for month in found.months] == pytest.approx([27, 28, 3])
    assert found.compared == ("2026-01", "2026-02")
    assert found.months[1].change["write"] == pytest.approx(0.5)
    assert found.months[1].change["read"] is None
    assert found.months[2].change["write"] is None  # three days are no month
    assert found.accounts[0].before == pytest.approx(8e9 / 27)
    assert found.accounts[0].after == pytest.approx(48 * 1.5e9 / 28)


def test_accounts_that_changed_alike_come_in_one_order() -> None:
    names = [f"account{n}" for n in range(9)]
    idle = [one_job(MONDAY + HOUR, MONDAY + 9 * HOUR, "other", job=name) for name in names]
    jobs = pl.concat(idle).with_columns(account=pl.col("job")).reverse()

    found = trend(load_of(np.ones(58 * 24), jobs))

    assert [change.name for change in found.accounts] == names
