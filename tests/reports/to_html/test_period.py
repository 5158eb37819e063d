"""The page of a periodicity, in a real browser: it draws, zooms, and runs nothing but itself."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page

from ioprism import FILES, PROCESSES, Job, Periodicity, Signal, Trace
from ioprism.periodicity.of_job import JobPeriodicity, PeriodSettings
from ioprism.periodicity.of_signal import signal_periodicity
from ioprism.reports.to_html.period import page

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>.darshan"


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
    return signal_periodicity(Signal(0.0, 0.05, values), components=4)


@pytest.fixture
def noise() -> Periodicity:
    values = np.random.default_rng(3).standard_normal(512) ** 2
    return signal_periodicity(Signal(0.0, 1.0, values))


def opened(screen: Page, tmp_path: Path, found: Periodicity, name: str = "run.darshan") -> Page:
    path = tmp_path / "page.html"
    path.write_text(
        page(JobPeriodicity(found), trace_named(name), PeriodSettings(direction="write")),
        encoding="utf-8",
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


def test_the_answer_and_all_figures_are_shown(
    screen: Page, tmp_path: Path, bursts: Periodicity
) -> None:
    shown = opened(screen, tmp_path, bursts)

    assert shown.inner_text("h1") == "The I/O repeats every 20.0 s (confidence 100%)"
    shown.wait_for_timeout(200)
    for place in (
        "#signal", "#waves", "#spectrum", "#scalogram", "#levels", "#approximation", "#correlation",
    ):  # fmt: skip
        assert drawn(shown, place) > 1000, place


def test_keys_wheel_and_double_click_zoom_all_plots_together(
    screen: Page, tmp_path: Path, bursts: Periodicity
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


def test_hovering_tells_the_value(screen: Page, tmp_path: Path, bursts: Periodicity) -> None:
    shown = opened(screen, tmp_path, bursts)
    shown.locator("#signal canvas").hover()

    assert "bandwidth" in shown.inner_text("#signal output")


# Paints marks with a pen that remembers where it writes their names and draws their lines.
MARKED = """([marks, width]) => {
  const place = document.body.appendChild(document.createElement("figure"));
  place.style.width = `${width}px`;
  const names = new Set(marks.map((mark) => mark.name)), boxes = [], lines = [];
  const made = plot(place, { axis: axis(0, 100), curves: [], marks, label: "marks" });
  const pen = document.createElement("canvas").getContext("2d");
  const write = pen.fillText.bind(pen), move = pen.moveTo.bind(pen), line = pen.lineTo.bind(pen);
  let from = [0, 0];
  pen.fillText = (text, x, y) => {
    const wide = pen.measureText(text).width, left = pen.textAlign === "right" ? x - wide : x;
    if (names.has(text)) boxes.push([left, left + wide, y - 9, y + 2]);
    write(text, x, y);
  };
  pen.moveTo = (x, y) => { from = [x, y]; move(x, y); };
  pen.lineTo = (x, y) => { if (x === from[0]) lines.push([x, from[1], y]); line(x, y); };
  made.paint(pen);
  place.remove();
  return [boxes, lines];
}"""


@pytest.mark.parametrize(
    ("places", "width"),
    [
        ([10, 12, 14, 50, 90], 900),  # three too close to each other for one row
        ([80, 88, 93, 96, 99], 500),  # names that turn to the left at the edge
        ([96, 99, 93, 80, 88, 50], 500),  # in any order
        ([40, 41, 42, 43, 44, 45, 46], 900),  # more than there are rows
    ],
)
def test_the_names_of_marks_overlap_neither_each_other_nor_a_line(
    screen: Page, tmp_path: Path, bursts: Periodicity, places: list[float], width: int
) -> None:
    marks = [{"x": x, "name": f"the periodicity changes at {x} s"} for x in places]
    boxes, lines = opened(screen, tmp_path, bursts).evaluate(MARKED, [marks, width])

    assert len(boxes) >= 4
    assert len(lines) == len(places)
    for (left, right, top, bottom), other in itertools.combinations(boxes, 2):
        assert right <= other[0] or other[1] <= left or bottom <= other[2] or other[3] <= top
    for left, right, _, bottom in boxes:
        assert not [x for x, begin, end in lines if left < x < right and begin < bottom <= end]


def test_a_signal_without_periodicity_says_so(
    screen: Page, tmp_path: Path, noise: Periodicity
) -> None:
    shown = opened(screen, tmp_path, noise)

    assert shown.inner_text("h1") == "No period: the I/O may be irregular"


def test_a_hostile_name_is_text(screen: Page, tmp_path: Path, bursts: Periodicity) -> None:
    shown = opened(screen, tmp_path, bursts, name=EVIL)

    assert shown.title() == "The period of a job's I/O"
    assert "<img src=x" in shown.inner_text("#warnings")


def test_the_policy_allows_our_script_alone(bursts: Periodicity) -> None:
    text = page(JobPeriodicity(bursts), trace_named("x"), PeriodSettings())

    assert "default-src &#x27;none&#x27;" in text
    assert "unsafe-inline" not in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
