"""The load of the servers in a job's time, beside the highest of the days around it."""

from __future__ import annotations

import polars as pl
import pytest

from ioprism.analyses.weather import weather
from tests.analyses.job_metrics.sources import Memory, samples

START = 1_700_000_000.0


def growing(server: str, rates: list[int], *, step: float = 10.0) -> pl.DataFrame:
    """Samples of a server that moves so many bytes per step, one after another."""
    totals = [sum(rates[:number]) for number in range(len(rates) + 1)]
    return samples(server, {START + step * n: total for n, total in enumerate(totals)})


def test_all_servers_are_added_up_over_the_time_of_the_job() -> None:
    source = Memory(pl.concat([growing("a", [5] * 4 + [50] * 4), growing("b", [1] * 8)]))
    seen = weather(source, start=START, end=START + 40)

    assert (seen.servers, seen.seconds, seen.coverage) == (2, 40.0, 1.0)
    assert seen.bytes == pytest.approx(24)
    assert seen.most_bytes == pytest.approx(204)


def test_a_short_job_is_seen_over_two_samples() -> None:
    seen = weather(Memory(growing("a", [10] * 8)), start=START + 41, end=START + 42)

    assert seen.seconds == 20.0
    assert seen.bytes == pytest.approx(20)


@pytest.mark.parametrize(("end", "coverage"), [(80.0, 1.0), (160.0, 0.5)])
def test_what_counters_do_not_cover_is_known(end: float, coverage: float) -> None:
    seen = weather(Memory(growing("a", [10] * 8)), start=START, end=START + end)

    assert seen.coverage == pytest.approx(coverage)


def test_one_sample_covers_nothing() -> None:
    seen = weather(Memory(growing("a", [])), start=START, end=START + 60)

    assert (seen.coverage, seen.bytes) == (0.0, 0.0)
