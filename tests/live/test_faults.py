"""Whatever happens to senders, files or the service itself: it goes on, and loses nothing."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from ioprism import BrokenTraceError
from ioprism.live.intake import Message
from ioprism.live.state import Journal, load, read_journal
from ioprism.live.watch import Watch, WatchSettings, WatchState
from tests.live.running import FREE, PATIENCE, Running, burst, counting, running, sender
from tests.live.test_follow import line

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x05READY\x0bSocket-Type" + struct.pack(">I", 4) + b"PUSH"


def cut_off(address: str, *, said: bytes) -> None:
    """Speak ZeroMQ's protocol by hand, and hang up."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(said)
        connection.recv(len(GREETING))
        time.sleep(0.2)  # what was said has arrived


def half_a_message() -> bytes:
    whole = burst(0.0, ranks=40)
    frame = b"\x02" + struct.pack(">Q", len(whole)) + whole
    return GREETING + b"\x04" + bytes([len(READY)]) + READY + frame[: len(frame) // 2]


def test_a_sender_that_dies_within_a_message_leaves_no_trace() -> None:
    with running("--zmq", FREE, "--http", 0) as service:
        address = service.place("messages")
        for said in (b"", b"GET / HTTP/1.1\r\n\r\n", GREETING[:20], half_a_message()):
            cut_off(address, said=said)
        with sender(address) as send:
            for number in range(8):
                send(burst(10.0 * number))
            last = service.until(counting(8))
        counts = service.get("/health")

    assert last["period"]["seconds"] == pytest.approx(10.0, rel=0.01)
    assert (counts["messages"], counts["malformed"]) == (8, 0)


def test_a_huge_message_never_reaches_memory() -> None:
    options = ("--zmq", FREE, "--http", 0, "--max-message", "64KiB")
    with running(*options) as service, sender(service.place("messages")) as send:
        send(burst(0.0))
        service.until(counting(1))
        before = psutil.Process(service.process.pid).memory_info().rss
        send(bytes(256 * 2**20))
        send(bytes(100_000))
        send(burst(10.0))
        service.until(counting(2))
        after = psutil.Process(service.process.pid).memory_info().rss
        counts = service.get("/health")

    assert after - before < 32 * 2**20
    assert (counts["oversized"], counts["messages"]) == (1, 3)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["terminated", "killed"])
def test_a_service_that_ends_under_load_has_kept_all_it_answered(
    tmp_path: Path, number: int
) -> None:
    options = ("--zmq", FREE, "--http", 0, "--state", tmp_path / "state")
    with running(*options) as service, sender(service.place("messages")) as send:
        for start in range(2000):
            send(burst(10.0 * start))
        service.until(lambda one: one["messages"] >= 200)
        service.end(number)
        answered = max(_printed(service), default=200)
    with running(*options) as service:
        kept = service.get("/job?job=job")["messages"]

    assert answered >= 200
    assert kept >= answered


def _printed(service: Running) -> list[int]:
    time.sleep(0.5)  # until all that was printed is read
    return [service.said.get()["messages"] for _ in range(service.said.qsize())]


def test_a_followed_file_is_read_once_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    options = ("--follow", path, "--state", tmp_path / "state")
    path.write_text("".join(line(10.0 * number) for number in range(5)))
    with running(*options) as service:
        service.until(counting(5))
        service.end(signal.SIGKILL)
    with path.open("a") as file:
        file.write(line(50.0) + line(60.0))
    with running(*options) as service:
        last = service.until(lambda one: one["time"] > 61.0 and one["period"] is not None)

    assert last["messages"] == 7
    assert last["period"]["seconds"] == pytest.approx(10.0, rel=0.01)


def test_a_followed_file_is_replaced_while_the_service_runs(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(line(10.0 * number) for number in range(4)))
    with running("--follow", path, "--http", 0) as service:
        service.until(counting(4))
        (tmp_path / "new").write_text("".join(line(10.0 * number) for number in range(4, 9)))
        (tmp_path / "new").rename(path)
        last = service.until(counting(9))
        counts = service.get("/health")

    assert last["period"]["seconds"] == pytest.approx(10.0, rel=0.01)
    assert counts["files_replaced"] == 1


def test_a_record_cut_off_by_a_crash_ends_the_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    for number in range(3):
        journal.append("job", burst(10.0 * number))
    journal.flush()
    journal.close()
    whole = (tmp_path / "journal").read_bytes()
    (tmp_path / "journal").write_bytes(whole[:-1])
    left_out: list[int] = []
    found = list(read_journal(tmp_path / "journal", left_out.append))

    assert found == [("job", burst(0.0)), ("job", burst(10.0))]
    assert left_out == [len(whole) // 3 - 1]


def journalled(folder: Path) -> tuple[WatchSettings, Path]:
    """A service's journal with three messages, and the settings that find it again."""
    settings = WatchSettings(save_to=folder / "state")
    Watch(settings).restore()
    path = next(path for path in folder.iterdir() if "journal" in path.name)
    journal = Journal(path)
    for number in range(3):
        journal.append("job", burst(10.0 * number))
    journal.flush()
    return settings, path


def test_a_damaged_record_ends_the_journal_and_what_is_lost_is_said(tmp_path: Path) -> None:
    settings, path = journalled(tmp_path)
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    said: list[str] = []
    again = Watch(settings, notify=said.append)
    again.restore()

    assert [job.messages for job in again.jobs] == [1]
    assert len(said) == 1 and "of the journal are cut off or damaged" in said[0]


def test_a_flipped_bit_of_a_saved_state_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "state"
    service = Watch(WatchSettings(save_to=path))
    service.restore()
    service.intake.receive([Message("job", burst(0.0))], arrived=0.0)
    service.close()
    whole = path.read_bytes()
    for place in range(0, len(whole), 1 + len(whole) // 500):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(BrokenTraceError, match="not a state of `ioprism watch`"):
            load(path, WatchState)


def test_no_two_services_save_to_one_file(tmp_path: Path) -> None:
    options = ("--state", tmp_path / "state", "--exit-when-idle", "1")
    with running("--zmq", FREE, "--http", 0, "--state", tmp_path / "state") as service:
        service.get("/health")  # it has begun
        second = subprocess.run(
            [sys.executable, "-m", "ioprism", "watch", "--follow", str(tmp_path / "none"),
             *map(str, options)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert second.returncode == 1
    assert "another `ioprism watch` saves its state here" in second.stderr


def test_a_journal_without_its_last_record_is_gone_on_from(tmp_path: Path) -> None:
    settings, journal = journalled(tmp_path)
    journal.write_bytes(journal.read_bytes()[:-1])
    again = Watch(settings)
    again.restore()
    (job,) = again.jobs

    assert job.messages == 2


def test_only_this_machine_is_listened_to_unless_told_otherwise() -> None:
    ports = _free_ports(3)
    pull, publish, proxy = ports
    options = ("--zmq", pull, "--publish", publish, "--metric-proxy", proxy, "--http", 0)
    with_all = (*options, "--unprotected")
    with running(*with_all) as service:
        page = urlsplit(service.place("page")).port
        found = psutil.Process(service.process.pid).net_connections("inet")
        listening = {one.laddr for one in found if one.status == psutil.CONN_LISTEN}

    assert {address.port for address in listening} == {*ports, page}
    assert {address.ip for address in listening} == {"127.0.0.1"}


def _free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports
