"""The report in a real browser: it tells the story, follows the hand, and runs nothing foreign."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import Page

from benchmarks.synthetic import (
    Burst,
    Requests,
    Striping,
    Workload,
    checkpointing_job,
    synthesise,
)
from benchmarks.synthetic.darshan_writer import write_trace
from ioprism import (
    EVENTS,
    FILES,
    PROCESSES,
    Job,
    LocalEngine,
    MemoryPartition,
    Report,
    StallTime,
    Trace,
    Verdict,
    analyse,
    characterise,
    read,
)
from ioprism.characteristics.breakdown import by_file, by_host, by_rank, by_target
from ioprism.report_steps import Document
from ioprism.reports.to_html import report as form
from ioprism.views.picture.timeline import timeline
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"
MILLION = 1_000_000
HIGHEST_PAGE = 15_000_000


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Report:
    log = tmp_path_factory.mktemp("log") / "checkpointing-job.darshan"
    write_trace(log, synthesise(checkpointing_job()).trace)
    return analyse(read(log))


@pytest.fixture(scope="module")
def demo_page(demo: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "report.html"
    demo.to_html(path)
    return path


def test_a_single_storage_target_is_counted_in_the_singular() -> None:
    burst = Burst("/scratch/out", "write", Requests(count=4, size=2**20))
    made = synthesise(Workload(ranks=2, bursts=(burst,), striping=Striping(count=1, targets=1)))
    note = form.data(analyse(made.trace).document)["parts"]["targets"]["note"]

    assert note.startswith("1 storage target is used;")


def opened(screen: Page, path: Path, *, link: str = "") -> Page:
    screen.set_default_timeout(15_000)
    screen.goto(path.as_uri() + link)
    screen.wait_for_selector("html[data-ready]", state="attached")
    return screen


def written(report: Report, folder: Path) -> Path:
    path = folder / "page.html"
    report.to_html(path)
    return path


def lit(screen: Page) -> list[int]:
    """How many marks are hidden, faded and lit."""
    return list(
        screen.evaluate(
            "() => [0, 1, 2].map((k) => ioprism.shown.lit.filter((value) => value === k).length)"
        )
    )


def drawn(screen: Page, place: str) -> int:
    """How many pixels of a canvas are not empty."""
    return int(
        screen.evaluate(
            """(place) => { const c = document.querySelector(`${place} canvas`);
            const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            let n = 0; for (let i = 3; i < d.length; i += 4) if (d[i]) n += 1; return n; }""",
            place,
        )
    )


def span(screen: Page) -> float:
    return float(screen.evaluate("() => ioprism.state.time.high - ioprism.state.time.low"))


def test_the_page_tells_the_story(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page)

    assert page.inner_text("h1").startswith("I/O stalls the job for 2 min ")
    assert page.inner_text("#next-step")
    assert "10 min 00 s" in page.inner_text("#facts")
    assert page.locator(".finding").count() >= 6
    assert page.locator(".finding.high .advice").first.inner_text()
    assert page.locator("#tables table").count() >= 4


def test_every_picture_is_drawn_when_it_is_seen(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page)
    for name in ("timeline", "bandwidth", "phases", "heat", "concurrency", "targets"):
        page.locator(f"#{name} canvas").first.scroll_into_view_if_needed()
        page.wait_for_timeout(150)
        assert drawn(page, f"#{name}") > 500, name
    page.locator("#space-section").scroll_into_view_if_needed()
    page.locator(".space canvas").first.scroll_into_view_if_needed()
    page.wait_for_timeout(150)

    assert drawn(page, ".space:not([hidden])") > 500


def test_the_rhythm_and_the_sizes_are_there(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page)

    assert "repeats every 45" in page.inner_text("#rhythm-section")
    page.locator("#sizes").scroll_into_view_if_needed()
    page.wait_for_selector("#sizes .bar")


def test_showing_a_finding_lights_its_calls_and_fades_the_rest(
    screen: Page, demo_page: Path
) -> None:
    page = opened(screen, demo_page)
    page.evaluate("() => document.querySelectorAll('details').forEach(d => { d.open = true })")
    button = page.locator("#finding-stragglers button[data-show]")
    button.click()
    hidden, faded, bright = lit(page)
    ranks = page.evaluate(
        "() => [...new Set(ioprism.shown.marks.rank.filter((r, i) => ioprism.shown.lit[i] === 2))]"
    )

    assert (hidden, ranks) == (0, [37])
    assert faded > 50 * bright / 2
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert lit(page)[1] == 0


def test_keys_wheel_drag_and_double_click_move_all_pictures(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page)
    canvas = page.locator("#timeline canvas").first
    whole = span(page)
    canvas.focus()
    page.keyboard.press("+")
    by_key = span(page)
    canvas.hover()
    page.mouse.wheel(0, -100)
    page.wait_for_timeout(100)
    by_wheel = span(page)
    before = page.evaluate("() => ioprism.state.time.low")
    page.keyboard.press("ArrowRight")

    assert whole > by_key > by_wheel
    assert page.evaluate("() => ioprism.state.time.low") > before
    canvas.dblclick()
    assert span(page) == whole


def test_shift_and_drag_choose_a_stretch_of_time(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page)
    canvas = page.locator("#timeline canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 300, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 420, box["y"] + 60)
    page.mouse.up()
    page.keyboard.up("Shift")

    assert 40 < span(page) < 100


def pointed_at(page: Page, x: float, y: float) -> str:
    """Point until the page, which draws when it has time, answers."""
    for _ in range(50):
        page.mouse.move(x + 1, y)
        page.mouse.move(x, y)
        if text := page.inner_text("#tip"):
            return text
        page.wait_for_timeout(100)
    return ""


def test_pointing_at_a_call_tells_all_its_facts(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page, link="#time=42-50")
    canvas = page.locator("#timeline canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    text = pointed_at(page, box["x"] + 200, box["y"] + 60)

    for word in ("write", "MPI-IO", "rank", "took", "45.9 KiB", "offset", "checkpoint_", "targets"):
        assert word in text, text


def test_ranks_files_and_operations_are_chosen(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page)
    everything = lit(page)[2]
    page.fill("#ranks", "0-3, 37")
    page.keyboard.press("Enter")
    some_ranks = lit(page)[2]
    page.fill("#file", "mesh.nc")
    page.keyboard.press("Enter")
    one_file = lit(page)[2]
    page.select_option("#operation", "write")

    assert everything > some_ranks > one_file > 0
    assert lit(page)[2] == 0
    page.click("#reset")
    assert lit(page)[2] == everything


def test_a_deep_link_brings_back_what_was_seen(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page)
    page.select_option("#colour", "size")
    page.select_option("#highlight", "stragglers")
    page.fill("#ranks", "30-40")
    page.keyboard.press("Enter")
    page.evaluate("() => ioprism.state.time.show(100, 200)")
    page.wait_for_timeout(400)
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("html[data-ready]", state="attached")

    assert page.input_value("#colour") == "size"
    assert page.input_value("#highlight") == "stragglers"
    assert page.input_value("#ranks") == "30-40"
    assert span(page) == pytest.approx(100)


def test_a_made_up_link_does_no_harm(screen: Page, demo_page: Path) -> None:
    link = "#time=x-y&colour=__proto__&show=<img src=x>&ranks=a&files=9999999&operation=drop"

    page = opened(screen, demo_page, link=link)

    assert page.input_value("#colour") == "operation"


def test_colours_follow_dark_mode_and_the_button(screen: Page, demo_page: Path) -> None:
    screen.emulate_media(color_scheme="dark")
    page = opened(screen, demo_page)
    ground = "() => getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.click("#theme")

    assert dark == "rgb(18, 24, 31)"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"


@pytest.mark.parametrize(
    ("button", "name", "start"),
    [
        ("#save-csv", "calls.csv", "start,end,rank,layer,operation,file"),
        ("#save-svg", "pictures.svg", "<svg xmlns="),
        ("#save-png", "pictures.png", "\x89PNG"),
    ],
)
def test_pictures_and_rows_are_saved(
    screen: Page, demo_page: Path, tmp_path: Path, button: str, name: str, start: str
) -> None:
    page = opened(screen, demo_page, link="#ranks=37&time=42-60")
    with page.expect_download() as download:
        page.click(button)
    saved = tmp_path / name
    download.value.save_as(saved)

    assert download.value.suggested_filename == name
    content = saved.read_bytes()
    assert content.decode("latin-1").startswith(start)
    if name.endswith("csv"):
        rows = pl.read_csv(saved)
        assert set(rows["rank"]) == {37}
        assert rows["start"].max() <= 60  # type: ignore[operator]


def test_tables_are_sorted_and_filtered(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page)
    sheet = page.locator(".sheet", has=page.locator("h3", has_text="Files"))
    sheet.locator("th button", has_text="written").click()
    first = sheet.locator("tbody tr").first.inner_text()
    sheet.locator("input").fill("mesh.nc")

    assert "checkpoint_" in first
    assert "mesh.nc" in sheet.locator("tbody tr").first.inner_text()
    assert sheet.locator("tbody tr").count() == 1


def test_a_log_without_io_says_so(screen: Page, tmp_path: Path) -> None:
    empty = Trace("made", (Path("empty"),), Job(ranks=4, runtime=3.0),
                  load_files=FILES.empty, load_processes=PROCESSES.empty)  # fmt: skip

    page = opened(screen, written(analyse(empty), tmp_path))

    assert page.inner_text("h1") == "No I/O was recorded, so the job cannot be judged."
    assert "DXT_ENABLE_IO_TRACE" in page.inner_text("#no-calls")


def test_a_log_without_calls_says_how_to_record_them(screen: Page, tmp_path: Path) -> None:
    report = analyse(read(DATA / "l_killed_job_merged.darshan"))

    page = opened(screen, written(report, tmp_path))

    assert "DXT_ENABLE_IO_TRACE" in page.inner_text("#no-calls")
    assert page.locator("#tables table").count() >= 1


@pytest.mark.parametrize("log", ["hostile-xss.darshan", "rich-markup-path.darshan"])
def test_hostile_names_are_text(screen: Page, tmp_path: Path, log: str) -> None:
    page = opened(screen, written(analyse(read(DATA / log)), tmp_path))
    page.locator("#tables").scroll_into_view_if_needed()

    assert page.title() == "The I/O of a job"
    assert page.locator("img, iframe, object").count() == 0
    assert page.locator("script").count() == 2


def test_nothing_hostile_gets_out_of_the_data(demo: Report) -> None:
    evil = "</script><script>document.title='owned'</script>"
    content = form.data(demo.document) | {"source": [evil], "files": {"0": evil}}

    text = form.framed(content)

    assert evil not in text
    assert "unsafe" not in text
    assert "connect-src" not in text
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None and policy[1].startswith("default-src &#x27;none&#x27;")


def test_a_cell_that_looks_like_a_formula_is_saved_as_text(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page)

    assert page.evaluate("() => csvCell('=1+1')") == "'=1+1"
    assert page.evaluate("() => csvCell('a,\"b\"')") == '"a,""b"""'
    assert page.evaluate("() => csvCell(-5)") == "-5"


