"""A centre's page: one advice for all who suffer from the same, and only what is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ioprism.reports.to_html.site import data, page
from ioprism.reports.to_terminal.site import sentence
from ioprism.site.events import SiteEvent
from ioprism.site.summary import SiteStory

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

TARGET = "Storage target 8 serves the same work slower than the others"
DAY = 86400.0


def advice(application: str, title: str, hours: float) -> dict[str, Any]:
    return {"application": application, "code": "slow-target", "node_hours": hours, "jobs": 2,
            "title": title, "advice": "Report it.", "worst_log": f"/{application}.log"}  # fmt: skip


def story(*rows: dict[str, Any], events: tuple[SiteEvent, ...] = ()) -> SiteStory:
    totals = {"jobs": 6, "not_judged": 1, "note": None, "applications": 3, "users": 1,
              "from": 0.0, "to": 30 * DAY,
              "node_hours": 200.0, "io_stall_node_hours": 9.0,
              "saving_node_hours": 5.0, "periodic_node_hours": 0.0}  # fmt: skip
    applications = tuple(
        {"application": row["application"], "jobs": 2, "users": 1, "node_hours": 60.0,
         "io_stall_node_hours": 3.0, "saving_node_hours": row["node_hours"],
         "savings": {row["code"]: row["node_hours"]}}
        for row in rows
    )  # fmt: skip
    return SiteStory(totals, applications, (), (), events, rows, (), ())


SLOW = SiteEvent("slow-target", "8", DAY, 9 * DAY, {"relative_rate": 0.25, "jobs": 4})
CHANGED = SiteEvent(
    "changed-application",
    "cfd",
    9 * DAY,
    None,
    {
        "request_bytes": {"before": 2.0**20, "after": 2.0**19},
        "rate": {"before": 1e6, "after": 1e6},
    },
)


def test_applications_that_suffer_from_one_target_get_one_advice() -> None:
    rows = (advice("cfd", "Write more at once", 3.0), advice("dns", TARGET, 2.5),
            advice("lqcd", TARGET, 1.0))  # fmt: skip

    said = data(story(*rows), {"/dns.log": "jobs/job-02.html"})["advice"]

    assert [one["applications"] for one in said] == ["dns and 1 other application", "cfd"]
    assert (said[0]["hours"], said[0]["jobs"]) == (3.5, 4)
    assert said[0]["report"] == "jobs/job-02.html"


def test_the_first_line_says_how_much_of_all_could_be_saved() -> None:
    assert data(story(), {})["line"] == "5 of 200 node-hours (2.5%) could be saved."


def test_logs_that_cannot_be_judged_are_counted_on_the_page() -> None:
    assert ["logs that cannot be judged", "1"] in data(story(), {})["facts"]


def test_a_change_tells_only_what_differs() -> None:
    assert sentence(CHANGED) == "cfd changed on 1970-01-10: request size 1.00 MiB to 512 KiB."


@pytest.fixture
def shown(tmp_path: Path, screen: Page) -> Page:
    place = tmp_path / "site.html"
    rows = (advice("cfd", "Write more at once", 3.0), advice("dns", TARGET, 2.5))
    links = {"/dns.log": "jobs/job-02.html"}
    place.write_text(page(story(*rows, events=(SLOW, CHANGED)), links))
    screen.goto(place.as_uri())
    screen.wait_for_selector("html[data-ready]", state="attached")
    return screen


def test_a_filter_leaves_what_has_its_text(shown: Page) -> None:
    shown.fill("#filter", "CFD")
    shown.wait_for_timeout(400)

    assert shown.locator("#advice > details").count() == 1
    assert shown.locator("#events > li").count() == 1
    assert shown.locator("#treemap > button").count() == 1
    assert shown.locator("#stage .label").count() == 1
    assert "filter=CFD" in shown.url
    shown.click("#tab-table-0")
    assert shown.locator("#tab-panel tbody tr").count() == 1


def test_areas_have_names_and_units_and_lead_to_their_jobs(shown: Page) -> None:
    cell = shown.locator("#treemap > button").first

    assert cell.inner_text().startswith("cfd 3 node-hours")
    assert shown.locator("#advice a").get_attribute("href") == "./jobs/job-02.html"
    cell.click()
    assert "cfd: 3 node-hours could be saved" in shown.inner_text("#tab-panel")


def test_an_event_is_shown_on_the_axis_of_dates(shown: Page) -> None:
    shown.locator("#events button").first.click()
    shown.wait_for_timeout(400)

    chosen = shown.evaluate("() => ioprism.store.view.select")
    assert (chosen["low"], chosen["high"]) == (SLOW.start, SLOW.end)
    assert "1970-01-02 to 1970-01-10" in shown.inner_text("#tab-panel")
