"""What people do with the report's page: each task in at most five interactions."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import Browser, Page

from benchmarks.synthetic import checkpointing_job, synthesise
from benchmarks.synthetic.darshan_writer import write_trace
from ioprism import (
    EVENTS,
    FILES,
    PROCESSES,
    Job,
    MemoryPartition,
    Report,
    Trace,
    analyse,
    read,
)
from ioprism.reports.to_html import report as form
from ioprism.reports.to_html.picture import job_page
from tests.conftest import SHARED_DATA, TEST_DATA
from tests.reports.to_html.opening import (
    PHONE,
    WIDE,
    opened,
    painted,
    row_middle,
    settled,
    span,
    written,
)

DATA = TEST_DATA / "darshan"
SLOW_RANK = 37  # of the checkpointing job


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Report:
    log = tmp_path_factory.mktemp("log") / "checkpointing-job.darshan"
    write_trace(log, synthesise(checkpointing_job()).trace)
    return analyse(read(log))


@pytest.fixture(scope="module")
def demo_page(demo: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(demo, tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def real_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run of eight checkpoints, one file per rank."""
    return written(
        analyse(read(DATA / "a_ckpt_fpp_period5s.darshan")), tmp_path_factory.mktemp("real")
    )


def test_the_first_screen_shows_verdict_causes_tracks_and_details(
    screen: Page, demo_page: Path
) -> None:
    page = settled(opened(screen, demo_page))
    size = page.evaluate("() => [document.documentElement.scrollHeight, innerHeight]")

    assert size[0] <= size[1]
    assert page.inner_text("h1").startswith("I/O stalls the job for 2 min ")
    assert page.locator("#ledger button").count() >= 3
    assert page.locator("#story .cause").count() == 2
    for key in ("chart:phases", "chart:bandwidth", f"rank:{SLOW_RANK}"):
        assert painted(page, "#stage", key) > 50, key
    assert "Whole run" in page.inner_text("#in-view")


def test_nothing_shifts_while_the_page_loads(browser: Browser, demo_page: Path) -> None:
    page = browser.new_page(viewport=WIDE)  # type: ignore[arg-type]
    page.add_init_script(
        "window.shift = 0; new PerformanceObserver((list) => { for (const one of list.getEntries())"
        " window.shift += one.value; }).observe({ type: 'layout-shift', buffered: true });"
    )
    settled(opened(page, demo_page))

    assert page.evaluate("() => window.shift") < 0.05
    page.close()


def test_one_click_shows_the_slowest_rank_of_the_second_checkpoint(
    screen: Page, demo_page: Path
) -> None:
    page = opened(screen, demo_page)
    left, top, middle = page.evaluate(
        """() => { const { pane, axis, job } = ioprism, box = pane.stage.getBoundingClientRect();
        const writes = job.data.phases.mpiio.phases.filter((one) => one.kind === 'write');
        const n = pane.layout.rows.findIndex((row) => row.key === 'chart:phases');
        return [box.left + pane.left, box.top + pane.layout.tops[n] + 8,
          axis.across((writes[1].start + writes[1].end) / 2, pane.width)]; }"""
    )
    page.mouse.click(left + middle, top)
    settled(page)

    slowest = page.locator(".block", has_text="Slowest ranks").locator("tbody tr").first
    assert f"rank {SLOW_RANK}" in slowest.inner_text()
    assert not page.evaluate("() => ioprism.axis.whole")


def test_keys_find_the_slowest_rank_its_file_and_its_target(
    screen: Page, demo_page: Path, demo: Report
) -> None:
    page = opened(screen, demo_page)
    for key in ("]", "]", "]", "x"):  # the input, two checkpoints, the slowest rank
        page.keyboard.press(key)
    settled(page)
    chosen = page.evaluate("() => ioprism.store.view.select")
    targets = targets_of(demo.document.trace, SLOW_RANK, chosen["low"], chosen["high"])

    assert page.inner_text("#in-view").endswith(f"rank {SLOW_RANK}")
    block = page.locator(".block")
    assert "checkpoint_001.nc" in block.filter(has_text="Files").inner_text()
    listed = block.filter(has_text="Targets").locator("tbody tr td:first-child, tbody tr th")
    assert targets and {text for text in listed.all_inner_texts() if text} == targets


