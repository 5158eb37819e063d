"""`ioprism watch` over real sockets: right answers, and nothing that stops it."""

from __future__ import annotations

import json
import math
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import psutil
import pytest
import zmq

from ioprism import ServiceError, client
from ioprism.live import http
from ioprism.live.watch import Watch, WatchSettings
from ioprism.local_http import LOOPBACK
from tests.live.running import (
    FREE,
    PATIENCE,
    burst,
    counting,
    in_background,
    running,
    sender,
)

WATCH = (sys.executable, "-m", "ioprism", "watch")


def test_whatever_comes_is_counted_and_the_rest_goes_on() -> None:
    good = burst(0.0)
    nan = msgpack.packb({"ranks": 1, "b": [1.0, math.nan], "ts": [0.0, 1.0], "te": [1.0, 2.0]})
    backwards = msgpack.packb({"ranks": 1, "b": [1.0], "ts": [5.0], "te": [4.0]})
    far = msgpack.packb({"ranks": 1, "b": [1.0], "ts": [9e9], "te": [9e9 + 1]})
    options = ("--zmq", FREE, "--http", 0, "--max-message", "64KiB")
    with running(*options) as service, sender(service.place("messages")) as send:
        for bad in (b"", b"\xc1", good[:-5], b'{"b": [1', b"x" * 100_000, nan, backwards):
            send(bad)
        send(good)
        send(far)
        send(good)
        send(burst(20.0))
        for start in (10.0, *(30.0 + 10.0 * np.arange(8)).tolist()):
            send(burst(start))
        last = service.until(lambda one: one["time"] > 101.0)
        counts = service.get("/health")

    assert last["period"]["seconds"] == pytest.approx(10.0, rel=0.01)
    assert counts["malformed"] == 4
    assert (counts["oversized"], counts["duplicates"]) == (1, 1)
    assert (counts["unsound"], counts["out_of_range"]) == (2, 1)


def test_a_sender_that_dies_disturbs_no_other() -> None:
    code = "import sys, zmq, os; s = zmq.Context().socket(zmq.PUSH); s.connect(sys.argv[1]); "
    code += "s.send(b'\\x84'); import time; time.sleep(0.5); os._exit(9)"
    with running("--zmq", FREE) as service, sender(service.place("messages")) as send:
        address = service.place("messages")
        assert subprocess.run([sys.executable, "-c", code, address]).returncode == 9
        for start in range(0, 100, 10):
            send(burst(float(start)))
        service.until(lambda one: one["period"] is not None)


def test_jobs_have_their_own_periodicity_and_are_forgotten_after_silence() -> None:
    options = ("--zmq", FREE, "--http", 0, "--expire", 1)
    with running(*options) as service, sender(service.place("messages")) as send:
        for number in range(8):
            for job in range(30):
                send(burst((5.0 + job) * number, length=1.0, job=f"job {job}"))
        found: dict[str, Any] = {}
        while len(found) < 30:
            one = service.until(lambda one: one["messages"] == 8 and one["period"])
            found[one["job"]] = one["period"]["seconds"]
        empty = False
        while not empty:
            empty = service.get("/jobs")["jobs"] == []
        counts = service.get("/health")

    assert all(found[f"job {job}"] == pytest.approx(5.0 + job, rel=0.02) for job in range(30))
    assert (counts["jobs_created"], counts["jobs_expired"]) == (30, 30)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["terminated", "killed"])
def test_nothing_that_was_answered_is_lost(tmp_path: Path, number: int) -> None:
    options = ("--zmq", FREE, "--state", tmp_path / "state")
    with running(*options) as service, sender(service.place("messages")) as send:
        for start in range(0, 60, 10):
            send(burst(float(start)))
        service.until(lambda one: one["messages"] == 6)
        assert service.end(number) == (0 if number == signal.SIGTERM else -number)
    with running(*options) as service, sender(service.place("messages")) as send:
        send(burst(50.0))  # sent again, since its sender cannot know
        send(burst(60.0))
        again = service.until(lambda one: one["time"] > 61.0)
        assert service.end() == 0

    assert again["messages"] == 7
    assert again["period"]["seconds"] == pytest.approx(10.0, rel=0.01)
    assert {path.name for path in tmp_path.iterdir()} == {"state", ".state.lock"}


