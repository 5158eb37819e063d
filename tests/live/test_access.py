"""Nobody but those who may can read from a service, send to it, or push others out."""

from __future__ import annotations

import errno
import os
import stat
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import zmq
from click.testing import CliRunner

from ioprism import ServiceError, UsageError, client
from ioprism.cli import main
from ioprism.formats.signals.messages import MOST_NAME
from ioprism.live import state
from ioprism.live.access import ClientKeys, client_keys, make_keys, server_keys
from ioprism.live.intake import Intake, Jobs, Message
from ioprism.live.metrics import Counts
from ioprism.live.watch import TRY_AGAIN, Watch, WatchSettings
from ioprism.local_http import read_token
from ioprism.periodicity.tracker import TrackerSettings
from tests.live.running import FREE, Running, burst, counting, in_background, running, sender


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    make_keys(tmp_path / "keys")
    return tmp_path / "keys"


def test_tcp_without_keys_is_refused_unless_that_is_asked_for() -> None:
    result = CliRunner().invoke(main, ["watch", "--zmq", FREE])

    assert result.exit_code == 2
    assert "open to every user" in result.stderr and "--keygen" in result.stderr


def test_a_sender_without_the_right_keys_is_not_heard(keys: Path, tmp_path: Path) -> None:
    make_keys(tmp_path / "others")
    with running("--zmq", FREE, "--keys", keys, "--http", 0) as service:
        address = service.place("messages")
        stranger = client_keys(tmp_path / "others")
        known = client_keys(keys)
        _send(address, None)
        _send(address, replace(stranger, server=known.server))
        with client.Reporter(address, job="mine", keys=keys) as reporter:
            reporter.report(start=[0.0], end=[1.0], moved=[1e9])
            service.until(counting(1))
        heard = service.get("/health")
        jobs = [job["job"] for job in service.get("/jobs")["jobs"]]

    assert heard["messages"] == 1
    assert jobs == ["mine"]


def _send(address: str, keys: ClientKeys | None) -> None:
    context = zmq.Context()
    socket = context.socket(zmq.PUSH)
    if keys is not None:
        keys.use(socket)
    socket.connect(address)
    socket.send(burst(0.0, job="stranger"))
    time.sleep(0.3)
    context.destroy(linger=0)


def test_a_sender_is_known_by_its_key_and_its_jobs_are_counted(keys: Path) -> None:
    options = ("--zmq", FREE, "--keys", keys, "--http", 0, "--max-jobs-per-sender", 2)
    with running(*options) as service:
        for job in ("a", "b", "c"):
            with client.Reporter(service.place("messages"), job=job, keys=keys) as reporter:
                reporter.report(start=[0.0], end=[1.0], moved=[1e9])
        while (heard := service.get("/health"))["messages"] < 3:
            time.sleep(0.05)

    assert (heard["jobs_created"], heard["refused"]) == (2, 1)


def test_without_keys_a_sender_is_known_by_its_machine() -> None:
    with running("--zmq", FREE, "--http", 0, "--max-jobs-per-sender", 2) as service:
        with sender(service.place("messages")) as send:
            for job in ("a", "b", "c"):
                send(burst(0.0, job=job))
        while (heard := service.get("/health"))["messages"] < 3:
            time.sleep(0.05)

    assert (heard["jobs_created"], heard["refused"]) == (2, 1)


def test_predictions_are_published_to_those_with_keys_alone(keys: Path) -> None:
    with running("--zmq", FREE, "--publish", FREE, "--keys", keys) as service:
        address = service.place("predictions")
        plain = client.subscribe(address, timeout=0.5)
        found = in_background(client.subscribe(address, timeout=30.0, keys=keys))
        with client.Reporter(service.place("messages"), job="mine", keys=keys) as reporter:
            for number in range(100):
                reporter.report(start=[10.0 * number], end=[10.0 * number + 1], moved=[1e9])
                time.sleep(0.1)
                if found():
                    break
            nothing = list(plain)

    assert found()[0].job == "mine"
    assert nothing == []


def test_a_socket_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    place = tmp_path / "socket"
    with running("--zmq", f"ipc://{place}") as service:
        with sender(service.place("messages")) as send:
            send(burst(0.0))
            service.until(counting(1))
        mode = stat.S_IMODE(place.stat().st_mode)

    assert mode == 0o600


def test_a_page_without_the_token_is_refused() -> None:
    with running("--zmq", FREE, "--http", 0) as service:
        place = f"http://{urlsplit(service.place('page')).netloc}"
        paths = ("/jobs", "/", "/metrics", "/health", "/events", "/wrong-token/jobs", "//[")
        codes = {path: _code(f"{place}{path}") for path in paths}
        with pytest.raises(ServiceError, match="403"):
            client.next_phase(place, job="x")

    assert codes == dict.fromkeys(paths, 403)


def _code(address: str) -> int:
    try:
        with urllib.request.urlopen(address) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return int(refusal.code)


