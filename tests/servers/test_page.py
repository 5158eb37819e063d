"""The page is self-contained, holds what was measured, and no name in it can run or break it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import polars as pl
import pytest

from ioprism import servers

if TYPE_CHECKING:
    from playwright.sync_api import Page

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--",
    "]]>",
    "'\"&;%%data%%",
]
# Blanks and brackets mean something in a list of servers, quotes in a table.
SERVERS = [name.replace(" ", "/").replace("]]", "--").replace('"', "") for name in HOSTILE]
DANGERS = (
    "innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(",
)  # fmt: skip


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> servers.MachineReport:
    """Every server, job and user has a hostile name; so has everything that is missing."""
    folder = tmp_path_factory.mktemp("hostile")
    steps = [(name, 120 * n, 0, n << 22, 0, n << 2, 0, 0) for name in SERVERS for n in range(60)]
    counters = pl.DataFrame(
        steps, orient="row", schema=["server", "t", "br", "bw", "rdc", "wc", "oc", "cc"]
    )
    counters.write_csv(folder / "counters.csv")
    names = [f"{name}{n}" for n, name in enumerate(HOSTILE)]
    jobs = dict.fromkeys(("job_id", "user", "account", "partition", "name"), names)
    times = {"start": [*range(60, 65)], "end": [5000] * 5, "servers": SERVERS}
    pl.DataFrame({**jobs, **times}).write_csv(folder / "jobs.csv")
    servers.ingest(folder / "counters.csv", folder / "jobs.csv", store=folder / "store")
    return replace(servers.report(folder / "store"), warnings=tuple(HOSTILE))


class Elements(HTMLParser):
    """Collects elements, attributes and the text of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self.found.append((f"/{tag}", {}))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] in self.texts:
            self.texts[self.found[-1][0]][-1] += data


@pytest.fixture(scope="module")
def path(machine: servers.MachineReport, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "machine.html"
    servers.write_page(machine, path, peak_write=1e9)
    return path


@pytest.fixture(scope="module")
def page(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_names_stay_data(page: str) -> None:
    elements = Elements()
    elements.feed(page)

    scripts = [attributes for tag, attributes in elements.found if tag == "script"]
    assert [attributes.get("type") for attributes in scripts] == ["application/json", None]
    assert not any(name.startswith("on") for _, attributes in elements.found for name in attributes)
    assert not any(tag == "img" for tag, _ in elements.found)
    data = json.loads(elements.texts["script"][0])
    assert data["jobs"]["user"]["words"] == sorted(f"{name}{n}" for n, name in enumerate(HOSTILE))
    assert data["warnings"] == HOSTILE
    assert data["load"]["servers"] == sorted(SERVERS)


def test_the_policy_allows_only_this_script_and_style(page: str) -> None:
    elements = Elements()
    elements.feed(page)
    policy = next(
        attributes["content"] or ""
        for tag, attributes in elements.found
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )

    own = {"script": elements.texts["script"][1], "style": elements.texts["style"][0]}
    for name, text in own.items():
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_nothing_is_fetched_and_no_text_becomes_markup(page: str) -> None:
    addresses = set(re.findall(r"(?:https?:)?//[\w.]+", page))

    assert addresses <= {"http://www.w3.org"}  # the name of SVG, which is no address to fetch
    script = page.rpartition("<script>")[2]
    for danger in DANGERS:
        assert danger not in script
    assert "style=" not in page


def test_the_page_holds_the_numbers_that_were_measured(
    page: str, machine: servers.MachineReport
) -> None:
    metrics, load = machine.metrics, machine.load
    elements = Elements()
    elements.feed(page)
    data = json.loads(elements.texts["script"][0])

    volumes = metrics.table["write_bytes"].to_list()
    assert data["jobs"]["write"]["bytes"] == pytest.approx(volumes, rel=1e-3)
    assert data["jobs"]["write"]["intensity"][0] == metrics.table["write_intensity_0"].to_list()
    assert sum(map(sum, data["load"]["write"])) == pytest.approx(load.bytes[1].sum(), rel=1e-2)
    assert load.bytes[1].sum() == pytest.approx(5 * 59 * 2**22)
    totals = data["machine"]["write"]
    assert totals["attributed"] + totals["shared"] + totals["unattributed"] == totals["bytes"]


def test_of_too_many_jobs_the_largest_are_kept(
    machine: servers.MachineReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ioprism.servers.page.MOST_JOBS", 2)
    servers.write_page(machine, tmp_path / "machine.html")

    assert "this page shows the 2 of" in (tmp_path / "machine.html").read_text("utf-8")


TABS = ("short", "volume", "patterns", "jobs", "movers", "week", "sizes", "interference")


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_the_page_draws_every_answer_and_fits_the_screen(
    screen: Page, path: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    screen.set_viewport_size({"width": width, "height": 900})
    screen.emulate_media(color_scheme=scheme)

    screen.goto(path.as_uri())
    screen.wait_for_selector("html[data-ready]", state="attached")

    assert screen.inner_text("h1").startswith("Write-dominated: 100% of the bytes are written.")
    assert "a step is 2" in screen.inner_text("#shades")
    assert "no job of the list" in screen.inner_text("#tab-panel")
    assert screen.evaluate("ioprism.pane.layout.rows.length") == 2 + len(HOSTILE)
    for tab in TABS:
        screen.click(f"#tab-{tab}")
        assert len(screen.inner_text("#tab-panel")) > 40, tab
        assert screen.evaluate("document.documentElement.scrollWidth") <= width, tab
    assert screen.locator("img").count() == 0


def test_choosing_a_user_or_a_time_counts_again(screen: Page, path: Path) -> None:
    screen.goto(path.as_uri() + "#tab=movers")
    screen.wait_for_selector("html[data-ready]", state="attached")

    screen.select_option("#user", index=2)
    assert screen.inner_text("#chosen") == "1 of 5 jobs"
    assert screen.locator("#users tbody tr").count() == 1
    screen.select_option("#user", index=0)
    box = screen.locator("#stage").bounding_box()
    assert box is not None
    left = box["x"] + screen.evaluate("ioprism.pane.left")
    wide = screen.evaluate("ioprism.pane.width")
    screen.mouse.move(left + 0.8 * wide, box["y"] + 60)  # all jobs have ended by then
    screen.mouse.down()
    screen.mouse.move(left + 0.95 * wide, box["y"] + 60, steps=3)
    screen.mouse.up()
    screen.wait_for_timeout(600)
    assert screen.inner_text("#chosen") == "0 of 5 jobs run in the time in view"
    screen.go_back()
    screen.wait_for_timeout(600)
    assert screen.inner_text("#chosen") == "5 of 5 jobs"
