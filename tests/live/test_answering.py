"""Every job is answered in its turn, as often as was asked, and only while it is known."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from ioprism.live import watch
from ioprism.live.intake import Intake, Message
from ioprism.live.publish import Answer
from ioprism.live.watch import ANALYSIS_BUDGET, Watch, WatchSettings
from ioprism.periodicity.tracker import Tracker
from tests.live.running import burst

ALL = {"a", "b", "c"}


class Slow:
    """Someone who listens for so long that the analyses of other jobs are put off."""

    def __init__(self) -> None:
        self.heard: list[Answer] = []

    def __call__(self, answer: Answer) -> None:
        if answer.prediction.final:  # jobs are answered once more when the service ends
            return
        self.heard.append(answer)
        time.sleep(2 * ANALYSIS_BUDGET)

    def jobs(self) -> list[str]:
        return [answer.job for answer in self.heard]


def send(service: Watch, jobs: str, *, first: int = 0, count: int = 8) -> None:
    """Every job has written every ten seconds."""
    each = [Message(job, burst(10.0 * (first + number))) for job in jobs for number in range(count)]
    service.intake.receive(each, arrived=time.monotonic())


def until_done(service: Watch) -> None:
    while service.step():
        pass


def test_jobs_that_are_due_together_are_answered_once_in_an_interval() -> None:
    listener = Slow()
    service = Watch(WatchSettings(every=1000.0), [listener])
    send(service, "abc")
    until_done(service)
    send(service, "abc", first=8)
    until_done(service)
    service.close()

    assert sorted(listener.jobs()) == ["a", "b", "c"]
    assert all(answer.prediction.period is not None for answer in listener.heard)
    assert all(answer.messages == 8 for answer in listener.heard)
    assert service.counts.predictions == 3


def test_a_job_put_off_is_answered_in_the_next_interval_too() -> None:
    listener, every = Slow(), 0.1
    service = Watch(WatchSettings(every=every), [listener])
    moments: dict[str, list[float]] = {job: [] for job in ALL}

    def note(answer: Answer) -> None:
        job = service.jobs.find(answer.job)
        assert job is not None
        if answer.prediction.final:
            return
        moments[job.name].append(job.answered_at)

    service.listeners.append(note)
    for number in range(60):
        send(service, "abc", first=number, count=1)
        service.step()
        time.sleep(0.01)
    service.close()

    for job in ALL:
        gaps = [later - one for one, later in zip(moments[job], moments[job][1:], strict=False)]
        assert len(gaps) >= 3
        assert min(gaps) >= every


def test_with_every_batch_nobody_waits_for_the_analyses_of_others() -> None:
    listener = Slow()
    service = Watch(WatchSettings(), [listener])
    send(service, "abc")
    more = service.step()
    at_once = listener.jobs()
    until_done(service)
    service.close()

    assert more
    assert set(at_once) == ALL
    latest = {answer.job: answer.prediction.period for answer in listener.heard}
    assert all(period is not None for period in latest.values())


def test_a_job_that_had_to_go_is_not_answered_in_place_of_its_successor() -> None:
    listener = Slow()
    service = Watch(WatchSettings(most_jobs=3, still_sends=0.0), [listener])
    send(service, "abc")
    assert service.step()  # an analysis is still to be made
    listener.heard.clear()
    send(service, "xyz")
    send(service, "cb", first=20, count=5)
    until_done(service)
    service.close()

    assert set(listener.jobs()) == {"z", "b", "c"}
    assert {answer.messages for answer in listener.heard if answer.job in "bc"} == {5}
    for name in "bc":
        job = service.jobs.find(name)
        assert job is not None and job.latest is not None and job.latest.period is not None


def test_a_job_that_had_to_go_is_not_analysed_any_more() -> None:
    listener = Slow()
    service = Watch(WatchSettings(most_jobs=3, still_sends=0.0), [listener])
    send(service, "abc")
    assert service.step()
    listener.heard.clear()
    send(service, "xyz")
    until_done(service)
    service.close()

    assert set(listener.jobs()) == {"x", "y", "z"}


def test_a_job_that_had_to_go_is_not_answered_after_a_delay_either() -> None:
    heard: list[Answer] = []
    service = Watch(WatchSettings(most_jobs=1, every=1000.0, still_sends=0.0), [heard.append])
    send(service, "a")
    service.step()
    waiting = service.find("a")
    assert waiting is not None
    send(service, "a", first=8)
    service.step()  # it waits for the end of the interval
    send(service, "b")
    waiting.answered_at -= 1000.0  # the interval ends
    until_done(service)
    service.close()

    told = [(one.job, one.messages) for one in heard if not one.prediction.final]
    assert told == [("a", 8), ("b", 8)]


def test_a_job_named_with_half_a_character_can_be_saved(tmp_path: Path) -> None:
    settings = WatchSettings(save_to=tmp_path / "state")
    service = Watch(settings)
    service.restore()
    message = {"job": "a\ud800", "b": [1.0], "ts": [0.0], "te": [1.0]}
    service.intake.receive([Message("job", json.dumps(message).encode())], arrived=0.0)
    service.close()
    again = Watch(settings)
    again.restore()
    names = [job.name for job in again.jobs]
    again.close()

    assert names == ["a?"]


class Flooded:
    """A source that always has one more message."""

    address = "flood://"

    def __init__(self) -> None:
        self.given = 0

    def read(self, intake: Intake, journal: object) -> bool:  # noqa: ARG002
        self.given += 1
        intake.receive([Message("a", burst(10.0 * self.given))], arrived=time.monotonic())
        return True

    def waits_on(self) -> None: ...

    def close(self) -> None: ...


def test_analyses_make_way_for_messages_that_wait_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service, analysed = Watch(WatchSettings()), 0
    source = Flooded()
    analyse = Tracker._analyse

    def count(tracker: Tracker, now: float) -> None:
        nonlocal analysed
        analysed += 1
        analyse(tracker, now)

    monkeypatch.setattr(Tracker, "_analyse", count)
    service.sources = [source]  # type: ignore[list-item]
    made = []
    for pause in (1000.0, 0.0):
        monkeypatch.setattr(watch, "ANALYSIS_PAUSE", pause)
        for _ in range(20):  # each message makes an analysis due
            service.step()
        made.append(analysed)
    service.sources = []
    service.close()

    assert made[0] == 0
    assert made[1] > 0


def test_jobs_that_end_together_are_concluded_one_at_a_time() -> None:
    service, jobs = Watch(WatchSettings()), "abcdefghij"
    send(service, jobs)
    until_done(service)
    for job in service.jobs:
        job.heard -= 100.0
    service._tidy(time.monotonic())
    concluded = []
    while service.step():
        concluded.append(sum(job.concluded for job in service.jobs))
    service.close()

    assert concluded[: len(jobs) - 1] == list(range(1, len(jobs)))
