"""The live service under load, with a thousand jobs, and idle; beside FTIO's predictor.

A sender in a process of its own pushes messages of 100 intervals over a loopback socket.
"arrival" is from the earliest moment at which the service can have got a message to a prediction
that counts it in, by its own histogram; the other latencies are from sending it to a subscriber's
having that prediction, so both sockets, and whatever else the machine does, are part of them.
Memory is that after a third of the load, and at its end.
`IOPRISM_BENCH_SECONDS` sets the length of the load (10 by default, 60 for the claim);
`python -m benchmarks.watch guarded` measures only the two ways that keep others out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import psutil
import zmq

from benchmarks.peers import OURS, peer, row
from ioprism.live.access import client_keys, make_keys

SECONDS = float(os.environ.get("IOPRISM_BENCH_SECONDS", "10"))
IDLE_SECONDS = 5.0
SAMPLE = 0.5  # seconds between looks at the memory
WIDTHS = (24, 12, 12, 10, 10, 10, 9, 14)
FTIO = "ftio-hpc==0.0.9"
FTIO_ADDRESS = "tcp://127.0.0.1:5599"

SENDER = """
import sys, time
from pathlib import Path
import msgpack, numpy as np, zmq
from ioprism.live.access import client_keys
address, log, keys = sys.argv[1], sys.argv[5], sys.argv[6]
rate, seconds, jobs = float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
SIZE, PERIOD, TICK = 100, 5.0, 0.001
KEYS = ("b", "ts", "te")
each = max(jobs / rate, 0.01) / SIZE  # a message tells what its job did since the last one
offsets = each * np.arange(SIZE)
class Message:
    # Packed once; for every sending all its numbers are written anew.
    def __init__(self, job):
        name = {"job": f"job{job}", "ranks": 100}
        self.raw = bytearray(msgpack.packb({**name, **{key: [0.0] * SIZE for key in KEYS}}))
        size = 9 * SIZE  # bytes of an array; from its end, the key and head of the next one
        ends = [len(self.raw) - 2 * (size + 6), len(self.raw) - (size + 6), len(self.raw)]
        self.rate, self.start, self.end = (
            np.ndarray((SIZE,), ">f8", self.raw, end - size + 1, (9,)) for end in ends
        )
        self.phase = 0.37 * job
    def at(self, moment):
        self.rate[:] = 1e9 if (moment + self.phase) % PERIOD < 1.0 else 1e5
        self.start[:] = start = moment + offsets
        self.end[:] = start + each
        return self.raw
messages = [Message(job) for job in range(jobs)]
told = msgpack.unpackb(messages[-1].at(2.0))
assert told["ts"][0] == 2.0 and told["te"][-1] == 2.0 + offsets[-1] + each
socket = zmq.Context().socket(zmq.PUSH)
if keys:
    client_keys(Path(keys)).use(socket)
socket.connect(address)
count = int(rate * seconds)
sent = np.zeros(count)
began, number = time.monotonic(), 0
while number < count:
    due = min(count, int((time.monotonic() - began) * rate) + 1)
    for number in range(number, due):
        socket.send(messages[number % jobs].at(number / rate))
        sent[number] = time.monotonic()
    number = due
    time.sleep(TICK)
print(time.monotonic() - began)
np.save(log, sent)
socket.close(linger=10000)
"""


def main() -> None:
    row("", "messages/s", "arrival p99", "p50", "p99", "longest", "CPU", "memory", widths=WIDTHS)
    if "guarded" in sys.argv:
        guarded()
        return
    load("one job", rate=10_000, seconds=SECONDS, jobs=1)
    guarded()
    load("1,000 jobs", rate=1_000, seconds=SECONDS, jobs=1000)
    idle()
    beside_ftio()


def guarded() -> None:
    """Print the same load through a file of one's own, and encrypted with keys."""
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "keys"
        make_keys(keys)
        load("one job, own file", rate=10_000, seconds=SECONDS, jobs=1, file=Path(folder) / "a")
        load("one job, keys", rate=10_000, seconds=SECONDS, jobs=1, keys=keys)


