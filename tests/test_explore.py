"""The explore server answers its own page and nobody else, and stops when told to."""

from __future__ import annotations

import http.client
import json
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from threading import Thread

import pytest
from playwright.sync_api import Page

from ioprism import LocalEngine, OutputError, UsageError, read
from ioprism.explore import ExploreServer, exploring
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"
LOG = DATA / "e_mpiio_collective.darshan"


@pytest.fixture(scope="module")
def server() -> Iterator[ExploreServer]:
    with exploring(read(LOG), engine=LocalEngine()) as made:
        Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def ask(
    server: ExploreServer, path: str, *, method: str = "GET", **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.putrequest(method, path, skip_host=True)
    given = {"Host": f"127.0.0.1:{server.server_port}"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    for name, value in given.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content, dict(answer.getheaders())


def inside(server: ExploreServer, name: str = "") -> str:
    return f"/{server.token}/{name}"


def test_the_page_comes_to_who_knows_the_token(server: ExploreServer) -> None:
    status, content, headers = ask(server, inside(server))

    assert status == 200
    assert b"connect-src &#x27;self&#x27;" in content
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_it_listens_on_this_machine_alone(server: ExploreServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.token) >= 32


@pytest.mark.parametrize("path", ["/", "//", "/wrong/", "/wrong/tile?start=0&end=1&columns=9"])
def test_a_wrong_token_is_refused(server: ExploreServer, path: str) -> None:
    assert ask(server, path)[0] in (403, 404)


def test_a_token_that_is_nearly_right_is_refused(server: ExploreServer) -> None:
    assert ask(server, f"/{server.token[:-1]}/")[0] == 403
    assert ask(server, f"/{server.token}x/")[0] == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", ""]
)
def test_another_host_is_refused(server: ExploreServer, host: str) -> None:
    assert ask(server, inside(server), Host=host)[0] == 403


def test_two_hosts_at_once_are_refused(server: ExploreServer) -> None:
    own = f"127.0.0.1:{server.server_port}"

    assert ask(server, inside(server), Host=own, host="evil.example")[0] == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_another_origin_is_refused(server: ExploreServer, headers: dict[str, str]) -> None:
    assert ask(server, inside(server), **headers)[0] == 403


def test_its_own_origin_is_served(server: ExploreServer) -> None:
    own = f"http://127.0.0.1:{server.server_port}"

    assert ask(server, inside(server), Origin=own, Sec_Fetch_Site="same-origin")[0] == 200


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "..%2f..%2fetc/passwd",
        "tile/../story",
        "page",
        "%00",
        "tile/",
        "a" * 9000,
    ],
)
def test_path_tricks_find_nothing(server: ExploreServer, name: str) -> None:
    assert ask(server, inside(server, name))[0] in (403, 404)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_other_methods_are_not_known(server: ExploreServer, method: str) -> None:
    assert ask(server, inside(server), method=method)[0] == 501


@pytest.mark.parametrize(
    "query",
    ["", "start=0", "start=a&end=1&columns=100", "start=nan&end=1&columns=9",
     "start=1&end=1&columns=9", "start=0&end=inf&columns=9", "start=0&end=1&columns=1e400"],
)  # fmt: skip
def test_a_window_that_makes_no_sense_is_refused(server: ExploreServer, query: str) -> None:
    assert ask(server, inside(server, f"tile?{query}"))[0] == 400


def test_a_tile_holds_the_calls_of_its_window(server: ExploreServer) -> None:
    status, content, _ = ask(server, inside(server, "tile?start=0&end=70&columns=500&ranks=0-1"))
    (length,) = struct.unpack_from("<I", content)
    header = json.loads(content[4 : 4 + length])

    assert status == 200
    assert header["count"] > 100
    width = sum(size for _, size in header["columns"])
    assert len(content) == 4 + length + width * header["count"]


def test_the_page_draws_and_zooms_with_tiles(screen: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ioprism.views.tiles.MOST_CALLS", 1000)
    with exploring(read(LOG), engine=LocalEngine()) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        screen.set_default_timeout(30_000)
        screen.goto(server.address)
        screen.wait_for_selector("html[data-ready]", state="attached")
        whole = screen.evaluate("() => ioprism.job.marks.count")
        screen.wait_for_selector("html[data-told]", state="attached")
        screen.evaluate("() => { delete document.documentElement.dataset.tile; }")
        screen.evaluate("() => ioprism.axis.show(10, 12)")
        screen.wait_for_selector("html[data-tile]", state="attached")

        assert 0 < screen.evaluate("() => ioprism.job.marks.count") < whole
        assert screen.evaluate("() => ioprism.job.data.timeline.width") is None
        assert screen.locator(".finding").count() > 3
        screen.click("#tab-files")
        assert screen.locator("#tab-panel table").count() > 0
        screen.evaluate("() => ioprism.axis.reset()")
        screen.wait_for_function("(whole) => ioprism.job.marks.count === whole", arg=whole)
        server.shutdown()


def test_the_page_asks_for_no_calls_that_it_has(server: ExploreServer, screen: Page) -> None:
    asked: list[str] = []
    screen.on("request", lambda request: asked.append(request.url))
    screen.set_default_timeout(30_000)
    screen.goto(server.address)
    screen.wait_for_selector("html[data-told]", state="attached")
    screen.evaluate("() => ioprism.axis.show(10, 12)")
    screen.wait_for_timeout(1000)

    assert sum("tile?" in url for url in asked) == 1
    assert screen.evaluate("() => ioprism.job.marks.count") > 300


def test_hosts_come_before_the_rest_of_the_story() -> None:
    with exploring(read(LOG), engine=LocalEngine(), prepare=False) as other:
        exploration = other.exploration
        exploration.tile({"start": "0", "end": "70", "columns": "500"})
        before = exploration.story({"known": "0"})[1]
        exploration.prepare()
        hosts, story, after = (
            json.loads(exploration.story({"known": str(n)})[1]) for n in range(3)
        )

    assert before == b"null"
    assert hosts["hosts"]["of"] == [0, 0, 0, 0] and "findings" not in hosts
    assert story["complete"] and story["findings"]
    assert after is None


def test_the_first_picture_waits_for_no_analysis() -> None:
    code = "import ioprism.cli.explore, sys; print('ioprism.diagnosis' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "False"


def test_two_at_once_do_not_collide(server: ExploreServer) -> None:
    with exploring(read(LOG), engine=LocalEngine(), prepare=False) as other:
        assert other.server_port != server.server_port
        assert other.token != server.token


def test_a_port_that_is_taken_is_one_clear_error(server: ExploreServer) -> None:
    with (
        pytest.raises(OutputError, match="cannot be used"),
        exploring(read(LOG), engine=LocalEngine(), port=server.server_port, prepare=False),
    ):
        pass


def test_a_port_that_does_not_exist_is_wrong_usage() -> None:
    with (
        pytest.raises(UsageError, match="is not a port"),
        exploring(read(LOG), engine=LocalEngine(), port=70_000),
    ):
        pass


def test_control_c_stops_it() -> None:
    command = [sys.executable, "-m", "ioprism", "explore", str(LOG)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None and run.stderr is not None
        assert run.stdout.readline().startswith("http://127.0.0.1:")
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=30) == 0
        assert "stopped" in run.stderr.read()
