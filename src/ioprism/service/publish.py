"""Tell others over ZeroMQ: a PUB socket for subscribers, 16 bytes for FTIO's clients."""

from __future__ import annotations

import math
import struct
from typing import Any

from ioprism.service.addresses import zeromq
from ioprism.service.answer import Answer
from ioprism.service.keys import ServerKeys
from ioprism.service.pull import bound

QUEUE = 1000  # messages; a subscriber that is slower loses the oldest
PAIR = struct.Struct("dd")  # as a C program on this machine has it: frequency in Hz, confidence


class Publisher:
    """Binds; every message is the job's name and the prediction as JSON."""

    def __init__(self, context: Any, address: str, *, keys: ServerKeys | None = None) -> None:  # noqa: ANN401 - zmq is loaded late
        self._zmq = zeromq("ioprism watch --publish")
        self._socket = context.socket(self._zmq.PUB)
        self._socket.setsockopt(self._zmq.LINGER, 200)
        self._socket.setsockopt(self._zmq.SNDHWM, QUEUE)
        self.address = bound(self._socket, address, self._zmq, keys)

    def hear(self, answer: Answer) -> None:
        """Send one prediction to all subscribers."""
        self._socket.send_multipart([answer.job.encode("utf-8", "replace"), answer.json.encode()])

    def close(self) -> None:
        """Stop publishing."""
        self._socket.close()


class Replier:
    """Connects to a client of FTIO's predictor and pushes it two numbers a prediction."""

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