def targets_of(trace: Trace, rank: int, low: float, high: float) -> set[str]:
    """The storage targets that a rank's writes of some time lie on."""
    layouts = {row["file"]: row for row in trace.files.iter_rows(named=True)}
    calls = trace.events().filter(
        pl.col("rank") == rank, pl.col("start") < high, pl.col("end") > low,
        pl.col("operation") == "write", pl.col("bytes") > 0, pl.col("layer") == "posix",
    )  # fmt: skip
    found = set()
    for file, offset, size in calls.select("file", "offset", "bytes").iter_rows():
        stripe, targets = layouts[file]["stripe_size"], layouts[file]["targets"]
        stripes = range(offset // stripe, (offset + size - 1) // stripe + 1)
        found |= {f"target {targets[n % len(targets)]}" for n in stripes}
    return found


def test_the_second_checkpoint_of_a_real_run(screen: Page, real_page: Path) -> None:
    page = opened(screen, real_page)
    page.keyboard.press("]")
    page.keyboard.press("]")
    page.keyboard.press("x")
    settled(page)
    phases = page.evaluate("() => ioprism.job.phases()")
    low, high = page.evaluate(
        "() => [ioprism.store.view.select.low, ioprism.store.view.select.high]"
    )
    chosen = int(page.evaluate("() => ioprism.store.view.select.ranks"))

    assert (low, high) == (phases[1]["start"], phases[1]["end"])
    events = read(DATA / "a_ckpt_fpp_period5s.darshan").events().filter(
        pl.col("layer") == phases[1]["layer"]
    )  # fmt: skip
    inside = events.with_columns(
        time=(pl.min_horizontal("end", pl.lit(high)) - pl.max_horizontal("start", pl.lit(low)))
    ).filter(pl.col("time") > 0)
    by_rank = inside.group_by("rank").agg(pl.col("time").sum()).sort("time", descending=True)
    assert chosen == by_rank["rank"][0]


def test_the_proof_of_a_cause_shows_the_slow_rank_beside_a_healthy_one(
    screen: Page, demo_page: Path
) -> None:
    page = opened(screen, demo_page)
    page.click("#ledger button[data-what=slow-rank]")
    settled(page)
    pins = page.evaluate("() => ioprism.store.view.pins")
    excess = page.evaluate("() => ioprism.pane.excess")

    assert pins[0] == f"rank:{SLOW_RANK}" and len(pins) == 2
    assert page.locator("#pinned .label").count() == 2
    assert excess["rank"] == SLOW_RANK and excess["to"] > excess["from"]
    assert "hatched" in page.inner_text("#chips")
    assert not page.evaluate("() => ioprism.axis.whole")
    page.locator("#chips button", has_text="Back").click()
    settled(page)
    assert page.evaluate("() => ioprism.axis.whole && !ioprism.store.view.pins.length")


def test_a_healthy_peer_keeps_the_colours_of_the_legend(screen: Page, demo_page: Path) -> None:
    """Neither what is highlighted nor the selection changes what the peer's row looks like."""
    page = opened(screen, demo_page)
    page.click("#ledger button[data-what=slow-rank]")
    settled(page)
    found = page.evaluate(
        """() => { const { pane } = ioprism, canvas = document.querySelector('#pinned canvas');
        const tones = new Set(pane.paint.colours.map((tone) => tone.join()));
        const ratio = devicePixelRatio, top = (pane.pinned.tops[1] + 8) * ratio;
        const d = canvas.getContext('2d').getImageData(pane.left * ratio, top,
          pane.width * ratio, 1).data;
        let own = 0; for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255
          && tones.has([d[i], d[i + 1], d[i + 2]].join())) own += 1; return own; }"""
    )

    assert found > 10


def test_a_narrow_phase_can_be_hit_and_the_tooltip_gives_way(screen: Page, real_page: Path) -> None:
    page = opened(screen, real_page)
    left, top = row_middle(page, "chart:phases")
    phase = page.evaluate("() => ioprism.job.phases()[6]")
    x = page.evaluate(f"() => ioprism.axis.across({phase['start']}, ioprism.pane.width)")
    page.mouse.move(left + x - 4, top)
    assert page.locator("#tip").is_visible()
    page.mouse.click(left + x - 4, top)

    assert page.locator("#tip").is_hidden()
    assert page.evaluate("() => ioprism.store.view.select.low") == phase["start"]


def test_a_phone_goes_to_the_tracks_that_it_is_shown(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page, size=PHONE)
    page.locator(".cause > summary").first.click()
    page.locator("[data-proof]").first.click()
    settled(page)
    box = page.locator("#pinned").bounding_box()

    assert box is not None
    assert 0 <= box["y"] < PHONE["height"] / 2


def test_a_phone_shows_a_chart_on_its_first_screen(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page, size=PHONE)
    box = page.locator("#stage").bounding_box()

    assert box is not None
    assert box["y"] + 60 < PHONE["height"]


def test_equal_causes_keep_their_own_names_in_the_ledger(
    screen: Page, demo: Report, tmp_path: Path
) -> None:
    content = form.data(demo.document)
    first = content["diagnosis"]["causes"][0]
    second = {**first, "id": "cause-9-again", "title": "the same for another file"}
    content["diagnosis"]["causes"] = [first, second]
    line = {"what": first["code"], "seconds": 20.0}
    content["diagnosis"]["ledger"] = [line, {**line, "seconds": 10.0}]
    path = tmp_path / "page.html"
    path.write_text(job_page(content), encoding="utf-8")
    page = opened(screen, path)
    titles = [part.get_attribute("title") or "" for part in page.locator("#ledger button").all()]

    assert titles[0] == f"{first['title']}: 20.0 s"
    assert titles[1] == "the same for another file: 10.0 s"


def test_a_real_slow_rank_is_proved_from_the_keyboard(screen: Page, tmp_path: Path) -> None:
    report = analyse(read(DATA / "g_straggler_rank2.darshan"))
    page = opened(screen, written(report, tmp_path))
    page.keyboard.press("1")
    settled(page)

    slow, peer = (int(key[5:]) for key in page.evaluate("() => ioprism.store.view.pins"))
    low, high = span(page)
    inside = report.document.trace.events().filter(pl.col("end") > low, pl.col("start") < high)
    spent = {rank: inside.filter(rank=rank).select(pl.col("end") - pl.col("start")).sum().item()
             for rank in (slow, peer)}  # fmt: skip

    assert slow == 2
    assert spent[slow] > 2 * spent[peer]
    assert "beside median peer" in page.inner_text("#chips")


def test_all_calls_on_one_file(screen: Page, demo_page: Path, demo: Report) -> None:
    page = opened(screen, demo_page)
    page.keyboard.press("/")
    page.keyboard.type("checkpoint_003")
    page.keyboard.press("Enter")
    settled(page)
    path = "/scratch/climate/checkpoint_003.nc"
    (number,) = demo.document.trace.files.filter(path=path)["file"]
    calls = demo.document.trace.events().filter(file=number).height

    assert f"{path} ({calls:,} calls)" in page.inner_text("#chips")
    assert page.evaluate("() => ioprism.pane.lit.reduce((sum, one) => sum + one, 0)") == calls
    page.keyboard.press("n")
    settled(page)
    assert path in page.inner_text(".call")
    page.keyboard.press("Escape")
    assert page.evaluate("() => ioprism.pane.lit") is None


def test_keys_find_the_calls_on_a_file_of_a_real_run_and_a_link_to_one(
    screen: Page, real_page: Path
) -> None:
    trace = read(DATA / "a_ckpt_fpp_period5s.darshan")
    path, number = trace.files.filter(pl.col("path").str.contains("ckpt")).row(0)[1::-1]
    name, calls = str(path).rpartition("/")[2], trace.events().filter(file=number)
    page = opened(screen, real_page)
    page.keyboard.press("/")
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    page.keyboard.press("n")
    settled(page)
    facts, link = page.inner_text(".call .facts"), page.url
    lit = page.evaluate("() => ioprism.pane.lit.reduce((sum, one) => sum + one, 0)")
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector(".call .facts")

    assert lit == calls.height
    assert page.inner_text(".call .facts") == facts
    assert page.evaluate("() => ioprism.pane.pinnedCall") >= 0
    assert str(path) in facts
    assert f"{calls['start'].to_numpy().min():.3f}" in facts


def test_a_link_leads_to_a_call(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page, link="#t=86~92")
    left, top = row_middle(page, f"rank:{SLOW_RANK}")
    page.mouse.click(left + 400, top)
    settled(page)
    facts, link = page.inner_text(".call .facts"), page.url
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector(".call .facts")

    assert "took" in facts and f"{SLOW_RANK} on node0003" in facts
    assert page.inner_text(".call .facts") == facts
    assert span(page) == (86, 92)


def test_a_pinned_call_knows_the_layer_above_and_its_neighbours(
    screen: Page, demo_page: Path
) -> None:
    page = opened(screen, demo_page, link="#t=86~92")
    left, top = row_middle(page, f"rank:{SLOW_RANK}")
    page.mouse.click(left + 400, top)
    settled(page)
    before = page.inner_text(".call .facts")

    assert "MPI-IO write" in page.inner_text(".call .nest")
    page.locator(".call button", has_text="next").click()
    settled(page)
    assert page.inner_text(".call .facts") != before
    assert page.evaluate("() => ioprism.pane.lit") is None  # a click never filters


def test_dragging_selects_time_and_ranks_and_sums_what_is_inside(
    screen: Page, demo_page: Path, demo: Report
) -> None:
    page = opened(screen, demo_page, link="#t=40~56&layer=posix")
    left, top = row_middle(page, "rank:33")
    _, bottom = row_middle(page, "rank:40")
    page.mouse.move(left + 200, top)
    page.mouse.down()
    page.mouse.move(left + 300, bottom, steps=4)
    page.mouse.up()
    settled(page)
    chosen = page.evaluate("() => ioprism.store.view.select")
    events = demo.document.trace.events().filter(
        pl.col("rank").is_between(33, 40), pl.col("layer") == "posix"
    )
    low, high = chosen["low"], chosen["high"]
    clipped = pl.min_horizontal("end", pl.lit(high)) - pl.max_horizontal("start", pl.lit(low))
    seconds = events.select(clipped.clip(0).sum()).item()

    assert chosen["ranks"] == "33-40"
    row = page.locator(".totals tr", has_text="cumulative I/O time").locator("td").first
    assert float(row.inner_text().split()[0]) == pytest.approx(
        seconds, abs=0.06
    )  # three digits are shown
    assert "other ranks, same time" in page.inner_text(".totals")
    page.go_back()
    settled(page)
    assert page.evaluate("() => ioprism.store.view.select") is None


def test_only_interface_of_a_rank_is_not_shown_twice(screen: Page, real_page: Path) -> None:
    page = opened(screen, real_page, link="#rows=tall&filter=1")

    assert page.locator(".label.layer").count() == 0
    assert page.locator(".label.function").all_inner_texts() == ["POSIX write"]


def test_names_of_rows_have_no_tooltip_about_a_time(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page, link="#rows=tall&filter=37")
    page.locator(".label.rank").first.hover()

    assert not page.locator("#tip").is_visible()


def test_rows_open_from_ranks_to_interfaces_to_functions(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page, link="#rows=tall&filter=37")
    layers = page.locator(".label.layer .name")  # few ranks are open from the start

    assert layers.all_inner_texts() == ["▸ MPI-IO", "▸ POSIX"]
    layers.nth(0).focus()
    page.keyboard.press("Enter")
    settled(page)
    assert "write" in page.locator(".label.function").all_inner_texts()
    assert painted(page, "#stage", page.evaluate(
        "() => ioprism.pane.layout.rows.find((row) => row.kind === 'layer').key"
    )) > 20  # fmt: skip


@pytest.mark.parametrize(("order", "first"), [("time", 37), ("late", 37), ("rank", 0)])
def test_ranks_are_sorted(screen: Page, demo_page: Path, order: str, first: int) -> None:
    page = opened(screen, demo_page, link="#group=none")
    page.select_option("#sort", order)

    assert (
        page.evaluate("() => ioprism.pane.layout.rows.find((row) => row.kind === 'rank').ranks[0]")
        == first
    )


def test_the_rows_filter_takes_ranks_or_a_host_and_says_so(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page)
    ranks = "() => ioprism.pane.layout.rows.filter((row) => row.kind === 'rank').length"
    page.fill("#filter", "0-3, 37")
    page.keyboard.press("Enter")
    by_number = page.evaluate(ranks)
    page.fill("#filter", "node0002")
    page.keyboard.press("Enter")

    assert (by_number, page.evaluate(ranks)) == (5, 16)
    assert "node0002" in page.inner_text("#chips")
    page.fill("#filter", "no such host")
    page.keyboard.press("Enter")
    assert page.get_attribute("#filter", "aria-invalid") == "true"


def test_table_rows_and_tracks_choose_each_other(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page, link="#tab=ranks&rows=tall")
    page.fill("[aria-label='Filter Ranks']", "37")
    page.locator("#tab-panel td button", has_text="37").first.click()
    settled(page)
    row = page.evaluate(
        """() => { const { pane } = ioprism;
        const n = pane.layout.rows.findIndex((row) => row.key === 'rank:37');
        return pane.layout.tops[n] - pane.scroll.scrollTop; }"""
    )

    assert page.evaluate("() => ioprism.store.view.select.ranks") == "37"
    assert 0 <= row < page.evaluate("() => ioprism.pane.scroll.clientHeight")
    assert page.locator("#tab-panel tr.chosen").count() >= 1


def test_plain_wheel_scrolls_and_control_wheel_zooms(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page, link="#rows=tall")
    left, top = row_middle(page, "chart:bandwidth")
    page.mouse.move(left + 300, top)
    page.mouse.wheel(0, 300)
    settled(page)
    scrolled, whole = page.evaluate("() => [ioprism.pane.scroll.scrollTop, ioprism.axis.whole]")
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    settled(page)

    assert scrolled > 100 and whole
    assert not page.evaluate("() => ioprism.axis.whole")


def test_a_moving_view_is_painted_once_and_again_when_it_rests(
    screen: Page, demo_page: Path
) -> None:
    page = settled(opened(screen, demo_page, link="#t=40~56"))
    moved, drawn = page.evaluate(
        """async () => { const { pane, axis } = ioprism, paint = pane.paintContent;
        let times = 0;
        pane.paintContent = (...given) => { times += 1; paint.apply(pane, given); };
        for (let n = 0; n < 12; n += 1) {
          axis.pan(0.02);
          await new Promise((seen) => requestAnimationFrame(seen)); }
        const { data } = pane.stage.querySelector('canvas').getContext('2d')
          .getImageData(pane.left, 0, pane.width, 200);
        return [times, data.filter((value, n) => n % 4 === 3 && value).length]; }"""
    )
    settled(page)
    axis, shown = page.evaluate(
        """() => { const { axis, pane } = ioprism, { low, high } = pane.main.shown;
        return [[axis.low, axis.high], [low, high]]; }"""
    )

    assert moved == 1  # with what lies beside the view
    assert drawn > 1000
    assert shown == axis


@pytest.mark.parametrize("place", ["#verdict", "#story", "#overview", "#stage", "#panel"])
def test_the_wheel_scrolls_a_small_window_from_everywhere(
    screen: Page, demo_page: Path, place: str
) -> None:
    page = opened(screen, demo_page, size={"width": 700, "height": 700})
    page.locator(place).scroll_into_view_if_needed()
    box = page.locator(place).bounding_box()
    assert box is not None
    before = page.evaluate("() => scrollY")
    page.mouse.move(box["x"] + box["width"] / 2, max(5, min(690, box["y"] + 10)))
    page.mouse.wheel(0, -300 if before > 150 else 300)
    page.wait_for_timeout(400)

    assert abs(page.evaluate("() => scrollY") - before) > 100


@pytest.mark.parametrize("place", ["#overview", "#stage", "#panel"])
def test_one_finger_scrolls_the_page_also_over_charts(
    browser: Browser, demo_page: Path, place: str
) -> None:
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)  # type: ignore[arg-type]
    page = opened(context.new_page(), demo_page, size=PHONE)
    page.locator(place).evaluate("(one) => one.scrollIntoView({ block: 'center' })")
    box = page.locator(place).bounding_box()
    before = page.evaluate("() => scrollY")
    assert box is not None
    start = max(60.0, min(600.0, box["y"] + min(box["height"], 200) / 2))
    finger = context.new_cdp_session(page)
    for step in range(11):
        point = {"x": 250, "y": start + 20 * step}
        kind = "touchMove" if step else "touchStart"
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
        page.wait_for_timeout(16)
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_timeout(400)

    assert before - page.evaluate("() => scrollY") > 100
    assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"]
    context.close()


