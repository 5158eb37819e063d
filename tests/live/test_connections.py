"""Idle, slow and many connections do not block the answers of a service."""

from __future__ import annotations

import http.client
import json
import os
import resource
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import psutil
import pytest

from ioprism import local_http
from ioprism.local_http import MAX_UNPROVEN_OF_PEER, LocalHandler, LocalServer
from tests.conftest import TEST_DATA
from tests.live.running import FREE, PATIENCE, running

LOG = TEST_DATA / "darshan" / "e_mpiio_collective.darshan"
MANY = 1024


@pytest.fixture(autouse=True)
def many_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 4096), max(before[1], 4096)))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def idle_connections(port: int, number: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as held:
        every = [held.enter_context(socket.socket()) for _ in range(number)]
        for one in every:  # all at once: a full queue lets a connection try again after seconds
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        waiting = held.enter_context(selectors.DefaultSelector())
        for one in every:
            waiting.register(one, selectors.EVENT_WRITE)
        while waiting.get_map():
            connected = waiting.select(PATIENCE)
            assert connected
            for key, _ in connected:
                waiting.unregister(key.fileobj)
        yield every


def is_open(connection: socket.socket) -> bool:
    """Whether the service has not closed a connection over which nothing was said."""
    try:
        return bool(connection.recv(1))
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def answer(address: str) -> int:
    """The status of an answer, over a new connection."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port or 0, timeout=10)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().status
    finally:
        connection.close()


def _watch(address: Callable[[str], None]) -> None:
    with running("--zmq", FREE, "--http", 0) as service:
        address(f"{service.place('page')}/health")
        process = psutil.Process(service.process.pid)
        assert process.num_threads() < 2 * MAX_UNPROVEN_OF_PEER


def _explore(address: Callable[[str], None]) -> None:
    command = [sys.executable, "-m", "ioprism", "explore", "--json", str(LOG)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        shown = b""
        while not shown.strip().endswith(b"}"):
            shown += process.stdout.readline()
        address(json.loads(shown)["address"])
        process.terminate()


@pytest.mark.parametrize("service", [_watch, _explore])
def test_a_thousand_idle_connections_block_no_answer(
    service: Callable[[Callable[[str], None]], None],
) -> None:
    def ask(address: str) -> None:
        with idle_connections(urlsplit(address).port or 0, MANY) as idle:
            assert answer(address) == 200
            assert any(map(is_open, idle))  # the answer did not wait for their end
            assert [answer(address) for _ in range(4)] == [200] * 4

    service(ask)


class EmptyHandler(LocalHandler):
    same_origin_only = False

    def answer(self, path: str, query: dict[str, str]) -> None:  # noqa: ARG002
        self.send_content("text/plain", b"")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    monkeypatch.setattr(local_http, "HEAD_SECONDS", 1.0)
    with LocalServer(("127.0.0.1", 0), EmptyHandler) as made:
        Thread(target=made.serve_forever, args=(0.1,), daemon=True).start()
        yield made
        made.shutdown()


def test_a_request_that_comes_byte_by_byte_is_cut_off(server: LocalServer) -> None:
    address = ("127.0.0.1", server.server_port)
    with socket.create_connection(address, timeout=10.0) as slow, pytest.raises(OSError):
        for _ in range(200):
            slow.sendall(b"G")
            time.sleep(0.05)


def test_a_connection_with_the_token_outlives_those_without(server: LocalServer) -> None:
    known = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    known.request("GET", f"/{server.token}/")
    known.getresponse().read()
    with idle_connections(server.server_port, 3 * MAX_UNPROVEN_OF_PEER):
        time.sleep(2.0)  # longer than an unproven one may take
        known.request("GET", f"/{server.token}/")

        assert known.getresponse().status == 200
    known.close()


def test_a_service_without_descriptors_to_spare_still_answers_and_rests() -> None:
    command = ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", sys.executable, "-m", "ioprism",
               "watch", "--zmq", FREE, "--unprotected", "--http", "0"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        address = ""
        while not address.startswith("page: "):
            address = process.stderr.readline().decode().strip()
        page = f"{address.removeprefix('page: ')}/health"
        with idle_connections(urlsplit(page).port or 0, 500):
            assert answer(page) == 200
            before = psutil.Process(process.pid).cpu_times()
            time.sleep(2.0)
            after = psutil.Process(process.pid).cpu_times()
        process.terminate()
        process.wait(PATIENCE)

    assert after.user + after.system - before.user - before.system < 1.0


def test_the_metric_proxy_ends_without_a_word(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ioprism", "watch", "--metric-proxy",
               f"ipc://{tmp_path}/proxy"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read().decode()
        code = process.wait(PATIENCE)

    assert code == 0
    assert "Error" not in said


def test_explore_cleans_up_when_it_is_told_to_end(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ioprism", "explore", str(LOG)]
    given = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=given
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        held = list(tmp_path.iterdir())
        process.terminate()
        code = process.wait(PATIENCE)
        said = process.stderr.read().decode()

    assert held
    assert list(tmp_path.iterdir()) == []
    assert code == 0
    assert "stopped" in said
