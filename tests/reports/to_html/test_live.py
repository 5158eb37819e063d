"""The live page, in a real browser: it moves by itself and runs nothing but its own script."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page

from ioprism.live.http import live_page
from tests.live.running import FREE, burst, counting, running, sender

EVIL = "<img src=x onerror=\"document.title='owned'\">"


def says(page: Page, place: str, words: str) -> None:
    """Wait until a part of the page holds these words."""
    page.wait_for_function(
        "([place, words]) => document.querySelector(place)?.textContent.includes(words)",
        arg=[place, words],
    )


def test_the_page_follows_jobs_and_changes(screen: Page) -> None:
    screen.set_default_timeout(60_000)
    with running("--zmq", FREE, "--http", 0) as service, sender(service.place("messages")) as send:
        for start in range(0, 80, 10):
            send(burst(float(start), job="climate"))
        service.until(lambda one: one["period"] is not None and one["messages"] == 8)
        screen.goto(service.place("page"))
        says(screen, "#verdict", "every 10.0 s")
        screen.wait_for_function(
            "() => ioprism.pane.layout.rows.some((row) => row.key === 'signal')"
        )
        assert screen.inner_text(".countdown").startswith(("in ", "now"))
        for start in range(80, 200, 10):
            send(burst(float(start), job="climate"))
        for start in range(200, 240, 4):
            send(burst(float(start), length=1.0, job="climate"))
            service.until(counting(20 + (start - 200) // 4 + 1))
        screen.click("#tab-changes")
        says(screen, "#changes", "climate: the period changed from 10.0 s to")
        send(burst(0.0, job=EVIL))
        screen.wait_for_function("() => document.querySelectorAll('#job option').length === 3")
        screen.select_option("#job", EVIL)
        says(screen, "#verdict", "no period yet")

        assert EVIL in screen.inner_text("#verdict")
        assert screen.title().startswith("Running jobs")
        screen.goto("about:blank")


def test_the_page_outlives_its_server(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page()
    page.set_default_timeout(60_000)
    options = ("--zmq", FREE, "--token-file", tmp_path / "token", "--http")
    with running(*options, 0) as first:
        address = first.place("page")
        page.goto(f"{address}/machine")
        says(page, "#next-step", "connected")
    says(page, "#next-step", "Not connected")
    port = urlsplit(address).port
    with running(*options, port) as second, sender(second.place("messages")) as send:
        send(burst(0.0, job="later"))
        says(page, "#story", "later")
        says(page, "#next-step", "connected · 1 job")
        page.close()


def test_the_page_may_ask_its_own_server_alone() -> None:
    text = live_page()

    assert "connect-src &#x27;self&#x27;" in text
    assert "unsafe" not in text
