"""A followed file may grow, be cut short, replaced, rotated or damaged; nothing is read twice."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import msgpack
import pytest

from ioprism import BrokenTraceError
from ioprism.live.follow import Follower
from ioprism.live.watch import Watch, WatchSettings
from tests.live.running import PATIENCE, counting, running

LIMIT = 2**20


def line(start: float, *, length: float = 2.0) -> str:
    body = {"b_rank_avr": [1e9], "t_rank_s": [start], "t_rank_e": [start + length]}
    return json.dumps({"write_sync": {"number_of_ranks": 1, "bandwidth": body}}) + "\n"


def flush(start: float) -> bytes:
    phase = [2_000_000_000, start, start + 2.0, 0, 1e9, 1e9, 0, 0, 1]
    mode = ["write_sync", False, True, *[0] * 9, 4, [phase]]
    packed: bytes = msgpack.packb(mode)
    return packed


def report(start: float) -> bytes:
    values = [0, "node", 7, "w", [int(start * 1e6)], [int((start + 2) * 1e6)], [10**9], 1, 10**9]
    return b"".join(msgpack.packb(value) for value in values)


def watched(path: Path, *, limit: int = LIMIT, **settings: Path) -> Watch:
    service = Watch(WatchSettings(save_to=settings.get("save_to")))
    service.sources.append(Follower(path, job=path.name, largest=limit))
    service.restore()
    return service


def drained(service: Watch) -> float:
    """Read all there is; return how many bytes of I/O were heard of."""
    for _ in range(100):
        if not service.step():
            break
    return sum(job.tracker.ring.total for job in service.jobs)


def test_lines_that_are_added_are_read_once(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    service = watched(path)
    assert drained(service) == 0.0  # it is not there yet
    path.write_text(line(0.0))
    assert drained(service) == pytest.approx(2e9)
    with path.open("a") as file:
        file.write(line(10.0)[:40])
        file.flush()
        assert drained(service) == pytest.approx(2e9)  # half a line is none
        file.write(line(10.0)[40:])

    assert drained(service) == pytest.approx(4e9)
    assert service.counts.malformed == 0
    service.close()


@pytest.mark.parametrize("way", ["truncated", "replaced", "rotated"])
def test_a_new_beginning_is_noticed(tmp_path: Path, way: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(line(0.0) + line(10.0))
    service = watched(path)
    drained(service)
    if way == "truncated":
        path.write_text("")
        drained(service)
        path.write_text(line(20.0))
    elif way == "rotated":
        path.rename(tmp_path / "run.jsonl.1")
        drained(service)
        path.write_text(line(20.0))
    else:
        (tmp_path / "new").write_text(line(20.0))
        (tmp_path / "new").rename(path)

    assert drained(service) == pytest.approx(6e9)
    assert service.counts.files_replaced == 1
    service.close()


def test_what_was_written_before_a_rotation_is_not_missed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(line(0.0))
    service = watched(path)
    drained(service)
    with path.open("a") as file:
        file.write(line(10.0))
    path.rename(tmp_path / "old")
    path.write_text(line(20.0))

    assert drained(service) == pytest.approx(6e9)
    service.close()


@pytest.mark.parametrize("make", [flush, report], ids=["TMIO", "GekkoFS"])
@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_msgpack_comes_in_any_pieces(
    tmp_path: Path, make: Callable[[float], bytes], piece: int
) -> None:
    path = tmp_path / "run.msgpack"
    path.write_bytes(b"")
    service = watched(path)
    data = make(0.0) + make(10.0) + make(20.0)
    total = 0.0
    with path.open("ab", buffering=0) as file:
        for first in range(0, len(data), piece):
            file.write(data[first : first + piece])
            total = drained(service)

    assert total == pytest.approx(6e9 if make is flush else 3e9)
    assert service.counts.malformed == 0
    service.close()


def test_damage_is_skipped_to_the_next_flush(tmp_path: Path) -> None:
    path = tmp_path / "run.msgpack"
    path.write_bytes(flush(0.0) + b"\xc1\xc1 damage \xc1" + flush(10.0) + flush(20.0))
    service = watched(path)

    assert drained(service) == pytest.approx(6e9)
    assert service.counts.malformed == 1
    service.close()


def test_damaged_and_endless_lines_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("{damaged\n" + line(0.0) + "{" + "x" * 5000 + "\n" + line(10.0) + "7\n")
    service = watched(path, limit=1000)

    assert drained(service) == pytest.approx(4e9)
    assert (service.counts.malformed, service.counts.oversized) == (2, 1)
    service.close()


def test_a_restart_goes_on_where_the_state_stopped(tmp_path: Path) -> None:
    path, save_to = tmp_path / "run.jsonl", tmp_path / "state"
    path.write_text(line(0.0) + line(10.0)[:30])
    service = watched(path, save_to=save_to)
    drained(service)
    service.close()
    with path.open("a") as file:
        file.write(line(10.0)[30:])
    again = watched(path, save_to=save_to)

    assert drained(again) == pytest.approx(4e9)
    again.close()


def test_a_restart_reads_another_file_from_its_beginning(tmp_path: Path) -> None:
    path, save_to = tmp_path / "run.jsonl", tmp_path / "state"
    path.write_text(line(0.0) + line(10.0))
    service = watched(path, save_to=save_to)
    drained(service)
    service.close()
    path.write_text(line(20.0) + line(30.0) + line(40.0))
    again = watched(path, save_to=save_to)

    assert drained(again) == pytest.approx(10e9)
    again.close()


def test_a_folder_cannot_be_followed(tmp_path: Path) -> None:
    with pytest.raises(BrokenTraceError, match="Hint: name the file"):
        Follower(tmp_path, job="x", largest=LIMIT)


def test_the_command_follows_a_file_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with running("--follow", path) as service, path.open("a") as file:
        until = time.monotonic() + PATIENCE
        for number in range(9):
            file.write(line(10.0 * number))
            file.flush()
            one = service.until(counting(number + 1))
            assert time.monotonic() < until

    assert one["job"] == "run.jsonl"
    assert one["period"]["seconds"] == pytest.approx(10.0, rel=0.01)