def test_the_token_opens_the_page_in_its_address_or_as_a_header(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with running("--zmq", FREE, "--http", 0, "--token-file", file) as service:
        page = service.place("page")
        with urllib.request.urlopen(page) as answer:
            assert answer.url == f"{page}/" and b"<html" in answer.read()
        headers = {"Authorization": f"Bearer {file.read_text().strip()}"}
        place = f"http://{urlsplit(page).netloc}/jobs"
        with urllib.request.urlopen(urllib.request.Request(place, headers=headers)) as answer:
            assert b"jobs" in answer.read()

    assert page.endswith(file.read_text().strip())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_keys_and_tokens_that_others_can_read_are_refused(keys: Path, tmp_path: Path) -> None:
    (keys / "server.key").chmod(0o644)
    token = tmp_path / "token"
    read_token(token)
    token.chmod(0o644)

    with pytest.raises(UsageError, match="others can read it"):
        server_keys(keys)
    with pytest.raises(UsageError, match="others can read it"):
        read_token(token)


def test_keys_are_never_overwritten(keys: Path) -> None:
    before = (keys / "server.key").read_text()
    result = CliRunner().invoke(main, ["watch", "--keygen", str(keys)])

    assert result.exit_code == 1 and "already exists" in result.stderr
    assert (keys / "server.key").read_text() == before


def test_what_is_saved_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        service = Watch(WatchSettings(save_to=tmp_path / "state"))
        service.restore()
        files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        service.close()
    finally:
        os.umask(before)

    assert len(files) == 2 and set(files.values()) == {0o600}


def jobs_of(*, most: int, of_sender: int, still_sends: float = 60.0) -> Jobs:
    return Jobs(
        settings=TrackerSettings(),
        counts=Counts(),
        most=most,
        expire=600.0,
        most_of_sender=of_sender,
        still_sends=still_sends,
    )


def test_invented_names_never_push_out_a_job_that_still_sends() -> None:
    jobs = jobs_of(most=100, of_sender=100)
    for moment in (0.0, 120.0):  # it sends every two minutes
        jobs.hear("real", moment, sender="us")
    for number in range(2500):
        jobs.hear(f"invented{number}", 121.0 + 0.1 * number, sender="them")

    assert jobs.find("real") is not None
    assert len(jobs) == 100


def test_a_silent_job_makes_room_for_a_new_one() -> None:
    jobs = jobs_of(most=2, of_sender=2)
    jobs.hear("first", 0.0)
    jobs.hear("second", 100.0)

    assert jobs.hear("third", 110.0) is not None
    assert jobs.find("first") is None and jobs.find("second") is not None
    assert jobs.hear("fourth", 111.0) is None


def test_one_sender_cannot_take_all_the_room() -> None:
    jobs = jobs_of(most=10, of_sender=5)
    taken = [jobs.hear(f"job{number}", 0.0, sender="them") for number in range(8)]

    assert [job is not None for job in taken] == [True] * 5 + [False] * 3
    assert jobs.hear("ours", 0.0, sender="us") is not None


def test_the_room_of_a_sender_comes_back_when_its_jobs_are_forgotten() -> None:
    jobs = jobs_of(most=10, of_sender=1)
    jobs.hear("old", 0.0, sender="us")
    jobs.expire(1000.0)

    assert jobs.hear("new", 1000.0, sender="us") is not None


def test_a_name_that_is_too_long_is_refused_and_counted() -> None:
    counts = Counts()
    jobs = jobs_of(most=10, of_sender=10)
    intake = Intake(jobs, counts, direction="both", largest=10**6)
    intake.receive([Message("x" * (MOST_NAME + 1), burst(0.0))], arrived=0.0)
    intake.receive([Message("job", burst(0.0, job="y" * 100_000))], arrived=0.0)

    assert (counts.refused, counts.dropped_records, len(jobs)) == (2, 2, 0)


def test_a_full_disk_does_not_end_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    service = Watch(WatchSettings(save_to=tmp_path / "state"), notify=said.append)
    service.restore()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(state.os, "write", full)  # type: ignore[attr-defined]
        patched.setattr(state, "save", full)
        _take(service, 0.0)
        service.save()
        saving = [service.saving]
    _take(service, 10.0)
    service._tidy(time.monotonic() + TRY_AGAIN + 1.0)
    saving.append(service.saving)
    again = Watch(WatchSettings(save_to=tmp_path / "state"))
    again.restore()
    (job,) = again.jobs

    assert saving == [False, True]
    assert job.messages == 2  # also what came while the disk was full
    assert said == [
        "warning: the state cannot be saved (No space left on device); predictions continue",
        "the state is saved again",
    ]
    assert service.counts.unsaved == 2


def _take(service: Watch, start: float) -> None:
    (counted,) = service.intake.receive([Message("job", burst(start))], arrived=0.0)
    assert service._journal is not None
    service._journal.append(counted.job, counted.raw)
    service.step()


def test_a_service_on_a_disk_that_fills_up_goes_on_answering(small_disk: Path) -> None:
    options = ("--zmq", FREE, "--http", 0, "--state", small_disk / "state")
    with running(*options) as service, sender(service.place("messages")) as send:
        send(burst(0.0))
        service.until(counting(1))
        _fill(small_disk)
        for number in range(1, 9):
            send(burst(10.0 * number, ranks=400))
        service.until(counting(9))
        health = service.get("/health")
        (small_disk / "filler").unlink()
        assert _comes_back(service)
        code = service.end()

    assert health["ok"] is False and health["unsaved"] > 0
    assert code == 0


def _fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def _comes_back(service: Running) -> bool:
    for _ in range(100):
        if service.get("/health")["ok"]:
            return True
        time.sleep(0.2)
    return False


def test_a_pipe_in_the_place_of_a_secret_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for read in (read_token, server_keys, client_keys):
        with pytest.raises(UsageError, match="not a plain file"):
            read(tmp_path / "pipe")
