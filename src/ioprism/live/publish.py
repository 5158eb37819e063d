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
from ioprism.periodicity.tracker import Prediction
from ioprism.reports import to_json


def prediction_values(
    job: str, prediction: Prediction, *, messages: int, ranks: int | None
) -> dict[str, Any]:
    """Return the values of one prediction."""
    return {
        "job": job,
        "messages": messages,
        "ranks": ranks,
        "time": prediction.time,
        "window": list(prediction.window),
        "period": None if prediction.period is None else prediction.period.to_dict(),
        "next_phase": None if prediction.next_phase is None else _fields(prediction.next_phase),
        "probabilities": [_fields(probability) for probability in prediction.probabilities],
        "direction": prediction.direction,
        "phase_distance": prediction.phase_distance,
        "final": prediction.final,
        "change": None if prediction.change is None else _fields(prediction.change),
    }


def prediction_line(job: str, prediction: Prediction, *, messages: int, ranks: int | None) -> str:
    """Return one prediction as one line of ASCII JSON."""
    values = prediction_values(job, prediction, messages=messages, ranks=ranks)
    try:
        return json.dumps(values, allow_nan=False).replace("\x7f", "\\u007f")
    except ValueError:  # a number that JSON does not know; rare, and expensive to look for
        return to_json.line(values)


def _fields(result: object) -> dict[str, Any]:
    """The fields of a result that holds plain values only; `asdict` would copy them, too."""
    return {name: getattr(result, name) for name in result.__slots__}  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class Answer:
    """A prediction for a job, and how many of its messages it includes."""

    job: str
    prediction: Prediction
    messages: int
    ranks: int | None

    @cached_property
    def json(self) -> str:
        """The prediction as one line of JSON, made once for all listeners."""
        return prediction_line(self.job, self.prediction, messages=self.messages, ranks=self.ranks)


Listener = Callable[[Answer], None]


QUEUE = 1000  # messages; a subscriber that is slower loses the oldest
PAIR = struct.Struct("dd")  # as a C program on this machine has it: frequency in Hz, confidence


class Publisher:
    """Binds; every message is the job's name and the prediction as JSON."""

    def __init__(self, context: Any, address: str, *, keys: ServerKeys | None = None) -> None:  # noqa: ANN401 - zmq is loaded late
        self._zmq = zeromq("ioprism watch --publish")
        self._socket = context.socket(self._zmq.PUB)
        self._socket.setsockopt(self._zmq.LINGER, 200)
        self._socket.setsockopt(self._zmq.SNDHWM, QUEUE)
        self.address = bind_socket(self._socket, address, self._zmq, keys)

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
        self._socket = context.socket(self._zmq.PUSH)
        self._socket.setsockopt(self._zmq.LINGER, 200)
        self._socket.setsockopt(self._zmq.SNDHWM, QUEUE)
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
WAITING = 256  # events; a listener that is slower loses the oldest

Events = queue.Queue[str | None]  # None: the service ends


class Broker:
    """Keeps one bounded queue per listener."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._lock = threading.Lock()
        self._listeners: dict[int, tuple[str | None, Events]] = {}
        self._number = 0

    def hear(self, answer: Answer) -> None:
        """Queue one prediction for all who asked for its job."""
        with self._lock:
            chosen = [
                waiting for job, waiting in self._listeners.values() if job in (None, answer.job)
            ]
        for waiting in chosen:
            self._put(waiting, answer.json)

    @contextmanager
    def listening(self, job: str | None) -> Iterator[Events | None]:
        """Yield a queue of events, of one job or all; None if there are too many connections."""
        with self._lock:
            self._number += 1
            number = self._number
            waiting: Events | None = None
            if len(self._listeners) < MOST_LISTENERS:
                waiting = queue.Queue(WAITING)
                self._listeners[number] = (job, waiting)
        try:
            yield waiting
        finally:
            with self._lock:
                self._listeners.pop(number, None)

    def close(self) -> None:
        """Tell all listeners that the service ends."""
        with self._lock:
            everyone = [waiting for _, waiting in self._listeners.values()]
        for waiting in everyone:
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
