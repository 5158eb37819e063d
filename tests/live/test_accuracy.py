"""What `ioprism watch` says about jobs whose period is known, all over a real socket."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

import ioprism
from benchmarks.synthetic import Burst, Requests, Workload, synthesise
from ioprism.live.replay import requests_of_trace, stream_messages
from tests.conftest import TEST_DATA
from tests.live.running import FREE, PATIENCE, burst, counting, running, sender

BATCH = 0.2  # seconds of the job in a message
Said = list[dict[str, Any]]

# Where the bandwidth of the public traces rises, in seconds, and how long it stays up.
BIG_WRITES = (3.17, 13.16, 23.74, 34.59, 44.42, 53.78, 63.94, 74.17)
BIG_READS = (8.53, 18.64, 29.49, 40.64, 49.61, 58.70, 69.39, 79.76)
SMALL_READS = (
    *(2.51, 4.37, 6.19, 8.02, 10.00, 11.82, 13.64, 15.53),
    *(17.47, 19.27, 21.06, 22.98, 24.95, 27.02, 28.98),
)


def replayed_answers(stream: Iterator[tuple[float, bytes]], *options: object) -> Said:
    """What watch says after each message, however busy the machine: the next waits for it."""
    with running("--zmq", FREE, *options) as service, sender(service.place("messages")) as send:
        said = []
        for number, (_, message) in enumerate(stream, start=1):
            send(message)
            said.append(service.until(counting(number)))
        return said


def replayed(trace: Path, *, direction: str) -> Said:
    """What watch says about the messages that `ioprism replay` makes of a trace."""
    done = requests_of_trace(ioprism.read(trace), direction=direction)
    return replayed_answers(stream_messages(done, batch=BATCH, job="job"), "--direction", direction)


def is_right_and_stays(
    said: Said, *, period: float, starts: Sequence[float], length: float, needed: int = 5
) -> bool:
    """Whether the period holds from when the phase after so many periods is reported.

    That is when it ends; analyses are a quarter of a period apart.
    """
    reported = starts[needed] + length + BATCH + period / 4
    late = [one["period"] for one in said if one["time"] > reported]
    return len(late) > 2 and all(
        one is not None and abs(one["seconds"] / period - 1.0) < 0.03 for one in late
    )


def median_error(said: Said, *, period: float, starts: Sequence[float]) -> float:
    """Of the predicted start of the next phase, as a share of the period, after five periods."""
    late = [one for one in said if starts[5] < one["time"] < starts[-1] and one["next_phase"]]
    errors = [
        abs(one["next_phase"]["start"] - min(start for start in starts if start > one["time"]))
        for one in late
    ]
    assert len(errors) >= 5
    return float(np.median(errors)) / period


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "direction", "period", "starts", "length", "needed"),
    [
        ("384.msgpack", "write", 10.143, BIG_WRITES, 5.0, 5),
        # Distances of 9 to 11 s: after five of them chance explains as much in 0.7 %.
        ("384.msgpack", "read", 10.175, BIG_READS, 4.0, 6),
        ("8.jsonl", "read", 1.891, SMALL_READS, 0.05, 5),
    ],
)
def test_after_a_few_periods_a_real_job_is_known(
    shared_data: Path,
    name: str,
    direction: str,
    period: float,
    starts: Sequence[float],
    length: float,
    needed: int,
) -> None:
    said = replayed(shared_data / "tmio" / name, direction=direction)

    assert is_right_and_stays(said, period=period, starts=starts, length=length, needed=needed)
    assert median_error(said, period=period, starts=starts) < 0.1


@pytest.mark.corpus
def test_writes_with_hardly_a_pause_are_not_given_a_wrong_periodicity(shared_data: Path) -> None:
    """They look like a serial stream, whose evenness proves nothing: silence is right."""
    said = replayed(shared_data / "tmio" / "8.jsonl", direction="write")
    told = [one["period"]["seconds"] for one in said if one["period"] is not None]

    assert len(said) > 50
    assert all(abs(seconds / 1.937 - 1.0) < 0.05 for seconds in told)


@pytest.mark.parametrize(("period", "jitter"), [(4.0, 0.0), (20.0, 0.05), (600.0, 0.03)])
def test_after_five_periods_a_synthetic_job_is_known(period: float, jitter: float) -> None:
    written = Burst(
        "/scratch/out.{rank}",
        "write",
        Requests(count=8, size=2**20),
        start=0.3 * period,
        length=0.2 * period,
        period=period,
        repetitions=24,
        gap_jitter=jitter,
    )
    made = synthesise(Workload(ranks=4, bursts=(written,), seed=3))
    (truth,) = made.truth.repetitions
    stream = stream_messages(
        requests_of_trace(made.trace, direction="write"), batch=period / 20, job="job"
    )
    said = replayed_answers(stream)

    assert is_right_and_stays(said, period=period, starts=truth.starts, length=0.2 * period)
    assert median_error(said, period=period, starts=truth.starts) < 0.1


def test_the_command_sends_a_whole_trace() -> None:
    log = TEST_DATA / "darshan/a_ckpt_fpp_period5s.darshan"
    with running("--zmq", FREE) as service:
        options = ["--zmq", service.place("messages"), "--speed", "100", "--batch", "1"]
        command = [sys.executable, "-m", "ioprism", "replay", str(log), *options]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)
        sent = re.fullmatch(r"sent 192 requests in (\d+) messages\n", done.stderr)
        assert sent is not None
        last = service.until(counting(int(sent[1])))

    assert last["period"]["seconds"] == pytest.approx(5.0, rel=0.05)


def test_a_change_of_periodicity_is_announced_within_four_of_its_periods() -> None:
    slow = 5.0 + 20.0 * np.arange(9)
    fast = slow[-1] + 20.0 + 4.0 * np.arange(14)
    again = fast[-1] + 4.0 + 20.0 * np.arange(6)
    said = []
    with running("--zmq", FREE) as service, sender(service.place("messages")) as send:
        for number, start in enumerate([*slow, *fast, *again], start=1):
            send(burst(float(start), length=1.5))
            said.append(service.until(counting(number)))
    news = [one for one in said if one["change"] and one["change"]["after"]]

    assert [round(one["change"]["after"]) for one in news] == [20, 4, 20]
    assert news[1]["time"] <= fast[0] + 4 * 4.0
    assert news[2]["time"] <= again[0] + 4 * 20.0
    assert said[0].keys() >= {"time", "window", "period", "next_phase", "job", "probabilities"}


def random_bursts(rng: np.random.Generator) -> Iterator[dict[str, list[float]]]:
    """Phases that begin at any time and last for any."""
    for start in np.cumsum(rng.exponential(20.0, 30)).tolist():
        yield {"b": [rng.uniform(1e8, 1e9)], "ts": [start], "te": [start + rng.uniform(1, 9)]}


def noise(rng: np.random.Generator) -> Iterator[dict[str, list[float]]]:
    """Bandwidth that is another every second."""
    for second in np.arange(0.0, 300.0, 10.0):
        start = second + np.arange(10.0)
        values = rng.exponential(1e8, 10).tolist()
        yield {"b": values, "ts": start.tolist(), "te": (start + 1.0).tolist()}


def steady(_: np.random.Generator) -> Iterator[dict[str, list[float]]]:
    """A period, to see that one would be announced."""
    for start in (20.0 * np.arange(30)).tolist():
        yield {"b": [1e9], "ts": [start], "te": [start + 4.0]}


def test_on_noise_nothing_is_announced_more_often_than_the_level_says() -> None:
    makers = [*[random_bursts] * 30, *[noise] * 30, steady]
    announced = set()
    with running("--zmq", FREE) as service, sender(service.place("messages")) as send:
        for seed, make in enumerate(makers):
            job = f"{make.__name__} {seed}"
            for number, values in enumerate(make(np.random.default_rng(seed)), start=1):
                send(msgpack.packb({"job": job, **values}))
                if service.until(counting(number))["change"]:
                    announced.add(job)

    assert "steady 60" in announced
    assert len(announced) - 1 <= 3  # of 60 jobs at a level of 1 %; four are 0.3 % likely
