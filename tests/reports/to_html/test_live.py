"""The live page, in a real browser: it moves by itself and runs nothing but its own script."""

from __future__ import annotations

from playwright.sync_api import Page

from ioprism.live.http import live_page
from tests.live.running import FREE, burst, counting, running, sender

EVIL = "<img src=x onerror=\"document.title='owned'\">"


def test_the_page_follows_jobs_changes_and_a_lost_connection(screen: Page) -> None:
    screen.set_default_timeout(60_000)
    with running("--zmq", FREE, "--http", 0) as service, sender(service.place("messages")) as send:
        for start in range(0, 80, 10):
            send(burst(float(start), job="climate"))
        service.until(lambda one: one["period"] is not None and one["messages"] == 8)
        screen.goto(service.place("page"))
        screen.wait_for_function(
            "() => document.querySelector('#verdict').textContent.includes('every 10.0 s')"
        )
        screen.wait_for_function(
            "() => ioprism.pane.layout.rows.some((row) => row.key === 'signal')"
        )
        assert screen.inner_text(".countdown").split()[0] in ("in", "now") or "late" in (
            screen.inner_text(".countdown")
        )
        for start in range(80, 200, 10):
            send(burst(float(start), job="climate"))
        for start in range(200, 240, 4):
            send(burst(float(start), length=1.0, job="climate"))
            service.until(counting(20 + (start - 200) // 4 + 1))
        screen.click("#tab-changes")
        screen.wait_for_function("() => document.querySelector('#changes li')")
        send(burst(0.0, job=EVIL))
        screen.wait_for_function("() => document.querySelectorAll('#job option').length === 3")

        assert "from 10.0 s to 4" in screen.inner_text("#changes").replace("3.99", "4")
        assert EVIL in screen.inner_text("#job")
        screen.select_option("#job", EVIL)
        screen.wait_for_function(
            "() => document.querySelector('#verdict').textContent.includes('no period yet')"
        )
        assert screen.title().startswith("Running jobs")
        service.end()
        screen.wait_for_function(
            "() => document.querySelector('#next-step').textContent.startsWith('Not connected')"
        )
        screen.goto("about:blank")


def test_the_page_may_ask_its_own_server_alone() -> None:
    text = live_page()

    assert "connect-src &#x27;self&#x27;" in text
    assert "unsafe" not in text
