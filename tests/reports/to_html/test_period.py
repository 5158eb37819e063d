"""The page of a periodicity, in a real browser: it draws, zooms, and runs nothing but itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page

from ioprism import FILES, PROCESSES, Job, Periodicity, Signal, Trace
from ioprism.periodicity.of_job import JobPeriodicity, PeriodSettings
from ioprism.periodicity.of_signal import signal_periodicity
from ioprism.reports.to_html.period import page
from tests.reports.to_html import opening

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>.darshan"
TRACKS = ("signal", "waves", "sums", "scalogram", "approximation", "correlation")


def trace_named(name: str) -> Trace:
    trace = Trace(
        "made", (Path(name),), Job(), load_files=FILES.empty, load_processes=PROCESSES.empty
    )
    trace.completeness.warn(f"{name}: something is missing")
    return trace


@pytest.fixture
def bursts() -> Periodicity:
    time = np.arange(4000) * 0.05
    values = np.where(time % 20.0 < 4.0, 1e9, 0.0)
    return replace(signal_periodicity(Signal(0.0, 0.05, values)), direction="write")


@pytest.fixture
def noise() -> Periodicity:
    values = np.random.default_rng(3).standard_normal(512) ** 2
    return replace(signal_periodicity(Signal(0.0, 1.0, values)), direction="read")


def opened(
    screen: Page, tmp_path: Path, *found: Periodicity, name: str = "run.darshan", link: str = ""
) -> Page:
    path = tmp_path / "page.html"
    settings = PeriodSettings(direction="write")
    text = page(JobPeriodicity(found[0]), trace_named(name), settings, found[1:])
    path.write_text(text, encoding="utf-8")
    return opening.opened(screen, path, link=link)


def painted(shown: Page, key: str) -> int:
    """How many pixels of a row are not empty, after scrolling it into view."""
    shown.evaluate("(key) => ioprism.pane.reveal(key)", key)
    shown.wait_for_timeout(60)
    return opening.painted(shown, "#stage", key)


def test_the_answer_and_all_figures_are_shown(
    screen: Page, tmp_path: Path, bursts: Periodicity
) -> None:
    shown = opened(screen, tmp_path, bursts)

    assert shown.inner_text("#verdict") == "The writes repeat every 20.0 s (confidence 100%)"
    assert shown.inner_text("#next-step").startswith("Next phase: 3 min")
    for key in TRACKS:
        assert painted(shown, key) > 800, key
    shown.click("[data-row^='level-'] .name >> nth=0")  # levels are folded until asked for
    level = shown.evaluate("ioprism.store.view.open[0]")
    assert level.startswith("level-")
    assert painted(shown, level) > 300
    assert shown.inner_text("#story").count("n = ") == 5  # 2, 3, 5, 10 and the fit


def test_zoom_is_shared_undoable_and_in_the_link(
    screen: Page, tmp_path: Path, bursts: Periodicity, noise: Periodicity
) -> None:
    shown = opened(screen, tmp_path, bursts, noise, link="#t=40~90&tab=autocorrelation")

    assert opening.span(shown) == (40.0, 90.0)
    assert shown.locator("#tab-panel canvas").get_attribute("aria-label") == (
        "Autocorrelation by lag"
    )
    shown.focus("#tracks")
    shown.keyboard.press("0")
    low, high = opening.span(shown)
    assert (low, high > 200.0) == (0.0, True)
    shown.select_option("#controls select", "read")
    opening.settled(shown)
    assert shown.inner_text("#verdict") == "No period: the reads may be irregular"
    shown.go_back()
    opening.settled(shown)
    assert "writes repeat" in shown.inner_text("#verdict")


def test_waves_can_be_left_out(screen: Page, tmp_path: Path, bursts: Periodicity) -> None:
    shown = opened(screen, tmp_path, bursts, link="#waves=none")

    assert shown.locator(".wave input:checked").count() == 0
    assert not shown.evaluate("ioprism.pane.layout.rows.some((row) => row.key === 'sums')")
    shown.check(".wave input >> nth=0")

    assert shown.evaluate("ioprism.store.view.waves") == ["2"]


def test_a_hostile_name_is_text_and_the_policy_allows_our_script_alone(
    screen: Page, tmp_path: Path, noise: Periodicity
) -> None:
    shown = opened(screen, tmp_path, noise, name=EVIL)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")

    assert shown.title() == "The period of a job's I/O"
    assert "<img src=x" in shown.inner_text("#warnings")
    assert "default-src &#x27;none&#x27;" in text
    assert "unsafe-inline" not in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