def load(
    name: str,
    *,
    rate: float,
    seconds: float,
    jobs: int,
    file: Path | None = None,
    keys: Path | None = None,
) -> None:
    """Send at a rate and print how long predictions take."""
    published = f"ipc://{file}-out" if file else "tcp://127.0.0.1:*"
    with (
        tempfile.TemporaryDirectory() as folder,
        watching("--publish", published, "--http", "0", file=file, keys=keys) as (service, places),
    ):
        log = Path(folder) / "sent.npy"
        before = _used(service.pid)
        sender = _sender(
            places["messages"], rate=rate, seconds=seconds, jobs=jobs, log=log, keys=keys
        )
        heard, memory = _heard(places["predictions"], service.pid, until=sender, keys=keys)
        cpu = _used(service.pid) - before
        took = float(sender.communicate()[0])
        latency = _latencies(np.load(log), heard, jobs)
        arrival = _arrival_p99(places["page"])
    row(
        name,
        f"{rate * seconds / took:,.0f}",
        arrival,
        *(f"{1000 * q:.1f} ms" for q in (*np.quantile(latency, [0.5, 0.99]), latency.max())),
        f"{100 * cpu / took:.0f} %",
        f"{memory[len(memory) // 3] / 2**20:.0f}, {memory[-1] / 2**20:.0f} MiB",
        widths=WIDTHS,
    )


