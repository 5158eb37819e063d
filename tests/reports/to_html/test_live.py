"""The live page, in a real browser: it moves by itself and runs nothing but its own script."""

from __future__ import annotations

from playwright.sync_api import Page

from ioprism.live.http import live_page
from tests.live.running import FREE, burst, counting, running, sender

EVIL = "<img src=x onerror=\"document.title='owned'\">"


def test_the_signal_moves_and_news_are_told(screen: Page) -> None:
    with running("--zmq", FREE, "--http", 0) as service, sender(service.place("messages")) as send:
        for start in range(0, 80, 10):
            send(burst(float(start), job="climate"))
        service.until(lambda one: one["period"] is not None and one["messages"] == 8)
        screen.goto(service.place("page"))
        screen.wait_for_function("() => document.querySelector('#signal canvas')?.width > 300")
        screen.wait_for_function("() => find('verdict').textContent.includes('10 s')")
        before = screen.evaluate("time.last")
        for start in range(80, 200, 10):
            send(burst(float(start), job="climate"))
        screen.wait_for_function(f"() => time.last > {before} + 100")
        for start in range(200, 240, 4):
            send(burst(float(start), length=1.0, job="climate"))
            service.until(counting(20 + (start - 200) // 4 + 1))
        screen.wait_for_selector("#changes li")
        send(burst(0.0, job=EVIL))
        screen.wait_for_function("() => document.querySelectorAll('#job option').length === 2")

        assert "from 10 s to 4 s" in screen.inner_text("#changes").replace("3.99", "4")
        assert screen.title().startswith("Running jobs")
        assert EVIL in screen.inner_text("#job")
        assert screen.inner_text("#link") == "connected"
        screen.goto("about:blank")


def test_the_page_may_ask_its_own_server_alone() -> None:
    text = live_page()

    assert "connect-src &#x27;self&#x27;" in text
    assert "unsafe" not in text
