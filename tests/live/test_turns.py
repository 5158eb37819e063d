"""A running service says whose turn it is, and an agent may ask for others."""

from __future__ import annotations

import pytest

from ioprism import ServiceError, client
from ioprism.live.http import WatchServer
from ioprism.live.watch import Watch, WatchSettings
from ioprism.scheduling.policies import FORGOTTEN, Turns


def test_jobs_of_one_magnitude_take_turns() -> None:
    turns = Turns({"a": 10.0, "b": 12.0}.get)
    turns.ask("a", 0.0)
    turns.ask("b", 0.1)

    assert [(one.job, one.may_write, one.share) for one in turns.turns(0.2)] == [
        ("a", True, 1.0), ("b", False, 0.0),
    ]  # fmt: skip
    turns.leave("a")
    assert turns.turn("b", 0.3).share == 1.0


def test_a_faster_job_gets_most_while_a_slow_one_writes() -> None:
    turns = Turns({"slow": 1000.0, "fast": 10.0}.get)
    turns.ask("slow", 0.0)
    turns.ask("fast", 0.5)
    shares = {one.job: one.share for one in turns.turns(0.6)}

    assert shares["fast"] == pytest.approx(100.0 / 101.0)
    assert shares["slow"] == pytest.approx(1.0 / 101.0)


def test_a_job_that_no_longer_asks_is_forgotten() -> None:
    turns = Turns(lambda _: None)
    turns.ask("gone", 0.0)
    turns.ask("here", 0.9)

    assert [one.job for one in turns.turns(FORGOTTEN + 0.1)] == ["here"]
    assert turns.turn("gone", FORGOTTEN + 0.1).may_write is False


def test_clients_ask_over_http() -> None:
    watch = Watch(WatchSettings())
    server = WatchServer(watch, "127.0.0.1", 0)
    try:
        first = client.schedule(server.url, job="a", wants=True)
        second = client.schedule(server.url, job="b", wants=True)
        every = client.schedule(server.url)
        client.schedule(server.url, job="a", wants=False)
        then = client.schedule(server.url, job="b", wants=True)
        with pytest.raises(ServiceError, match="wants is 0 or 1"):
            client.schedule(server.url, wants=True)
    finally:
        server.close()
        watch.close()

    assert first[0].may_write and not second[0].may_write
    assert [turn.job for turn in every] == ["a", "b"]
    assert then[0].share == 1.0
