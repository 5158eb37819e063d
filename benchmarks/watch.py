"""The live service under load, with a thousand jobs, and idle; beside FTIO's predictor.

A sender in a process of its own pushes messages of 100 intervals over a loopback socket.
"arrival" is from the moment the service has a message to a prediction that counts it in, by
its own histogram; the other latencies are from sending it to a subscriber's having that
prediction, so both sockets, and whatever else the machine does, are part of them.
`IOPRISM_BENCH_SECONDS` sets the length of the load (10 by default, 60 for the claim).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
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

SECONDS = float(os.environ.get("IOPRISM_BENCH_SECONDS", "10"))
IDLE_SECONDS = 5.0
WIDTHS = (24, 12, 12, 10, 10, 10, 9, 9)
FTIO = "ftio-hpc==0.0.9"

SENDER = """
import struct, sys, time
import numpy as np, zmq
address, log = sys.argv[1], sys.argv[5]
rate, seconds, jobs = float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
SIZE, PERIOD = 100, 5.0
item = np.dtype([("kind", "u1"), ("value", ">f8")])
socket = zmq.Context().socket(zmq.PUSH)
socket.connect(address)
each = max(jobs / rate, 0.01) / SIZE  # a message tells what its job did since the last one
offsets = each * np.arange(SIZE)
block = np.zeros((3, SIZE), item)
block["kind"] = 0xCB
def packed(moment, job):
    name = f"job{job}".encode()
    busy = (moment + 0.37 * job) % PERIOD < 1.0
    block["value"][0] = 1e9 if busy else 1e5
    block["value"][1] = moment + offsets
    block["value"][2] = moment + offsets + each
    head = struct.pack(">BH", 0xDC, SIZE)
    parts = [head + block[i].tobytes() for i in range(3)]
    return b"".join([b"\\x84\\xa3job", bytes([0xA0 + len(name)]), name, b"\\xa1b", parts[0],
                     b"\\xa2ts", parts[1], b"\\xa2te", parts[2]])
count = int(rate * seconds)
sent = np.zeros(count)
began = time.monotonic()
for number in range(count):
    due = began + number / rate
    now = time.monotonic()
    if now < due:
        time.sleep(due - now)
    moment = number / rate
    socket.send(packed(moment, number % jobs))
    sent[number] = time.monotonic()
np.save(log, sent)
print(time.monotonic() - began)
socket.close(linger=10000)
"""


def main() -> None:
    row("", "messages/s", "arrival p99", "p50", "p99", "longest", "CPU", "memory", widths=WIDTHS)
    load("one job", rate=10_000, seconds=SECONDS, jobs=1)
    load("1,000 jobs", rate=1_000, seconds=SECONDS, jobs=1000)
    idle()
    beside_ftio()


def load(name: str, *, rate: float, seconds: float, jobs: int) -> None:
    """Send at a rate and print how long predictions take."""
    with (
        tempfile.TemporaryDirectory() as folder,
        watching("--publish", "tcp://127.0.0.1:*", "--http", "0") as (service, places),
    ):
        log = Path(folder) / "sent.npy"
        sender = subprocess.Popen(
            [
                str(OURS),
                "-c",
                SENDER,
                places["messages"],
                str(rate),
                str(seconds),
                str(jobs),
                str(log),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        began = psutil.Process(service.pid).cpu_times()
        heard = _heard(places["predictions"], until=sender)
        cpu = _used(service.pid) - began.user - began.system
        took = float((sender.communicate()[0] or "nan").strip())
        latency = _latencies(np.load(log), heard, jobs)
        memory = psutil.Process(service.pid).memory_info().rss
        arrival = _arrival_p99(places["page"])
    row(
        name,
        f"{rate * seconds / took:,.0f}",
        arrival,
        *(f"{1000 * q:.1f} ms" for q in (*np.quantile(latency, [0.5, 0.99]), latency.max())),
        f"{100 * cpu / took:.0f} %",
        f"{memory / 2**20:.0f} MiB",
        widths=WIDTHS,
    )


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
    """Print what FTIO's predictor costs when idle, and for the same few bursts."""
    python = peer("ftio", FTIO)
    program = python.with_name("predictor")
    command = [str(program), "--zmq", "--zmq_port", "5599", "-e", "no", "-f", "10"]
    with tempfile.TemporaryFile("w+") as said:
        service = subprocess.Popen(command, stdout=said, stderr=said, text=True)
        try:
            time.sleep(8.0)  # it loads for several seconds
            before = _used(service.pid)
            time.sleep(IDLE_SECONDS)
            share = (_used(service.pid) - before) / IDLE_SECONDS
            row("FTIO 0.0.9, idle", "", "", "", "", "", f"{100 * share:.2f} %", "", widths=WIDTHS)
            answers, cost, memory = _bursts_to("tcp://127.0.0.1:5599", service.pid, said)
        finally:
            _end(service)
    row("FTIO 0.0.9, 20 bursts", answers, "", "", "", "", f"{cost:.2f} s", memory, widths=WIDTHS)
    with watching("--publish", "tcp://127.0.0.1:*") as (ours, places):
        _, cost, memory = _bursts_to(places["messages"], ours.pid, None)
    row("ioprism, 20 bursts", "", "", "", "", "", f"{cost:.2f} s", memory, widths=WIDTHS)


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
    answers = ""
    if said is not None:
        said.seek(0)
        answers = f"{said.read().count('Dominant frequency')} answers"
    return answers, cost, f"{memory / 2**20:.0f} MiB"


@contextmanager
def watching(*options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Run `ioprism watch` on a free port; yield it and where it listens."""
    command = [str(OURS), "-m", "ioprism", "watch", "--zmq", "tcp://127.0.0.1:*", *options]
    service = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert service.stderr is not None
    places: dict[str, str] = {}
    expected = 1 + sum(option in ("--publish", "--http") for option in options)
    while len(places) < expected:
        what, _, address = service.stderr.readline().strip().partition(": ")
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
    """CPU seconds of a process and its children."""
    total = 0.0
    process = psutil.Process(pid)
    for one in (process, *process.children(recursive=True)):
        times = one.cpu_times()
        total += times.user + times.system
    return total


def _memory(pid: int) -> int:
    process = psutil.Process(pid)
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))


def _heard(address: str, *, until: subprocess.Popen[str]) -> list[tuple[float, str, int]]:
    """Subscribe until the sender is done: when, which job, how many of its messages counted."""
    context = zmq.Context()
    socket = context.socket(zmq.SUB)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.setsockopt(zmq.RCVHWM, 0)
    socket.connect(address)
    heard: list[tuple[float, bytes]] = []
    while True:
        if socket.poll(2000):
            heard.append((time.monotonic(), socket.recv_multipart()[1]))
        elif until.poll() is not None:
            break
    context.destroy(linger=0)
    said = ((moment, json.loads(text)) for moment, text in heard)
    return [(moment, one["job"], one["messages"]) for moment, one in said]


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