NOTHING = Verdict("none", 600.0, StallTime(0.0, 0.0, None, "nothing"))


def million() -> Document:
    chance = np.random.default_rng(1)
    start = np.sort(chance.uniform(0, 600, MILLION)).round(6)
    frame = EVENTS.conform(
        pl.DataFrame(
            {
                "start": start,
                "end": start + chance.exponential(1e-3, MILLION).round(7),
                "rank": chance.integers(0, 1024, MILLION),
                "file": np.zeros(MILLION, np.uint32),
                "layer": pl.repeat("posix", MILLION, eager=True),
                "operation": pl.Series(["read", "write"])[chance.integers(0, 2, MILLION)],
                "offset": np.arange(MILLION) * 4096,
                "bytes": chance.choice([4096, 65536, 2**20], MILLION),
            }
        )
    )
    trace = Trace("made", (Path("million"),), Job(ranks=1024, runtime=600.0),
                  (MemoryPartition(frame),), load_files=FILES.empty,
                  load_processes=PROCESSES.empty)  # fmt: skip
    engine = LocalEngine()
    return Document(
        trace=trace, characteristics=characterise(trace), verdict=NOTHING, findings=(),
        not_checked=(),
        phases=None, bottlenecks=None, periodicity=None,
        timeline=timeline(trace, engine), by_file=by_file(trace, engine),
        by_rank=by_rank(trace, engine), by_target=by_target(trace, engine),
        by_host=by_host(trace, engine),
    )  # fmt: skip


