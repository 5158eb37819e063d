"""The live service for half an hour: many messages, jobs that come and go, and what it costs.

A sender in a process of its own pushes messages of ten intervals at a rate. Nine in ten are one
busy job's; the others belong to so many jobs at a time, each of which sends for two minutes, is
then never heard of again, and another takes its place.
Every few seconds the service is asked for its memory, descriptors and threads, and for its own
histogram of how long messages waited, less the time in which the service itself waited for a
processor (`benchmarks.running_clock`; the column "waited" shows how large that share is, and only
where it is small are the figures those of the clock on the wall). The claim: after the first five
minutes (a sixth of a shorter run) memory stays within 10 %, descriptors do not grow, and 99 % of
the messages are answered within 50 ms.

`python -m benchmarks.watch_endurance [SECONDS [RATE [JOBS]]]`, by default 1800, 10000 and 1000.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil

from benchmarks.peers import OURS, row
from benchmarks.watch import watching

SAMPLE = 10.0  # seconds between looks
SETTLING = 300.0  # seconds until memory has to be flat
FLAT = 1.10  # largest memory after settling, relative to that at its end
LONGEST_WAIT = 0.05  # seconds, of 99 % of the messages
TITLES = ("second", "messages/s", "memory", "descriptors", "threads", "jobs", "waited", "p99")
WIDTHS = (10, 14, 12, 12, 10, 10, 10, 12)

SENDER = """
import sys, time
import msgpack, numpy as np, zmq
address, rate, seconds, jobs = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
SIZE, PERIOD, LIFE, TICK, BUSY = 10, 5.0, 120.0, 0.001, 10
KEYS = ("b", "ts", "te")
class Message:
    # Packed once; for every sending all its numbers are written anew.
    def __init__(self, name, phase, every):
        self.each = every / SIZE  # a message tells what its job did since the last one
        self.offsets = self.each * np.arange(SIZE)
        head = {"job": name, "ranks": 100}
        self.raw = bytearray(msgpack.packb({**head, **{key: [0.0] * SIZE for key in KEYS}}))
        size = 9 * SIZE
        ends = [len(self.raw) - 2 * (size + 4), len(self.raw) - (size + 4), len(self.raw)]
        self.rate, self.start, self.end = (
            np.ndarray((SIZE,), ">f8", self.raw, end - size + 1, (9,)) for end in ends
        )
        self.phase = phase
    def at(self, moment):
        self.rate[:] = 1e9 if (moment + self.phase) % PERIOD < 1.0 else 1e5
        self.start[:] = start = moment + self.offsets
        self.end[:] = start + self.each
        return self.raw
busy = Message("busy", 0.0, 1 / rate)
between = BUSY * jobs / rate
slots = [Message(f"job{slot}.0", 0.37 * slot, between) for slot in range(jobs)]
told = msgpack.unpackb(slots[-1].at(2.0))
assert told["ts"][0] == 2.0 and abs(told["te"][-1] - 2.0 - between) < 1e-9
lives = [0] * jobs
socket = zmq.Context().socket(zmq.PUSH)
socket.connect(address)
count = int(rate * seconds)
began, number = time.monotonic(), 0
while number < count:
    due = min(count, int((time.monotonic() - began) * rate) + 1)
    for number in range(number, due):
        moment = number / rate
        if number % BUSY:
            socket.send(busy.at(moment))
            continue
        slot = number // BUSY % jobs
        life = int(moment / LIFE + slot / jobs)
        if life != lives[slot]:
            lives[slot] = life
            slots[slot] = Message(f"job{slot}.{life}", 0.37 * slot, between)
        socket.send(slots[slot].at(moment))
    number = due
    time.sleep(TICK)
print(time.monotonic() - began)
socket.close(linger=10000)
"""


def main() -> None:
    """Load the service, print what is seen, and fail if the claim does not hold."""
    given = [*map(float, sys.argv[1:]), *(1800.0, 10_000.0, 1000.0)[len(sys.argv) - 1 :]]
    seconds, rate, jobs = given[0], given[1], int(given[2])
    row(*TITLES, widths=WIDTHS)
    room = ("--max-jobs", "4000", "--max-jobs-per-sender", "4000", "--expire", "60")
    through = "benchmarks.running_clock ioprism"
    with watching("--http", "0", *room, through=through) as (service, places):
        sender = subprocess.Popen(
            [str(OURS), "-c", SENDER, places["messages"], *map(str, (rate, seconds, jobs))]
        )
        looks = []
        began, before, waited = time.monotonic(), 0, 0.0
        process = psutil.Process(service.pid)
        while sender.poll() is None:
            time.sleep(SAMPLE)
            metrics = _metrics(places["page"])
            now, messages = time.monotonic() - began, int(metrics["messages_total"])
            memory, files = process.memory_info().rss, process.num_fds()
            looks.append((now, memory, files, metrics))
            waiting, waited = -waited, _waited(service.pid)
            recent = _p99(metrics, looks[-2][3] if len(looks) > 1 else {})
            row(
                f"{now:.0f}",
                f"{(messages - before) / SAMPLE:,.0f}",
                f"{memory / 2**20:.0f} MiB",
                files,
                process.num_threads(),
                int(metrics["jobs"]),
                f"{(waiting + waited) / SAMPLE:.1%}",
                f"< {1000 * recent:.0f} ms",
                widths=WIDTHS,
            )
            before = messages
        settled = [look for look in looks if look[0] >= min(SETTLING, seconds / 6)]
        growth = max(look[1] for look in settled) / settled[0][1]
        files_grew = settled[-1][2] > settled[0][2] + 2  # our own questions come and go
        p99 = _p99(metrics, settled[0][3])
    print(f"memory {growth:.3f} of that when settled; p99 below {1000 * p99:.0f} ms")
    if growth > FLAT or files_grew or p99 > LONGEST_WAIT:
        raise SystemExit("the claim does not hold")


def _waited(process: int) -> float:
    """Seconds for which the thread that answers has waited for a processor."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9


def _metrics(page: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{page}/metrics") as answer:
        text = answer.read().decode()
    found = re.findall(r"^ioprism_watch_(\w+(?:\{le=\S+\})?) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found}


def _p99(metrics: dict[str, float], before: dict[str, float]) -> float:
    """The bound below which 99 % of the messages since a moment were answered."""
    buckets = {
        float(name.split('"')[1]): count - before.get(name, 0.0)
        for name, count in metrics.items()
        if name.startswith("latency_seconds_bucket")
    }
    return min(bound for bound, count in buckets.items() if count >= 0.99 * buckets[float("inf")])


if __name__ == "__main__":
    main()
