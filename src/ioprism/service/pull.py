"""Receive messages over ZeroMQ: a PULL socket that applications push to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from ioprism.errors import UsageError
from ioprism.service.addresses import zeromq
from ioprism.service.intake import Intake, Message
from ioprism.service.journal import Journal

QUEUE = 10_000  # messages; then senders wait
AT_ONCE = 1000  # messages taken before an answer is given
PATIENCE = 0.01  # seconds of taking in before an answer is given


class PullSource:
    """A socket that binds; senders connect and push."""

    def __init__(self, context: Any, address: str, *, job: str, largest: int) -> None:  # noqa: ANN401 - zmq is loaded late
        self._zmq = zeromq("ioprism watch --zmq")
        self.job = job
        self.socket = context.socket(self._zmq.PULL)
        self.socket.setsockopt(self._zmq.LINGER, 0)
        self.socket.setsockopt(self._zmq.RCVHWM, QUEUE)
        # A message much above the limit never reaches memory: its sender is cut off.
        self.socket.setsockopt(self._zmq.MAXMSGSIZE, 4 * largest)
        self.address = bound(self.socket, address, self._zmq)
        self.empty_at = time.monotonic()  # when nothing waited, the last time it was asked

    def read(self, intake: Intake, journal: Journal | None) -> bool:
        """Take what has arrived; return whether there may be more.

        What waits may have arrived as early as right after the socket was last found empty.
        """
        arrived = self.empty_at
        counted = intake.receive(self._waiting(intake.largest), arrived=arrived)
        if journal is not None:
            for job, raw in counted:
                journal.append(job, raw)
        return self.empty_at == arrived

    def _waiting(self, most_bytes: int) -> Iterator[Message]:
        """Messages that wait, up to a number and size that can be answered soon."""
        until, size = time.monotonic() + PATIENCE, 0
        for _ in range(AT_ONCE):
            try:
                frames = self.socket.recv_multipart(self._zmq.NOBLOCK)
            except self._zmq.Again:
                self.empty_at = time.monotonic()
                return
            job, raw = self._named(frames)
            yield job, raw
            size += len(raw)
            if size > most_bytes or time.monotonic() > until:
                return

    def close(self) -> None:
        """Stop listening."""
        self.socket.close()

    def _named(self, frames: list[bytes]) -> Message:
        """A message of two parts begins with the name of its job."""
        if len(frames) != 2:
            return self.job, frames[-1]
        return frames[0][:200].decode("utf-8", "replace") or self.job, frames[1]


def bound(socket: Any, address: str, zmq: Any) -> str:  # noqa: ANN401 - zmq is loaded late
    """Bind a socket; return where it really listens.

    Raises:
        UsageError: the address cannot be listened on.
    """
    try:
        socket.bind(address)
    except zmq.ZMQError as error:
        socket.close()
        raise UsageError(
            f"cannot listen on {address}: {error}.\n"
            "Hint: choose another port; tcp://127.0.0.1:* takes any that is free."
        ) from error
    return str(socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode())