def _sender(
    address: str, *, rate: float, seconds: float, jobs: int, log: Path, keys: Path | None = None
) -> subprocess.Popen[str]:
    given = (address, rate, seconds, jobs, log, keys or "")
    command = [str(OURS), "-c", SENDER, *map(str, given)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _arrival_p99(page: str) -> str:
    """The bound below which 99 % of the messages were answered after the service had them."""
    with urllib.request.urlopen(f"{page}/metrics") as answer:
        text = answer.read().decode()
    buckets = re.findall(r'latency_seconds_bucket{le="(.*)"} (.*)', text)
    enough = 0.99 * int(buckets[-1][1])
    bound = next(float(bound) for bound, count in buckets if int(count) >= enough)
    return f"< {1000 * bound:.0f} ms"


def idle() -> None:
    """Print what a service costs that nobody talks to."""
    with watching("--http", "0") as (service, _):
        time.sleep(1.0)
        before = _used(service.pid)
        time.sleep(IDLE_SECONDS)
        share = (_used(service.pid) - before) / IDLE_SECONDS
    row("idle", "", "", "", "", "", f"{100 * share:.2f} %", "", widths=WIDTHS)


def beside_ftio() -> None:
    """Print what FTIO's predictor costs when idle, on the same load, and for a few bursts."""
    with ftio_predicting() as (service, said):
        before = _used(service.pid)
        time.sleep(IDLE_SECONDS)
        share = (_used(service.pid) - before) / IDLE_SECONDS
        row("FTIO 0.0.9, idle", "", "", "", "", "", f"{100 * share:.2f} %", "", widths=WIDTHS)
        answers, cost, memory = _bursts_to(FTIO_ADDRESS, service.pid, said)
    row("FTIO 0.0.9, 20 bursts", answers, "", "", "", "", f"{cost:.2f} s", memory, widths=WIDTHS)
    with watching("--publish", "tcp://127.0.0.1:*") as (ours, places):
        _, cost, memory = _bursts_to(places["messages"], ours.pid, None)
    row("ioprism, 20 bursts", "", "", "", "", "", f"{cost:.2f} s", memory, widths=WIDTHS)
    with ftio_predicting() as (service, said):
        ftio_load(service, said, rate=10_000, seconds=SECONDS)


def ftio_load(
    service: subprocess.Popen[str], said: IO[str], *, rate: float, seconds: float
) -> None:
    """Send FTIO the load of one job; it answers after a second without messages."""
    with tempfile.TemporaryDirectory() as folder:
        before = _used(service.pid)
        sender = _sender(
            FTIO_ADDRESS, rate=rate, seconds=seconds, jobs=1, log=Path(folder) / "sent.npy"
        )
        memory = []
        while sender.poll() is None:
            memory.append(_memory(service.pid))
            time.sleep(SAMPLE)
        took = float(sender.communicate()[0])
        cpu = (_used(service.pid) - before) / took
    row(
        "FTIO 0.0.9, one job",
        f"{rate * seconds / took:,.0f}",
        _answers(said),
        "",
        "",
        "",
        f"{100 * cpu:.0f} %",
        f"{memory[len(memory) // 3] / 2**20:.0f}, {memory[-1] / 2**20:.0f} MiB",
        widths=WIDTHS,
    )


@contextmanager
def ftio_predicting() -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Run FTIO's predictor, which leaves files where it runs; yield it and what it says."""
    program = peer("ftio", FTIO).with_name("predictor")
    port = FTIO_ADDRESS.rpartition(":")[2]
    command = [str(program), "--zmq", "--zmq_port", port, "-e", "no", "-f", "10"]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as said:
        service = subprocess.Popen(command, stdout=said, stderr=said, text=True, cwd=folder)
        try:
            time.sleep(8.0)  # it loads for several seconds
            yield service, said
        finally:
            _end(service)


def _answers(said: IO[str]) -> str:
    said.seek(0)
    return f"{said.read().count('): Ended')} answers"


def _bursts_to(address: str, pid: int, said: IO[str] | None) -> tuple[str, float, str]:
    """Send 20 bursts, one every 1.5 s, which FTIO needs to tell batches apart."""
    import msgpack

    context = zmq.Context()
    socket = context.socket(zmq.PUSH)
    socket.connect(address)
    before = _used(pid)
    for number in range(20):
        start = np.sort(10.0 * number + np.linspace(0.0, 1.9, 200))
        message = {
            "ranks": 4,
            "b": [1e9] * len(start),
            "ts": start.tolist(),
            "te": (start + 0.1).tolist(),
        }
        socket.send(msgpack.packb(message))
        time.sleep(1.5)
    time.sleep(2.0)
    cost = _used(pid) - before
    memory = _memory(pid)
    context.destroy(linger=0)
    return "" if said is None else _answers(said), cost, f"{memory / 2**20:.0f} MiB"


@contextmanager
def watching(
    *options: str, file: Path | None = None, keys: Path | None = None, through: str = "ioprism"
) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Run `ioprism watch` on a free port, or on a file; yield it and where it listens.

    `through` names the modules to run it with, such as `benchmarks.running_clock ioprism`.
    """
    address = f"ipc://{file}" if file else "tcp://127.0.0.1:*"
    access = ["--keys", str(keys)] if keys else [] if file else ["--unprotected"]
    command = [str(OURS), "-m", *through.split(), "watch", "--zmq", address, *access, *options]
    service = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert service.stderr is not None
    places: dict[str, str] = {}
    expected = 1 + sum(option in ("--publish", "--http") for option in options)
    while len(places) < expected:
        what, _, address = service.stderr.readline().strip().partition(": ")
        if what != "warning":
            places[what] = address
    try:
        yield service, places
    finally:
        _end(service)


def _end(service: subprocess.Popen[str]) -> None:
    family = [psutil.Process(service.pid), *psutil.Process(service.pid).children(recursive=True)]
    service.terminate()
    _, alive = psutil.wait_procs(family, timeout=5)
    for process in alive:
        process.kill()
    service.wait()


def _used(pid: int) -> float:
    """CPU seconds of a process and its children, those that have ended included."""
    total = 0.0
    process = psutil.Process(pid)
    for one in (process, *process.children(recursive=True)):
        times = one.cpu_times()
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _memory(pid: int) -> int:
    process = psutil.Process(pid)
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))


def _heard(
    address: str, service: int, *, until: subprocess.Popen[str], keys: Path | None
) -> tuple[list[tuple[float, str, int]], list[int]]:
    """Subscribe until the sender is done.

    Returns:
        When a prediction came, of which job, how many of its messages it counts in; and the
        service's memory from time to time.
    """
    context = zmq.Context()
    socket = context.socket(zmq.SUB)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.setsockopt(zmq.RCVHWM, 0)
    if keys is not None:
        client_keys(keys).use(socket)
    socket.connect(address)
    heard: list[tuple[float, bytes]] = []
    memory = [_memory(service)]
    sampled = time.monotonic()
    while True:
        if socket.poll(2000):
            heard.append((time.monotonic(), socket.recv_multipart()[1]))
        elif until.poll() is not None:
            break
        if time.monotonic() - sampled > SAMPLE:
            sampled = time.monotonic()
            memory.append(_memory(service))
    context.destroy(linger=0)
    said = ((moment, json.loads(text)) for moment, text in heard)
    return [(moment, one["job"], one["messages"]) for moment, one in said], memory


def _latencies(sent: np.ndarray, heard: list[tuple[float, str, int]], jobs: int) -> np.ndarray:
    """How long each message waited for a prediction that counts it in."""
    found = []
    by_job: dict[str, list[tuple[int, float]]] = {}
    for moment, job, counted in heard:
        by_job.setdefault(job, []).append((counted, moment))
    for number in range(jobs):
        mine = sent[number::jobs]
        counts, moments = (np.array(part) for part in zip(*by_job[f"job{number}"], strict=True))
        first = np.searchsorted(counts, np.arange(1, len(mine) + 1))
        # What was sent before the subscriber was connected was answered, but not heard.
        answered = (first < len(moments)) & (mine > heard[0][0])
        found.append(moments[first[answered]] - mine[answered])
    return np.concatenate(found)


if __name__ == "__main__":
    main()
