"""Two runs on one page: the same axes, and what became of the findings."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner
from playwright.sync_api import Page

from ioprism import FILES, PROCESSES, Job, Trace, convert
from ioprism.cli import main
from tests.conftest import TEST_DATA

EMPTY = Trace(
    "made", (Path("empty"),), Job(), load_files=FILES.empty, load_processes=PROCESSES.empty
)
DATA = TEST_DATA / "darshan"


def opened(screen: Page, tmp_path: Path, before: Path, after: Path) -> Page:
    path = tmp_path / "compare.html"
    done = CliRunner().invoke(main, ["compare", str(before), str(after), "-o", str(path)])
    assert done.exit_code == 0, done.output
    screen.set_default_timeout(15_000)
    screen.goto(path.as_uri())
    screen.wait_for_selector("html[data-ready]", state="attached")
    return screen


def test_both_runs_are_drawn_on_the_same_axis(screen: Page, tmp_path: Path) -> None:
    page = opened(
        screen, tmp_path, DATA / "a_ckpt_fpp_period5s.darshan", DATA / "e_mpiio_collective.darshan"
    )
    page.locator("#runs canvas").first.scroll_into_view_if_needed()
    page.evaluate("() => ioprism.state.time.show(5, 15)")

    assert "Run time" in page.inner_text("h1")
    assert page.locator("#runs canvas").count() >= 4
    assert page.locator(".finding").count() > 3
    page.select_option("#colour", "size")
    assert "KiB" in page.inner_text("#legend") or "MiB" in page.inner_text("#legend")


def test_a_run_without_calls_says_so(screen: Page, tmp_path: Path) -> None:
    convert(EMPTY, tmp_path / "empty.store")
    page = opened(screen, tmp_path, DATA / "a_ckpt_fpp_period5s.darshan", tmp_path / "empty.store")

    assert "no single calls" in page.inner_text("#runs")


def test_hostile_names_are_text(screen: Page, tmp_path: Path) -> None:
    page = opened(screen, tmp_path, DATA / "hostile-xss.darshan", DATA / "rich-markup-path.darshan")

    assert page.title() == "What a change did to a job's I/O"
    assert page.locator("img").count() == 0
