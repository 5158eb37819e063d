"""Tell others what was predicted, without waiting for any of them.

The JSON of a prediction goes to subscribers over a PUB socket of ZeroMQ and to HTTP listeners
through bounded queues; clients of FTIO get 16 bytes.
"""

from __future__ import annotations

import json
import math
import queue
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ioprism.live.access import ServerKeys, zeromq
from ioprism.live.metrics import Counts
from ioprism.live.sources import bind_socket
from ioprism.model.result import pick
from ioprism.periodicity.tracker import Prediction
from ioprism.reports import to_json


@dataclass(frozen=True, eq=False)
class Answer:
    """A prediction for a job, and how many of its messages it includes."""

    job: str
    prediction: Prediction
    messages: int
    ranks: int | None

    def values(self) -> dict[str, Any]:
        """Return the prediction as plain values."""
        said = self.prediction
        return {
            "job": self.job,
            "messages": self.messages,
            "ranks": self.ranks,
            "time": said.time,
            "window": list(said.window),
            "period": None if said.period is None else said.period.to_dict(),
            **pick(
                said,
                "next_phase",
                "probabilities",
                "direction",
                "phase_distance",
                "final",
                "change",
            ),
        }

    @cached_property
    def json(self) -> str:
        """The prediction as one line of ASCII JSON, made once for all listeners."""
        values = self.values()
        try:
            return json.dumps(values, allow_nan=False).replace("\x7f", "\\u007f")
        except ValueError:  # a number that JSON does not know; rare, and expensive to look for
            return to_json.line(values)


Listener = Callable[[Answer], None]


QUEUE = 1000  # messages; a subscriber or listener that is slower loses the oldest
PAIR = struct.Struct("dd")  # as a C program on this machine has it: frequency in Hz, confidence


def _outlet(context: Any, kind: int, zmq: Any) -> Any:  # noqa: ANN401 - zmq is loaded late
    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, 200)
    socket.setsockopt(zmq.SNDHWM, QUEUE)
    return socket


class Publisher:
    """Binds; every message is the job's name and the prediction as JSON."""

    def __init__(self, context: Any, address: str, *, keys: ServerKeys | None = None) -> None:  # noqa: ANN401 - zmq is loaded late
        zmq = zeromq("ioprism watch --publish")
        self._socket = _outlet(context, zmq.PUB, zmq)
        self.address = bind_socket(self._socket, address, zmq, keys)

    def hear(self, answer: Answer) -> None:
        """Send one prediction to all subscribers."""
        self._socket.send_multipart([answer.job.encode("utf-8", "replace"), answer.json.encode()])

    def close(self) -> None:
        """Stop publishing."""
        self._socket.close()


class Replier:
    """Connects to a client of FTIO's predictor and pushes it two numbers per prediction."""

    def __init__(self, context: Any, address: str) -> None:  # noqa: ANN401 - zmq is loaded late
        self._zmq = zeromq("ioprism watch --reply")
        self._socket = _outlet(context, self._zmq.PUSH, self._zmq)
        self._socket.connect(address)

    def hear(self, answer: Answer) -> None:
        """Send frequency and confidence; a client that does not listen is not waited for."""
        period = answer.prediction.period
        pair = (math.nan, math.nan) if period is None else (period.frequency, period.confidence)
        try:
            self._socket.send(PAIR.pack(*pair), self._zmq.NOBLOCK)
        except self._zmq.Again:
            return

    def close(self) -> None:
        """Disconnect."""
        self._socket.close()


MOST_LISTENERS = 64

Events = queue.Queue[str | None]  # None: the service ends


class Broker:
    """Keeps one bounded queue per listener."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._lock = threading.Lock()
        self._listeners: list[tuple[str | None, Events]] = []

    def hear(self, answer: Answer) -> None:
        """Queue one prediction for all who asked for its job."""
        with self._lock:
            chosen = [waiting for job, waiting in self._listeners if job in (None, answer.job)]
        for waiting in chosen:
            self._put(waiting, answer.json)

    @contextmanager
    def listening(self, job: str | None) -> Iterator[Events | None]:
        """Yield a queue of events, of one job or all; None if there are too many connections."""
        waiting: Events = queue.Queue(QUEUE)
        with self._lock:
            full = len(self._listeners) >= MOST_LISTENERS
            if not full:
                self._listeners.append((job, waiting))
        try:
            yield None if full else waiting
        finally:
            with self._lock:
                self._listeners = [one for one in self._listeners if one[1] is not waiting]

    def close(self) -> None:
        """Tell all listeners that the service ends."""
        with self._lock:
            everyone = list(self._listeners)
        for _, waiting in everyone:
            self._put(waiting, None)

    def _put(self, waiting: Events, event: str | None) -> None:
        while True:
            try:
                waiting.put_nowait(event)
                return
            except queue.Full:
                self._counts.listeners_lagging += 1
                with suppress(queue.Empty):
                    waiting.get_nowait()
