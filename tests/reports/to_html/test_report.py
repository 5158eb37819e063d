"""The report in a real browser: it tells the story, follows the hand, and runs nothing foreign."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import Page

from benchmarks.synthetic import checkpointing_job, synthesise
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
from ioprism.characteristics.details import by_file, by_host, by_rank, by_target
from ioprism.report_steps import Document
from ioprism.reports.to_html import report as form
from ioprism.reports.to_html.picture import job_page
from ioprism.views.timeline import timeline
from tests.conftest import TEST_DATA
from tests.reports.to_html.opening import opened, painted, row_middle, settled, written

DATA = TEST_DATA / "darshan"
MILLION = 1_000_000
HIGHEST_PAGE = 12_000_000


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


def test_the_page_tells_the_story(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page)

    assert page.inner_text("h1").startswith("I/O stalls the job for 2 min ")
    assert page.inner_text("#next-step")
    assert page.locator("#story .finding").count() >= 6
    assert page.locator("#story .cause .advice").first.inner_text()
    page.click("#tab-facts")
    assert "10 min 00 s" in page.inner_text("#facts")
    for tab in ("files", "ranks", "targets", "phases", "more"):
        page.click(f"#tab-{tab}")
        assert page.locator("#tab-panel table").count() >= 1, tab


def test_every_track_is_drawn(screen: Page, demo_page: Path) -> None:
    page = opened(
        screen, demo_page, link="#open=chart:targets,chart:offsets,chart:period&filter=37"
    )
    for name in ("phases", "bandwidth", "concurrency", "period", "targets", "offsets"):
        assert painted(page, "#stage", f"chart:{name}") > 300, name


def test_the_period_and_the_sizes_are_there(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page)
    page.click("#tab-period")

    assert "repeats every 45" in page.inner_text("#period-text")
    page.click("#tab-details")
    page.wait_for_selector(".sizes .bar")


def test_highlighting_a_finding_lights_its_calls_and_fades_the_rest(
    screen: Page, demo_page: Path
) -> None:
    page = opened(screen, demo_page)
    page.evaluate("() => document.querySelectorAll('details').forEach(d => { d.open = true })")
    button = page.locator("#card-stragglers button[data-show]")
    button.click()
    lit = page.evaluate("() => ioprism.pane.lit.reduce((sum, one) => sum + one, 0)")
    ranks = page.evaluate(
        "() => [...new Set([...ioprism.pane.lit.keys()].filter((i) => ioprism.pane.lit[i])"
        ".map((i) => ioprism.job.marks.rank[i]))]"
    )

    assert ranks == [37]
    assert 0 < lit < page.evaluate("() => ioprism.job.marks.count") / 50
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert page.evaluate("() => ioprism.pane.lit") is None


def test_pointing_at_a_call_tells_all_its_facts(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page, link="#t=42~50")
    left, top = row_middle(page, "rank:3")
    page.mouse.move(left + 200, top)
    page.mouse.move(left + 201, top)
    page.wait_for_selector("#tip:not([hidden])")
    text = page.inner_text("#tip")

    for word in ("write", "POSIX", "rank", "took", "45.9 KiB", "offset", "checkpoint_", "targets"):
        assert word in text, text


def test_a_made_up_link_does_no_harm(screen: Page, demo_page: Path) -> None:
    link = "#t=x~y&colour=__proto__&show=<img src=x>&filter=a&call=1~x~y~z&proof=no&pins=<b>"

    page = opened(screen, demo_page, link=link)

    assert page.input_value("#colour") == "operation"
    assert "does not have" in page.inner_text("#chips")


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
        ("#save-csv", "calls.csv", "start,end,rank,layer,operation,function,file"),
        ("#save-svg", "tracks.svg", "<svg xmlns="),
        ("#save-png", "tracks.png", "\x89PNG"),
    ],
)
def test_tracks_and_calls_are_saved(
    screen: Page, demo_page: Path, tmp_path: Path, button: str, name: str, start: str
) -> None:
    tab = "details" if name.endswith("csv") else "settings"
    page = opened(screen, demo_page, link=f"#t=42~60&select=42~60~37&tab={tab}")
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
    if name.endswith("svg"):
        ElementTree.fromstring(content)


def test_tables_are_sorted_and_filtered(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page, link="#tab=files")
    sheet = page.locator(".sheet")
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
    assert "DXT_ENABLE_IO_TRACE" in page.inner_text("#chips")


def test_a_log_without_calls_says_how_to_record_them(screen: Page, tmp_path: Path) -> None:
    report = analyse(read(DATA / "l_killed_job_merged.darshan"))

    page = opened(screen, written(report, tmp_path))

    assert "DXT_ENABLE_IO_TRACE" in page.inner_text("#chips")
    page.click("#tab-files")
    assert page.locator("#tab-panel table").count() >= 1


@pytest.mark.parametrize("log", ["hostile-xss.darshan", "rich-markup-path.darshan"])
def test_hostile_names_are_text(screen: Page, tmp_path: Path, log: str) -> None:
    page = opened(screen, written(analyse(read(DATA / log)), tmp_path))
    page.click("#tab-files")

    assert page.title() == "The I/O of a job"
    assert page.locator("img, iframe, object").count() == 0
    assert page.locator("script").count() == 2


def test_nothing_hostile_gets_out_of_the_data(demo: Report) -> None:
    evil = "</script><script>document.title='owned'</script>"
    content = form.data(demo.document) | {"source": [evil], "files": {"0": evil}}

    text = job_page(content)

    assert evil not in text
    assert "unsafe" not in text
    assert "connect-src" not in text
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None and policy[1].startswith("default-src &#x27;none&#x27;")


def test_a_cell_that_looks_like_a_formula_is_saved_as_text(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page)

    assert page.evaluate("() => ioprism.csvCell('=1+1')") == "'=1+1"
    assert page.evaluate("() => ioprism.csvCell('a,\"b\"')") == '"a,""b"""'
    assert page.evaluate("() => ioprism.csvCell(-5)") == "-5"


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
    steps = page.evaluate(
        """async () => { const { axis } = ioprism, took = [];
        for (let i = 0; i < 9; i += 1) { const began = performance.now();
          axis.zoom(0.8, 300);
          await new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)));
          took.push(performance.now() - began); }
        return took.sort((a, b) => a - b); }"""
    )

    assert path.stat().st_size < HIGHEST_PAGE
    assert page.evaluate("() => ioprism.job.marks.count") == MILLION
    # The benchmark measures the promised 1.5 s and 50 ms; a busy machine gets some leeway here.
    assert int(page.get_attribute("html", "data-ready") or 0) < 10_000
    assert steps[4] < 500


def test_a_page_of_too_many_calls_says_that_it_is_coarser(
    screen: Page, tmp_path: Path, demo: Report
) -> None:
    from dataclasses import replace

    shown = timeline(demo.document.trace, LocalEngine(), most=20_000)
    path = written(Report(replace(demo.document, timeline=shown)), tmp_path)

    page = opened(screen, path)

    assert "115,200 calls: those of a rank within" in page.inner_text("#chips")


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


@pytest.mark.parametrize("name", ["timeline", "bandwidth", "heat", "sizes", "rhythm"])
def test_a_figure_is_one_picture_by_itself(
    screen: Page, demo: Report, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "figure.html"
    path.write_text(demo.figures[name].to_html(), encoding="utf-8")
    page = settled(opened(screen, path))
    kinds = set(page.evaluate("() => ioprism.pane.layout.rows.map((row) => row.chart || row.kind)"))

    assert not page.locator("#story").is_visible()
    if name == "sizes":
        assert page.locator(".sizes .bar").first.is_visible()
    elif name == "rhythm":
        assert page.locator("#period-text").is_visible()
    else:
        assert kinds == ({"bandwidth"} if name == "bandwidth" else {"host", "rank"})