def test_a_damaged_state_is_one_message(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.write_bytes(b"\x00 nonsense")
    command = [*WATCH, "--unprotected", "--zmq", FREE, "--state", str(state)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    assert done.returncode == 1
    assert "not a state of `ioprism watch`" in done.stderr and "Traceback" not in done.stderr


def test_subscribers_and_clients_of_ftio_hear_predictions() -> None:
    context = zmq.Context()
    old = context.socket(zmq.PULL)
    port = old.bind_to_random_port("tcp://127.0.0.1")
    options = ("--zmq", FREE, "--publish", FREE, "--http", 0, "--reply", f"tcp://127.0.0.1:{port}")
    with running(*options) as service, sender(service.place("messages")) as send:
        address, page = service.place("predictions"), service.place("page")
        heard = in_background(client.subscribe(address, job="run", timeout=PATIENCE))
        number, pairs = 0, []
        while number < 8 or not heard():  # a subscriber that connects late misses the first
            send(burst(10.0 * number, job="run"))
            number += 1
            service.until(counting(number))
            pairs.append(struct.unpack("dd", old.recv()))
        phase = client.next_phase(page, job="run")
        with pytest.raises(ServiceError, match="no such job"):
            client.next_phase(page, job="other")
    context.destroy(linger=0)
    (forecast,) = heard()

    assert math.isnan(pairs[0][0])
    assert pairs[-1][0] == pytest.approx(0.1, rel=0.02)
    assert forecast.job == "run"
    assert phase is not None and 0.5 < phase.confidence <= 1.0


def test_an_application_reports_and_hears_over_http() -> None:
    with running("--zmq", FREE, "--http", 0) as service:
        heard = in_background(client.subscribe(service.place("page"), job="app", timeout=PATIENCE))
        number = 0
        with client.Reporter(service.place("messages"), job="app") as reporter:
            while number < 8 or not heard():
                start = 10.0 * number
                reporter.report(start=[start], end=[start + 2.0], moved=[1e9])
                number += 1
                last = service.until(counting(number))
    (forecast,) = heard()

    assert forecast.job == "app"
    assert last["next_phase"]["bytes"] == pytest.approx(1e9, rel=0.05)


def test_signs_of_life_are_silence_to_a_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "KEEP_ALIVE", 0.05)
    watch = Watch(WatchSettings())
    server = http.WatchServer(watch, LOOPBACK, 0)
    began = time.monotonic()
    heard = list(client.subscribe(server.url, timeout=0.5))
    server.close()
    watch.close()

    assert heard == []
    assert 0.5 <= time.monotonic() - began < PATIENCE


def test_metrics_for_prometheus_and_nothing_for_strangers() -> None:
    import urllib.error
    import urllib.request

    with running("--zmq", FREE, "--http", 0) as service, sender(service.place("messages")) as send:
        for start in range(0, 80, 10):
            send(burst(float(start), job='odd "name"\n'))
        service.until(lambda one: one["period"] is not None)
        page = service.place("page")
        with urllib.request.urlopen(f"{page}/metrics") as answer:
            text = answer.read().decode()
        stranger = urllib.request.Request(f"{page}/jobs", headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(stranger)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{page}/etc/passwd")
        for horizon in ("soon", "nan"):
            with pytest.raises(urllib.error.HTTPError, match="400"):
                urllib.request.urlopen(f"{page}/fleet?horizon={horizon}")

    assert 'ioprism_watch_period_seconds{job="odd \\"name\\"\\n"} 10' in text
    assert "# TYPE ioprism_watch_latency_seconds histogram" in text
    assert all(line.startswith(("#", "ioprism_watch_")) for line in text.splitlines())


def test_the_metric_proxy_gets_its_answers() -> None:
    points = [[float(i), 1e8 if i % 10 < 3 else 0.0] for i in range(200)]
    request = {"argv": ["-n", "2"], "metrics": {"metrics": {"deriv__size___write": points}}}
    context = zmq.Context()
    with running("--metric-proxy", FREE) as service:
        socket = context.socket(zmq.REQ)
        socket.setsockopt(zmq.RCVTIMEO, int(PATIENCE * 1000))
        socket.connect(service.place("metric proxy"))

        def asked(raw: bytes) -> bytes:
            socket.send(raw)
            return bytes(socket.recv())

        pong = asked(b"ping")
        (answer,) = msgpack.unpackb(asked(msgpack.packb(request)))
        error = msgpack.unpackb(asked(b"\xc1"))
        refused = msgpack.unpackb(asked(b"New Address: tcp://0.0.0.0:7777"))
    context.destroy(linger=0)

    assert pong == b"pong"
    assert answer["metric"] == "deriv__size___write"
    assert answer["dominant_freq"][0] == pytest.approx(0.1, rel=0.02)
    assert len(answer["top_freq"]["freq"]) == 2
    assert "error" in error and "loopback" in refused["error"]


def test_an_idle_service_costs_nothing() -> None:
    with running("--zmq", FREE, "--http", 0) as service, sender(service.place("messages")) as send:
        send(burst(0.0))
        service.until(lambda one: one["messages"] == 1)
        time.sleep(1.0)  # until what the message caused is done
        process = psutil.Process(service.process.pid)
        before = sum(process.cpu_times()[:2])
        try:
            process.wait(timeout=3.0)
        except psutil.TimeoutExpired:
            used = sum(process.cpu_times()[:2]) - before

    # A service that polls takes seconds. How little this one takes is a claim of the benchmarks:
    # on a busy machine, a process is charged for ticks that it did not use.
    assert used <= 0.3


def test_news_are_lines_where_nobody_looks() -> None:
    command = [*WATCH, "--unprotected", "--zmq", FREE, "--exit-when-idle", "1.5"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    address = process.stderr.readline().split(": ")[1].strip()
    with sender(address) as send:
        for start in range(0, 100, 10):
            send(burst(float(start), job="\x1b[31mred"))
    out, err = process.communicate(timeout=PATIENCE)

    assert "a period of 10.0 s" in out and "\x1b" not in out
    assert "10 messages, 0 records dropped" in err


def test_a_line_is_json_without_end_of_line_or_nan() -> None:
    with running("--zmq", FREE) as service, sender(service.place("messages")) as send:
        send(burst(0.0, job="\x7f\n"))
        one = service.until(bool)

    assert json.loads(json.dumps(one))["job"] == "\x7f\n"
