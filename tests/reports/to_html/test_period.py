"""The page of a rhythm, in a real browser: it draws, zooms, and runs nothing but itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page

from ioprism import FILES, PROCESSES, Job, Rhythm, Signal, Trace
from ioprism.analyses.periodicity.rhythm import rhythm
from ioprism.pipeline.period import RhythmSettings
from ioprism.reports.to_html.period import page

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>.darshan"


def trace_named(name: str) -> Trace:
    trace = Trace(
        "made", (Path(name),), Job(), load_files=FILES.empty, load_processes=PROCESSES.empty
    )
    trace.completeness.warn(f"{name}: something is missing")
    return trace


@pytest.fixture
def bursts() -> Rhythm:
    time = np.arange(4000) * 0.05
    values = np.where(time % 20.0 < 4.0, 1e9, 0.0)
    return rhythm(Signal(0.0, 0.05, values), components=4)


@pytest.fixture
def noise() -> Rhythm:
    values = np.random.default_rng(3).standard_normal(512) ** 2
    return rhythm(Signal(0.0, 1.0, values))


def opened(screen: Page, tmp_path: Path, found: Rhythm, name: str = "run.darshan") -> Page:
    path = tmp_path / "page.html"
    path.write_text(
        page(found, trace_named(name), RhythmSettings(direction="write")), encoding="utf-8"
    )
    screen.goto(path.as_uri())
    screen.wait_for_function("document.querySelector('#signal canvas').width > 300")
    return screen


def drawn(screen: Page, place: str) -> int:
    """How many pixels of a canvas are not empty."""
    return int(
        screen.evaluate(
            f"""() => {{ const c = document.querySelector('{place} canvas');
            const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            let n = 0; for (let i = 3; i < d.length; i += 4) if (d[i]) n += 1; return n; }}"""
        )
    )


def test_the_answer_and_all_figures_are_shown(screen: Page, tmp_path: Path, bursts: Rhythm) -> None:
    shown = opened(screen, tmp_path, bursts)

    assert shown.inner_text("h1") == "The job's write phases: a period of 20 s"
    shown.wait_for_timeout(200)
    for place in ("#signal", "#spectrum", "#scalogram", "#approximation", "#correlation"):
        assert drawn(shown, place) > 1000, place


def test_keys_wheel_and_double_click_zoom_all_plots_together(
    screen: Page, tmp_path: Path, bursts: Rhythm
) -> None:
    shown = opened(screen, tmp_path, bursts)
    width = "time.high - time.low"
    whole = shown.evaluate(width)
    canvas = shown.locator("#signal canvas")
    canvas.focus()
    shown.keyboard.press("+")
    by_key = shown.evaluate(width)
    canvas.hover()
    shown.mouse.wheel(0, -100)
    shown.wait_for_function(f"{width} < {by_key}")
    canvas.dblclick()

    assert by_key < whole
    assert shown.evaluate(width) == whole


def test_hovering_tells_the_value(screen: Page, tmp_path: Path, bursts: Rhythm) -> None:
    shown = opened(screen, tmp_path, bursts)
    shown.locator("#signal canvas").hover()

    assert "bandwidth" in shown.inner_text("#signal output")


def test_a_signal_without_rhythm_says_so(screen: Page, tmp_path: Path, noise: Rhythm) -> None:
    shown = opened(screen, tmp_path, noise)

    assert shown.inner_text("h1") == "The job's write phases: no period"


def test_a_hostile_name_is_text(screen: Page, tmp_path: Path, bursts: Rhythm) -> None:
    shown = opened(screen, tmp_path, bursts, name=EVIL)

    assert shown.title() == "The rhythm of a job's I/O"
    assert "<img src=x" in shown.inner_text("#warnings")


def test_the_policy_allows_our_script_alone(bursts: Rhythm) -> None:
    text = page(bursts, trace_named("x"), RhythmSettings())

    assert "default-src &#x27;none&#x27;" in text
    assert "unsafe-inline" not in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
