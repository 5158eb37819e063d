"""The load of the servers in a job's time, beside the highest of the times around it."""

from __future__ import annotations

from weakref import ref

import numpy as np
import polars as pl
import pytest

from ioprism.servers.load import background_load, loads_between
from tests.servers.sources import Memory, samples

START = 1_700_000_000.0


def growing(server: str, rates: list[int], *, step: float = 10.0) -> pl.DataFrame:
    """Samples of a server that moves so many bytes per step, one after another."""
    totals = [sum(rates[:number]) for number in range(len(rates) + 1)]
    return samples(server, {START + step * n: total for n, total in enumerate(totals)})


def test_all_servers_are_added_up_over_the_time_of_the_job() -> None:
    source = Memory(pl.concat([growing("a", [5] * 4 + [50] * 4), growing("b", [1] * 8)]))
    seen = background_load(source, start=START, end=START + 40)

    assert (seen.servers, seen.seconds, seen.coverage) == (2, 40.0, 1.0)
    assert seen.bytes == pytest.approx(24)
    assert seen.most_bytes == pytest.approx(204)


def test_a_short_job_is_seen_over_two_samples() -> None:
    seen = background_load(Memory(growing("a", [10] * 8)), start=START + 41, end=START + 42)

    assert seen.seconds == 20.0
    assert seen.bytes == pytest.approx(20)


@pytest.mark.parametrize(("end", "coverage"), [(80.0, 1.0), (160.0, 0.5)])
def test_what_counters_do_not_cover_is_known(end: float, coverage: float) -> None:
    seen = background_load(Memory(growing("a", [10] * 8)), start=START, end=START + end)

    assert seen.coverage == pytest.approx(coverage)


def test_many_times_are_answered_in_one_reading() -> None:
    source = Memory(pl.concat([growing("a", [5] * 4 + [50] * 4), growing("b", [1] * 8)]))
    starts, ends = np.array([0.0, 20.0, 70.0]) + START, np.array([40.0, 60.0, 90.0]) + START

    moved, known = loads_between(source, starts, ends)

    assert moved == pytest.approx([24, 114, 51])
    assert known == pytest.approx([1.0, 1.0, 0.5])


def test_one_sample_covers_nothing() -> None:
    seen = background_load(Memory(growing("a", [])), start=START, end=START + 60)

    assert (seen.coverage, seen.bytes) == (0.0, 0.0)


def test_parts_of_a_server_with_one_sample_each_cover_nothing() -> None:
    parts = [samples("a", {START: 5}, part=name) for name in ("scratch", "home")]
    seen = background_load(Memory(pl.concat(parts)), start=START, end=START + 60)

    assert (seen.servers, seen.coverage, seen.bytes) == (1, 0.0, 0.0)


NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("start", "end"),
    [(2.0**40, 2.0**40 + 60), (-(2.0**40), 60.0), (NAN, START), (START, NAN), (START, INFINITE)],
)
def test_no_counters_cover_a_time_that_is_damage(start: float, end: float) -> None:
    seen = background_load(Memory(growing("a", [10] * 8)), start=start, end=end)

    assert (seen.servers, seen.coverage, seen.bytes) == (1, 0.0, 0.0)


class Watched(Memory):
    """Notes how many of the tables it gave are still held when the next is asked for."""

    def __init__(self, table: pl.DataFrame) -> None:
        super().__init__(table)
        self.given: list[ref[pl.DataFrame]] = []
        self.held = 0

    def counters(
        self, server: str, *, start_us: int, end_us: int, per_job: bool = False
    ) -> pl.DataFrame:
        self.held = max(self.held, sum(table() is not None for table in self.given))
        table = super().counters(server, start_us=start_us, end_us=end_us, per_job=per_job)
        self.given.append(ref(table))
        return table


def test_the_counters_of_few_servers_are_in_memory_at_a_time() -> None:
    source = Watched(pl.concat([growing(f"s{n}", [n] * 8) for n in range(20)]))
    seen = background_load(source, start=START, end=START + 40)

    assert seen.bytes == pytest.approx(4 * sum(range(20)))
    assert source.held <= 1


def test_a_server_without_samples_does_not_hide_how_often_others_are_sampled() -> None:
    source = Memory(pl.concat([samples("a", {START: 5}), growing("b", [10] * 8)]))
    seen = background_load(source, start=START, end=START + 80)

    assert (seen.servers, seen.bytes, seen.coverage) == (2, 80.0, 0.5)


def test_only_times_that_follow_each_other_from_the_job_on_are_compared() -> None:
    rates = [0] * 4 + [0, 0, 9, 9] + [9, 9, 0, 0]
    seen = background_load(Memory(growing("a", rates)), start=START, end=START + 40)

    assert seen.most_bytes == pytest.approx(18)  # 36 in the 40 s from 60 s on