def test_two_fingers_zoom(browser: Browser, demo_page: Path) -> None:
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)  # type: ignore[arg-type]
    page = opened(context.new_page(), demo_page, size=PHONE)
    page.locator("#stage").evaluate("(one) => one.scrollIntoView({ block: 'center' })")
    box = page.locator("#stage").bounding_box()
    assert box is not None
    session, y = context.new_cdp_session(page), max(100.0, box["y"] + 60)
    for kind, apart in (("touchStart", 30), ("touchMove", 60), ("touchMove", 100)):
        points = [{"x": 240 - apart, "y": y, "id": 1}, {"x": 240 + apart, "y": y, "id": 2}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_timeout(300)

    assert not page.evaluate("() => ioprism.axis.whole")
    context.close()


def long_run() -> Trace:
    """Ten hours with two short calls near the end."""
    frame = EVENTS.conform(
        pl.DataFrame(
            {
                "start": [1.0, 35_999.123456],
                "end": [2.0, 35_999.1234565],
                "rank": [0, 1],
                "file": pl.Series([0, 0], dtype=pl.UInt32),
                "layer": ["posix", "posix"],
                "operation": ["write", "write"],
                "offset": [0, 4096],
                "bytes": [4096, 4096],
            }
        )
    )
    return Trace("made", (Path("long"),), Job(ranks=2, runtime=36_000.0),
                 (MemoryPartition(frame),), load_files=FILES.empty,
                 load_processes=PROCESSES.empty)  # fmt: skip


def test_a_link_is_exact_at_a_microsecond_in_ten_hours(screen: Page, tmp_path: Path) -> None:
    path = written(analyse(long_run()), tmp_path)
    page = opened(screen, path)
    page.evaluate("() => ioprism.axis.show(35999.123456, 35999.123457)")
    settled(page)
    seen, link = span(page), page.url
    page.goto("about:blank")
    opened(page, Path(path), link=link[link.index("#") :])

    assert span(page) == seen
    assert page.evaluate("() => ioprism.job.marks.tick") == 1e-9
    page.keyboard.press("s")
    settled(page)
    page.go_back()
    settled(page)
    assert span(page) == seen


def test_back_undoes_theme_scale_and_zoom(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page)
    page.keyboard.press("l")
    page.click("#theme")
    page.keyboard.press("w")
    page.wait_for_function("() => location.hash.includes('t=')")
    for _ in range(3):
        page.go_back()
        settled(page)
    view = page.evaluate("() => [ioprism.store.view.log, ioprism.store.view.theme]")

    assert view == [False, ""]
    assert page.evaluate("() => ioprism.axis.whole")
    assert page.get_attribute("html", "data-theme") is None


def test_the_palette_lists_every_key_and_runs_commands(screen: Page, demo_page: Path) -> None:
    page = opened(screen, demo_page)
    page.keyboard.press("?")
    listed = page.inner_text("#palette")
    for key in ("w", "a", "]", "[", "n", "p", "/", "x", "1"):
        assert f"\n{key}" in listed, key
    page.keyboard.type("next phase")
    page.keyboard.press("Enter")
    settled(page)

    assert page.evaluate("() => ioprism.store.view.select !== null")


def hundred_thousand_ranks() -> Trace:
    ranks = np.arange(100_000)
    start = 10.0 + (ranks % 977) / 100.0
    frame = EVENTS.conform(
        pl.DataFrame(
            {
                "start": start,
                "end": start + 1.0,
                "rank": ranks,
                "file": np.zeros(len(ranks), np.uint32),
                "layer": pl.repeat("posix", len(ranks), eager=True),
                "operation": pl.repeat("write", len(ranks), eager=True),
                "offset": ranks * 4096,
                "bytes": np.full(len(ranks), 4096),
            }
        )
    )
    return Trace("made", (Path("wide"),), Job(ranks=len(ranks), runtime=60.0),
                 (MemoryPartition(frame),), load_files=FILES.empty,
                 load_processes=PROCESSES.empty)  # fmt: skip


def test_a_hundred_thousand_ranks_scroll(screen: Page, tmp_path: Path) -> None:
    page = opened(screen, written(analyse(hundred_thousand_ranks()), tmp_path))
    rows, labels, strokes = page.evaluate(
        """async () => { const { store, pane } = ioprism;
        const groups = pane.layout.rows.filter((row) => row.kind === 'group');
        store.set({ open: groups.slice(0, 250).map((row) => row.key), rows: 'tall' });
        const pen = CanvasRenderingContext2D.prototype;
        let strokes = 0, most = 0;
        for (const name of ['fillRect', 'fill', 'stroke', 'fillText', 'drawImage', 'lineTo']) {
          const draw = pen[name];
          pen[name] = function (...given) { strokes += 1; return draw.apply(this, given); }; }
        for (let i = 0; i < 20; i += 1) { strokes = 0;
          pane.scroll.scrollTop = i * 70000;
          await new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)));
          most = Math.max(most, strokes); }
        const labels = document.querySelectorAll('#stage .label').length;
        return [pane.layout.rows.length, labels, most]; }"""
    )

    assert rows > 70_000
    assert labels < 60  # rows that are not seen do not exist
    assert 0 < strokes < 10_000  # nor are they drawn


@pytest.mark.corpus
def test_functions_of_a_training_run_have_their_names(screen: Page, tmp_path: Path) -> None:
    traces = sorted((SHARED_DATA / "dftracer" / "dlio").glob("*.pfw"))
    page = opened(screen, written(analyse(read(*traces)), tmp_path))
    rows = page.locator(".label .name").all_inner_texts()
    legend = page.inner_text("#legend")

    assert "▸ application" in rows
    assert "TorchFramework.compute" in legend and "read" in legend
    assert "HDF5Reader.get_sample" in page.evaluate("() => ioprism.job.marks.functions")
    page.keyboard.press("/")
    page.keyboard.type("get_sample")
    page.keyboard.press("Enter")
    page.keyboard.press("n")
    settled(page)
    assert page.inner_text(".call h3") == "HDF5Reader.get_sample"
    assert "Called by" in page.inner_text(".call")


@pytest.mark.corpus
def test_the_calls_behind_a_cause_of_a_public_log(screen: Page, tmp_path: Path) -> None:
    (log,) = (SHARED_DATA / "darshan" / "public" / "dxt-explorer-sample").glob("*.darshan")
    shutil.copy(log, tmp_path / "log.darshan")
    page = opened(screen, written(analyse(read(tmp_path / "log.darshan")), tmp_path))
    page.keyboard.press("1")
    settled(page)

    assert page.evaluate("() => ioprism.store.view.pins.length") == 2
    assert "Proof" in page.inner_text("#chips")


@pytest.mark.corpus
def test_a_heat_map_log_shows_intensity(screen: Page, tmp_path: Path) -> None:
    log = SHARED_DATA / "darshan" / "public" / "e3sm_io_heatmap_only.darshan"
    page = opened(screen, written(analyse(read(log)), tmp_path))

    assert "heat map" in page.inner_text("#chips")
    assert re.fullmatch(
        r"up to [\d.]+ [KM]iB/s of a rank, through POSIX", page.inner_text("#legend")
    )
    assert painted(page, "#stage", "rank:0") > 100


@pytest.mark.corpus
def test_a_counters_only_log_shows_spans_and_sizes(screen: Page, tmp_path: Path) -> None:
    log = SHARED_DATA / "darshan" / "public" / "pydarshan" / "sample.darshan"
    page = settled(opened(screen, written(analyse(read(log)), tmp_path)))
    marks = page.evaluate("() => [ioprism.job.marks.count, ioprism.job.data.timeline.source]")

    assert marks[0] > 0 and marks[1] == "counters"
    assert "Counters only" in page.inner_text("#chips")
    assert "Request sizes" in page.inner_text("#tab-panel")
    assert "cumulative" not in page.inner_text("#tab-panel")  # counters of all ranks do not tell


def one_name_twice() -> Trace:
    """Two ranks that write files of one name in folders of a long path."""
    ranks = np.arange(2, dtype=np.int64)
    files = pl.DataFrame(
        {
            "file": pl.Series([0, 1], dtype=pl.UInt32),
            "path": [f"/scratch/projects/climate/member-{n}/run-1/restart.nc" for n in (1, 2)],
        }
    )
    frame = EVENTS.conform(
        pl.DataFrame(
            {
                "start": 1.0 + ranks,
                "end": 2.0 + ranks,
                "rank": ranks,
                "file": ranks.astype(np.uint32),
                "layer": ["posix", "posix"],
                "operation": ["write", "write"],
                "offset": [0, 0],
                "bytes": [4096, 4096],
            }
        )
    )
    return Trace(
        "made",
        (Path("twice"),),
        Job(ranks=2, runtime=60.0),
        (MemoryPartition(frame),),
        load_files=lambda: FILES.conform(files),
        load_processes=PROCESSES.empty,
    )


def test_files_of_one_name_are_told_apart_and_long_paths_leave_room(
    screen: Page, tmp_path: Path
) -> None:
    content = form.data(analyse(one_name_twice()).document)
    content["verdict"]["line"] = "Files such as /scratch/projects/climate/member-1/run-1/restart.nc"
    path = tmp_path / "page.html"
    path.write_text(job_page(content), encoding="utf-8")
    page = settled(opened(screen, path))
    names = page.locator(".block", has_text="Files").locator("tbody button").all_inner_texts()

    assert sorted(names) == ["member-1/run-1/restart.nc", "member-2/run-1/restart.nc"]
    assert page.inner_text("h1") == "Files such as …/run-1/restart.nc"
    assert str(page.get_attribute("h1", "title")).endswith("/member-1/run-1/restart.nc")


def test_a_phone_reaches_the_details_below_many_ranks_with_one_tap(
    screen: Page, demo_page: Path
) -> None:
    page = opened(screen, demo_page, size=PHONE)
    page.click("#to-panel")
    settled(page)
    box = page.locator("#panel").bounding_box()

    assert box is not None
    assert 0 <= box["y"] < PHONE["height"] / 2
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    assert page.locator("#to-panel").is_hidden()
