"""The report beside DXT Explorer, a page of a million calls, and exploring ten million.

CPU seconds are user and system time of the whole process, start-up and children included.
A page is interactive when its first picture is on the screen, in the same Chromium.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.darshan_reading import MILLION, dxt_log
from benchmarks.peers import OURS, SHARED, measure, peer, row

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SAMPLE = SHARED / "darshan/public/dxt-explorer-sample"
ONE_MILLION = SHARED / "darshan/made/big/synth_dxt_1M.darshan"
# The packages of its time: with today's, its plots fail.
THEIRS = ("dxt-explorer==0.4", "darshan==3.4.5.0", "numpy<2", "pandas<2.3", "pyarrow<17",
          "plotly<6", "setuptools<81")  # fmt: skip
ALL_VIEWS = ("-t", "-s", "-i", "-oo", "-ot", "-r", "-u", "-st")
DRAWN = ".main-svg .xtick"  # axes come with the first draw
WIDTHS = (44, 14, 14, 10)
ZOOM = """async () => { const { axis } = ioprism, took = [];
const middle = (axis.first + axis.last) / 2;
for (let i = 0; i < 24; i += 1) { const began = performance.now();
  axis.zoom(i < 12 ? 0.8 : 1.25, middle);
  await new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)));
  took.push(performance.now() - began); await new Promise((done) => setTimeout(done, 30)); }
return took; }"""

PAN = """async () => { const { axis } = ioprism, took = [], whole = axis.last - axis.first;
axis.show(axis.first + 0.1 * whole, axis.first + 0.6 * whole);
await new Promise((done) => setTimeout(done, 1500));
let before = await new Promise(requestAnimationFrame);
for (let i = 0; i < 120; i += 1) { axis.pan(i < 60 ? 0.01 : -0.01);
  const now = await new Promise(requestAnimationFrame);
  took.push(now - before); before = now; }
return took; }"""


def main() -> None:
    with browser() as chromium:
        beside_dxt_explorer(chromium)
        many_files()
        a_million_calls(chromium)
        for calls in (2_100_000, 10 * MILLION):
            explored(chromium, calls)


@contextmanager
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("there is no chromium; `apt-get install chromium` brings it")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu"]
        started = playwright.chromium.launch(executable_path=program, args=arguments)
        yield started
        started.close()


def beside_dxt_explorer(chromium: Browser) -> None:
    log = next(SAMPLE.glob("*.darshan"))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        copy = folder / "sample.darshan"
        shutil.copy(log, copy)
        ours = measure(
            [
                str(OURS.parent / "ioprism"),
                "report",
                str(copy),
                "-q",
                "-o",
                str(folder / "ours.html"),
            ]
        )
        theirs = dxt_explorer(copy)
        pages = sorted(folder.glob("*-*.html"))
        their_size = sum(page.stat().st_size for page in pages)
        our_size = (folder / "ours.html").stat().st_size
        our_time = loaded(chromium, folder / "ours.html", "html[data-ready]")
        operation = next(
            page for page in pages if "operation" in page.name and "ost" not in page.name
        )
        their_time = loaded(chromium, operation, DRAWN)
    print(f"{log.name[:40]}…, all views")
    row("", "ioprism", "DXT Explorer", "ratio", widths=WIDTHS)
    compared("CPU s", ours.cpu, theirs)
    compared("pages, MB", our_size / 1e6, their_size / 1e6)
    compared("load to interactive, s (their first page)", our_time, their_time)
    row("pages", 1, len(pages), "", widths=WIDTHS)


def dxt_explorer(log: Path) -> float:
    """The CPU seconds of all its views; its plots are children that it starts as `python3`."""
    python = peer("dxt-explorer", *THEIRS)
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    began = os.times()
    subprocess.run(
        [str(python.parent / "dxt-explorer"), *ALL_VIEWS, str(log)],
        cwd=log.parent, env={**os.environ, "PATH": path}, check=True, capture_output=True,
    )  # fmt: skip
    ended = os.times()
    return ended.children_user - began.children_user + ended.children_system - began.children_system


def loaded(chromium: Browser, page: Path, drawn: str) -> float:
    """Seconds until a page's first picture is there, the better of two."""
    times = []
    for _ in range(2):
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        tab = context.new_page()
        began = time.perf_counter()
        tab.goto(page.as_uri(), wait_until="commit")
        tab.wait_for_selector(drawn, state="attached", timeout=300_000)
        times.append(time.perf_counter() - began)
        context.close()
    return min(times)


def compared(what: str, ours: float, theirs: float) -> None:
    row(what, f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.0f}x", widths=WIDTHS)


def many_files() -> None:
    """A log with calls on 33 files: one page."""
    from benchmarks.synthetic import Burst, Requests, Workload, synthesise
    from ioprism.api import analyse

    burst = Burst("/scratch/run/part_{rank:04d}.bin", "write", Requests(count=2000, size=2**16),
                  start=1.0, length=20.0)  # fmt: skip
    made = synthesise(Workload(ranks=33, bursts=(burst,), runtime=30.0)).trace
    size = len(analyse(made).to_html())
    print(f"\n33 files, {made.events().height:,} calls: one page of {size / 1e6:.2f} MB")


def a_million_calls(chromium: Browser) -> None:
    log = ONE_MILLION if ONE_MILLION.exists() else dxt_log(MILLION)
    with tempfile.TemporaryDirectory() as place:
        page = Path(place) / "million.html"
        cost = measure([str(OURS.parent / "ioprism"), "report", str(log), "-q", "-o", str(page)])
        size = page.stat().st_size
        tab: Page = chromium.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-ready]", state="attached")
        ready = int(tab.get_attribute("html", "data-ready") or 0) / 1000
        steps = tab.evaluate(ZOOM)
        tab.close()
    print("\n1 M calls")
    row("report, CPU s", f"{cost.cpu:.1f}", "", "", widths=WIDTHS)
    row("page, MB", f"{size / 1e6:.1f}", "below 12", "", widths=WIDTHS)
    row("first draw, s", f"{ready:.2f}", "below 1.5", "", widths=WIDTHS)
    row("zoom step, ms (median)", f"{statistics.median(steps):.0f}", "below 50", "", widths=WIDTHS)


def explored(chromium: Browser, calls: int) -> None:
    """From the command to the first picture, and frames while panning over half of the run."""
    command = [str(OURS.parent / "ioprism"), "explore", "-q", str(dxt_log(calls))]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        tab = chromium.new_page(viewport={"width": 1440, "height": 900})
        tab.goto(address, wait_until="commit")
        tab.wait_for_selector("html[data-ready]", state="attached", timeout=60_000)
        first = time.perf_counter() - began
        tab.wait_for_selector("html[data-told]", state="attached", timeout=300_000)
        frames = sorted(tab.evaluate(PAN))
        tab.close()
        server.send_signal(signal.SIGINT)
    print(f"\n{calls:,} calls through explore (Chromium draws in software)")
    row("first view, s", f"{first:.2f}", "below 3", "", widths=WIDTHS)
    median, late = statistics.median(frames), frames[len(frames) * 9 // 10]
    row("frame while panning, ms (median)", f"{median:.1f}", "16.7", "", widths=WIDTHS)
    row("frame while panning, ms (90 %)", f"{late:.1f}", "", "", widths=WIDTHS)


if __name__ == "__main__":
    main()
