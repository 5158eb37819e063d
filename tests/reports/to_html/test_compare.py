"""Two runs on one page: aligned by phase, and every second in its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Page

from ioprism import FILES, PROCESSES, Job, Trace, convert
from ioprism.cli import main
from tests.conftest import TEST_DATA

EMPTY = Trace(
    "made", (Path("empty"),), Job(), load_files=FILES.empty, load_processes=PROCESSES.empty
)
DATA = TEST_DATA / "darshan"


def opened(screen: Page, tmp_path: Path, *runs: Path | str) -> Page:
    path = tmp_path / "compare.html"
    done = CliRunner().invoke(main, ["compare", "-o", str(path), *map(str, runs)])
    assert done.exit_code == 0, done.output
    screen.set_default_timeout(15_000)
    screen.goto(path.as_uri())
    screen.wait_for_selector("html[data-ready]", state="attached")
    return screen


def test_two_clicks_show_where_the_saved_seconds_were(screen: Page, tmp_path: Path) -> None:
    page = opened(
        screen, tmp_path, DATA / "g_straggler_rank2.darshan", DATA / "a_ckpt_fpp_period5s.darshan"
    )
    total = page.evaluate("() => ioprism.placed().reduce((sum, one) => sum + one.saved, 0)")
    lengths = page.evaluate("() => ioprism.jobs.map((job) => job.data.time[1] - job.data.time[0])")
    before = page.url
    page.locator("#story .change").first.click()
    page.wait_for_timeout(400)
    chosen = page.evaluate("() => ioprism.store.view.select")
    largest = page.evaluate(
        "() => ioprism.placed().slice().sort((a, b) => Math.abs(b.saved) - Math.abs(a.saved))[0]"
    )

    assert total == pytest.approx(lengths[0] - lengths[1])  # every second is in one stretch
    assert chosen["low"] == largest["at"]
    assert (
        "saved" in page.locator("#story .change").first.inner_text()
        or "lost" in page.locator("#story .change").first.inner_text()
    )
    assert page.locator(".totals tr", has_text="duration").count() == 1
    assert page.url != before
    page.go_back()
    page.wait_for_timeout(400)
    assert page.evaluate("() => ioprism.axis.whole")


def test_keys_step_through_the_phases_of_both_runs(screen: Page, tmp_path: Path) -> None:
    page = opened(
        screen, tmp_path, DATA / "g_straggler_rank2.darshan", DATA / "a_ckpt_fpp_period5s.darshan"
    )
    page.keyboard.press("]")
    page.keyboard.press("]")
    page.wait_for_timeout(400)
    second = page.evaluate("() => ioprism.placed().filter((one) => one.kind)[1]")

    assert page.evaluate("() => ioprism.store.view.select.low") == second["at"]
    assert page.locator(".totals tr", has_text="duration").count() == 1


def test_names_of_tracks_are_whole_on_a_phone(screen: Page, tmp_path: Path) -> None:
    page = opened(
        screen, tmp_path, DATA / "g_straggler_rank2.darshan", DATA / "e_mpiio_collective.darshan"
    )
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(500)
    cut = page.evaluate(
        """() => [...document.querySelectorAll('#stage .label .name, #warnings, .brand')]
        .filter((one) => one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight)
        .map((one) => one.textContent)"""
    )
    broken = page.evaluate(
        """() => [...document.querySelectorAll('#story tbody td:not(:first-child)')]
        .filter((one) => { const text = document.createRange(); text.selectNodeContents(one);
          return text.getClientRects().length > 1; }).map((one) => one.textContent)"""
    )

    assert cut == []
    assert broken == []


def test_runs_of_a_side_are_listed_and_the_clock_can_be_chosen(
    screen: Page, tmp_path: Path
) -> None:
    runs = [DATA / "a_ckpt_fpp_period5s.darshan"] * 2
    page = opened(screen, tmp_path, *runs, "--", DATA / "e_mpiio_collective.darshan")

    page.click("#tab-runs")
    assert page.locator(".runs >> nth=0").locator("tbody tr").count() == 2
    page.select_option("#align", "clock")
    assert page.evaluate("() => ioprism.placed().length") == 1
    page.select_option("#colour", "size")
    assert "MiB" in page.inner_text("#legend")
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("html[data-ready]", state="attached")
    assert page.input_value("#align") == "clock"


def test_a_run_without_calls_is_still_compared(screen: Page, tmp_path: Path) -> None:
    convert(EMPTY, tmp_path / "empty.store")
    page = opened(screen, tmp_path, DATA / "hostile-xss.darshan", tmp_path / "empty.store")

    assert page.title() == "What a change did to a job's I/O"
    assert page.locator("img").count() == 0  # hostile names are text
    assert page.locator("[data-row=ranks-after]").count() == 1
