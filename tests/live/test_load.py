"""Many messages and many jobs at once: all are answered, in memory that does not grow."""

from __future__ import annotations

import re
import time
import urllib.request

import msgpack
import numpy as np
import psutil
import pytest
import zmq

from ioprism.live import sources
from ioprism.live.sources import PullSource
from ioprism.live.watch import Watch, WatchSettings
from tests.live.running import FREE, PATIENCE, Running, burst, counting, running, sender

INTERVALS = 100  # of a message


def dense(number: int) -> bytes:
    """A message of many requests within 10 ms."""
    start = 0.01 * number + 1e-4 * np.arange(INTERVALS)
    values = {"b": [1e9] * INTERVALS, "ts": start.tolist(), "te": (start + 1e-4).tolist()}
    packed: bytes = msgpack.packb({"ranks": 4, **values})
    return packed


def memory(service: Running) -> int:
    return int(psutil.Process(service.process.pid).memory_info().rss)


def latencies(service: Running) -> dict[float, int]:
    """How many messages were answered within so many seconds."""
    with urllib.request.urlopen(f"{service.place('page')}/metrics") as answer:
        text = answer.read().decode()
    found = re.findall(r'latency_seconds_bucket{le="(.*)"} (.*)', text)
    return {float(bound): int(count) for bound, count in found}


def test_a_flood_is_taken_in_whole_and_memory_stays() -> None:
    with running("--zmq", FREE, "--http", 0) as service, sender(service.place("messages")) as send:
        for number in range(10_000):  # how much is in flight settles first
            send(dense(number))
        service.until(counting(10_000))
        before = memory(service)
        for number in range(10_000, 40_000):
            send(dense(number))
        service.until(counting(40_000))
        after = memory(service)
        counts = service.get("/health")
        answered = latencies(service)

    assert after - before < 40 * 2**20  # the messages themselves are 81 MB
    assert (counts["messages"], counts["intervals"]) == (40_000, 40_000 * INTERVALS)
    assert (counts["malformed"], counts["duplicates"]) == (0, 0)
    assert answered[float("inf")] == 40_000


def test_a_message_alone_is_answered_at_once() -> None:
    with running("--zmq", FREE, "--http", 0) as service, sender(service.place("messages")) as send:
        for number in range(20):
            send(burst(10.0 * number))
            service.until(counting(number + 1))
        answered = latencies(service)

    assert answered[float("inf")] == 20
    assert answered[0.2] >= 10  # the machine may do something else in between


def test_a_message_counts_as_waiting_since_the_socket_was_last_empty() -> None:
    context, service = zmq.Context(), Watch(WatchSettings())
    source = PullSource(context, FREE, job="job", largest=2**20)
    service.sources.append(source)
    before = source.empty_at
    with sender(source.address) as send:
        send(burst(0.0))
        assert source.socket.poll(1000 * PATIENCE)
        time.sleep(0.1)
        service.step()
    waited = service.latency.longest
    first = source.empty_at
    assert not service.step()
    service.close()
    context.destroy(linger=0)

    assert waited >= 0.1
    assert before < first < source.empty_at


class Endless:
    """A socket that always has one more message."""

    def __init__(self) -> None:
        self.given = 0

    def recv_multipart(self, _: int, *, copy: bool) -> list[zmq.Frame]:
        assert not copy
        self.given += 1
        return [zmq.Frame(burst(10.0 * self.given))]


def test_messages_that_never_end_wait_no_longer_than_a_queue_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context, service = zmq.Context(), Watch(WatchSettings())
    source = PullSource(context, FREE, job="job", largest=2**20)
    monkeypatch.setattr(sources, "QUEUE", 20)
    monkeypatch.setattr(sources, "AT_ONCE", 11)
    monkeypatch.setattr(sources, "PATIENCE", PATIENCE)
    source.close()
    source.socket = Endless()
    source.empty_at -= 1000.0
    began = []
    for _ in range(4):
        began.append(time.monotonic())
        assert source.read(service.intake, None)
    (job,) = service.jobs
    context.destroy(linger=0)

    _, third, fourth = sorted(job.waiting)
    assert began[0] <= third <= began[1] <= fourth <= began[2]


def test_a_thousand_jobs_are_watched_at_once() -> None:
    with running("--zmq", FREE, "--http", 0) as service, sender(service.place("messages")) as send:
        for number in range(6):
            for job in range(1000):
                send(burst(10.0 * number, job=f"job {job}"))
        known: set[str] = set()
        while len(known) < 1000:
            one = service.until(counting(6))
            if one["period"] and one["period"]["seconds"] == pytest.approx(10.0, rel=0.02):
                known.add(one["job"])
        counts = service.get("/health")

    assert counts["messages"] == 6000
    assert (counts["jobs_created"], counts["jobs_evicted"]) == (1000, 0)