def test_a_million_calls_stay_in_hand(screen: Page, tmp_path: Path) -> None:
    path = tmp_path / "million.html"
    path.write_text(form.page(million()), encoding="utf-8")

    page = opened(screen, path)
    page.locator("#timeline canvas").scroll_into_view_if_needed()
    steps = page.evaluate(
        """async () => { const { state } = ioprism, took = [];
        for (let i = 0; i < 9; i += 1) { const began = performance.now();
          state.time.zoom(0.8, 300);
          await new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)));
          took.push(performance.now() - began); }
        return took.sort((a, b) => a - b); }"""
    )

    assert path.stat().st_size < HIGHEST_PAGE
    assert page.evaluate("() => ioprism.shown.marks.count") == MILLION
    # The benchmark measures the promised 3 s and 100 ms; a busy machine gets some leeway here.
    assert int(page.get_attribute("html", "data-ready") or 0) < 10_000
    assert steps[4] < 500


def test_a_page_of_too_many_calls_says_that_it_is_coarser(
    screen: Page, tmp_path: Path, demo: Report
) -> None:
    from dataclasses import replace

    shown = timeline(demo.document.trace, LocalEngine(), most=20_000)
    path = written(Report(replace(demo.document, timeline=shown)), tmp_path)

    page = opened(screen, path)

    assert "too many for one page" in page.inner_text("#coarse")
    page.locator("#in-view", has_text="115,200 calls").wait_for()


def test_what_the_page_embeds_is_as_agreed(golden: Callable[[str, str], None]) -> None:
    report = analyse(read(DATA / "a_ckpt_fpp_period5s.darshan"))
    content = form.data(report.document)
    packed = content["timeline"].pop("data")

    assert len(packed) > 1000
    content["rhythm"] = None  # long, and tested where it is made
    for table in content["tables"]:
        table["rows"] = table["rows"][:2]
    golden("report-a_ckpt_fpp_period5s.json", json.dumps(_rounded(content), indent=1) + "\n")


def _rounded(value: object) -> object:
    """Numbers to nine digits: the last ones depend on the order of sums."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", ["timeline", "bandwidth", "heat"])
def test_a_figure_is_one_picture_by_itself(
    screen: Page, demo: Report, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "figure.html"
    path.write_text(demo.figures[name].to_html(), encoding="utf-8")
    page = opened(screen, path)
    shown = page.locator("#pictures > section:visible, #story:visible, #numbers:visible")

    assert [one.get_attribute("id") for one in shown.all()] == [f"{name}-section"]
    assert page.locator(f"#{name}-section canvas").first.is_visible()
