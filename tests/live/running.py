"""A real `ioprism watch` in a process of its own, and what one does with it."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgpack
import numpy as np
import zmq

PATIENCE = 60.0  # seconds; only a test that fails waits so long
FREE = "tcp://127.0.0.1:*"


class Running:
    """The process, where it listens, and what it prints."""

    def __init__(self, *options: object) -> None:
        command = [sys.executable, "-m", "ioprism", "watch", "--json-lines", *map(str, options)]
        if FREE in options and "--keys" not in options:
            command.append("--unprotected")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.places: dict[str, str] = {}
        self.said: queue.Queue[dict[str, Any]] = queue.Queue()
        self._errors: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._hear, daemon=True).start()
        threading.Thread(target=self._hear_errors, daemon=True).start()

    def place(self, what: str) -> str:
        """Where something listens."""
        while what not in self.places:
            name, _, address = self._errors.get(timeout=PATIENCE).partition(": ")
            self.places[name] = address
        return self.places[what]

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a prediction."""
        while True:
            found = self.said.get(timeout=PATIENCE)
            if wanted(found):
                return found

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.place('page')}{path}", timeout=PATIENCE) as answer:
            return json.load(answer)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal; return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(timeout=PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
        return code

    def _hear(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.said.put(json.loads(line))

    def _hear_errors(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                self._errors.put(line.rstrip("\n"))


@contextmanager
def running(*options: object) -> Iterator[Running]:
    service = Running(*options)
    try:
        yield service
    finally:
        service.end(signal.SIGKILL)


@contextmanager
def sender(address: str) -> Iterator[Callable[[bytes], None]]:
    context = zmq.Context()
    socket = context.socket(zmq.PUSH)
    socket.connect(address)
    try:
        yield socket.send
    finally:
        context.destroy(linger=5000)


def burst(start: float, *, length: float = 2.0, job: str | None = None, ranks: int = 4) -> bytes:
    """One plain message: every rank writes for some seconds."""
    begin = start + 0.001 * np.arange(ranks)
    message = {
        "ranks": ranks,
        "b": [5e8] * ranks,
        "ts": begin.tolist(),
        "te": (begin + length).tolist(),
    }
    packed: bytes = msgpack.packb(message if job is None else {"job": job, **message})
    return packed


def counting(number: int) -> Callable[[dict[str, Any]], bool]:
    """Whether a prediction counts so many messages of its job in."""
    return lambda one: bool(one["messages"] == number)


def in_background(events: Iterator[Any]) -> Callable[[], list[Any]]:
    """Wait for the first of some events in a thread; the answer tells what came so far."""
    found: list[Any] = []
    threading.Thread(target=lambda: found.append(next(events)), daemon=True).start()
    return lambda: found
