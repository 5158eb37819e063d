"""Lustre's job_stats tell the time of the last I/O: pauses are pauses, whoever scraped when."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ioprism import servers

START = 1_510_000_000
RHO = 1 - math.tanh(1)  # stretches with and without I/O are equally long


def scrape(last: int, total: int, *, since: int | None = None, job: str = "77") -> Iterator[str]:
    yield "obdfilter.fs-OST0000.job_stats="
    yield "job_stats:"
    if not total:
        return
    yield f"- job_id:          {job}"
    yield f"  snapshot_time:   {START + last}"
    if since is not None:
        yield f"  start_time:      {START + since}"
    sizes = f"samples: {total >> 20}, unit: bytes, min: 1, max: 1048576, sum: {total}"
    yield f"  write_bytes:     {{ {sizes} }}"


def on_and_off(*, on: int, off: int, runs: int, step: int = 120) -> list[list[str]]:
    """One answer every step: first a pause, then I/O to the end of every step of a run."""
    answers, last, total = [], 0, 0
    for time in range(step, runs * (on + off) + off + 1, step):
        if (time - 1) % (on + off) >= off:
            last, total = time, total + 10 * 2**20
        answers.append(list(scrape(last, total)))
    return answers


def job_of(tmp_path: Path, answers: list[list[str]], length: int, **chosen: Any) -> dict[str, Any]:
    raw = tmp_path / "job_stats.txt"
    raw.write_text("\n".join(line for answer in answers for line in answer) + "\n")
    listed = tmp_path / "jobs.csv"
    listed.write_text(f"job_id,start,end,servers\n77,{START},{START + length},\n")
    servers.ingest(raw, store=tmp_path / "store")
    metrics = servers.jobs(tmp_path / "store", jobs=listed, min_runtime=0.0, **chosen)
    return metrics.table.row(0, named=True)


@pytest.mark.parametrize("grid", ["job", "native"])
def test_twenty_minutes_on_and_twenty_off_are_just_that(tmp_path: Path, grid: str) -> None:
    found = job_of(tmp_path, on_and_off(on=1200, off=1200, runs=7), 18_000, grid=grid)

    assert found["write_intensity_0"] == pytest.approx(7 / 15)  # 0.47
    assert found["write_burstiness_0"] == pytest.approx(RHO)  # 0.24
    assert found["write_bytes"] == 700 * 2**20
    assert found["attribution"] == "measured"


def test_answers_that_repeat_nothing_give_the_same(tmp_path: Path) -> None:
    answers = on_and_off(on=1200, off=1200, runs=7)
    changed = [now for before, now in zip([[], *answers], answers, strict=False) if now != before]

    found = job_of(tmp_path, changed, 18_000)

    assert found["write_intensity_0"] == pytest.approx(7 / 15)
    assert found["write_burstiness_0"] == pytest.approx(RHO)


def test_unchanged_answers_tell_how_short_rare_bursts_are(tmp_path: Path) -> None:
    found = job_of(tmp_path, on_and_off(on=120, off=1680, runs=10), 19_680)

    assert found["write_intensity_0"] == pytest.approx(10 / 164)


def test_an_entry_that_was_dropped_begins_anew_when_it_says(tmp_path: Path) -> None:
    first = list(scrape(1200, 10 * 2**20, since=1080))
    again = list(scrape(6000, 5 * 2**20, since=5880))
    later = list(scrape(6120, 8 * 2**20, since=5880))

    found = job_of(tmp_path, [first, again, later], 7200, interval=120.0)

    assert found["write_bytes"] == 18 * 2**20
    assert found["write_intensity_0"] == pytest.approx(3 / 60)
    assert found["reset"]


def test_a_scrape_whose_time_is_said_shows_that_nothing_moved_since(tmp_path: Path) -> None:
    raw = tmp_path / "scrape"
    for time, last, total in [(120, 100, 2**20), (240, 100, 2**20), (360, 350, 2**21)]:
        raw.write_text("\n".join(scrape(last, total)) + "\n")
        servers.ingest(raw, store=tmp_path / "store", time=START + time)
    listed = tmp_path / "jobs.csv"
    listed.write_text(f"job_id,start,end,servers\n77,{START},{START + 480},\n")

    found = servers.jobs(
        tmp_path / "store", jobs=listed, min_runtime=0.0, interval=120.0
    ).table.row(0, named=True)

    assert found["write_intensity_0"] == pytest.approx(2 / 4)
    assert found["write_bytes"] == 2**21


def test_scrapes_at_known_times_are_recognised_as_regular(tmp_path: Path) -> None:
    """Every half hour the job writes for 20 seconds in the middle of an interval."""
    raw, total, last = tmp_path / "scrape", 0, 0
    for time in range(120, 9_001, 120):
        if time % 1800 == 0:
            total, last = total + 2**30, time - 50
        raw.write_text("\n".join(scrape(last, total)) + "\n")
        servers.ingest(raw, store=tmp_path / "store", time=START + time)
    listed = tmp_path / "jobs.csv"
    listed.write_text(f"job_id,start,end,servers\n77,{START},{START + 9_000},\n")

    found = servers.jobs(tmp_path / "store", jobs=listed)

    assert found.settings.interval_us == 120 * 10**6
    # Nobody tells when the first burst began: it may have touched two windows.
    assert found.table["write_intensity_0"][0] == pytest.approx(6 / 75)
    assert found.table["write_bytes"][0] == 5 * 2**30


def test_stats_in_the_same_answer_tell_when_it_was_read_and_what_the_target_moved(
    tmp_path: Path,
) -> None:
    """The job writes for one interval in ten; somebody else writes all the time."""
    answers, last, total = [], 0, 0
    for step in range(101):
        time = 120 * step
        if step and step % 10 == 0:
            last, total = time - 30, total + 2**30
        moved = total + step * 2**20
        stats = [
            "obdfilter.fs-OST0000.stats=",
            f"snapshot_time             {START + time}.000000000 secs.nsecs",
            f"write_bytes               {moved >> 20} samples [bytes] 4096 1048576 {moved}",
        ]
        answers.append([*stats, *scrape(last, total)])
    found = job_of(tmp_path, answers, 12_000)
    machine = servers.report(
        tmp_path / "store", jobs=tmp_path / "jobs.csv", min_runtime=0.0
    ).fleet.totals["write"]

    assert found["write_bytes"] == 10 * 2**30
    assert found["write_intensity_0"] == pytest.approx(11 / 100)  # the first may touch two windows
    assert machine.bytes == pytest.approx(10 * 2**30 + 100 * 2**20)
    assert machine.attributed == machine.measured == pytest.approx(10 * 2**30)
    assert machine.unattributed == pytest.approx(100 * 2**20)
