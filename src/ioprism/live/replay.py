"""Send a trace as the live stream that its job would have sent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl

from ioprism.errors import NotEnoughDetailError, OutputError, UsageError
from ioprism.live.addresses import zeromq
from ioprism.live.keys import ClientKeys
from ioprism.model.layers import deepest
from ioprism.model.signal import FloatArray
from ioprism.model.trace import Trace

SHORTEST = 1e-6  # seconds
PATIENCE_MS = 10_000  # for somebody to listen


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """What a trace moves, in the order in which it is done."""

    start: FloatArray  # seconds
    end: FloatArray
    bytes: FloatArray
    ranks: int


class Sink(Protocol):
    """Where messages go."""

    def send(self, message: bytes) -> None:
        """Send one message."""
        ...

    def close(self) -> None:
        """Wait until all is sent."""
        ...


def requests(trace: Trace, *, direction: str) -> Requests:
    """Return the requests of a trace by the moment they end, when an application can report them.

    Raises:
        NotEnoughDetailError: there are none.
    """
    parts = [_series(trace, direction)] if trace.series else []
    if trace.partitions:
        parts.append(_calls(trace, direction))
    start, end, moved = (
        np.concatenate([part[i] for part in parts] or [np.zeros(0)]) for i in range(3)
    )
    if not len(start):
        raise NotEnoughDetailError(
            needed="reads or writes with their times",
            has="none in this direction",
            hint="choose another --direction, or trace with DXT enabled (DXT_ENABLE_IO_TRACE=1).",
        )
    order = np.argsort(end, kind="stable")
    end = np.maximum(end, start + SHORTEST)
    return Requests(start[order], end[order], moved[order], trace.job.ranks or 1)


def messages(done: Requests, *, batch: float, job: str) -> Iterator[tuple[float, bytes]]:
    """Yield what the application would send, and when, in seconds of its own time.

    Args:
        done: the requests.
        batch: seconds of the job's time in one message.
        job: the name to send.
    """
    import msgpack

    rate = done.bytes / (done.end - done.start)
    number = np.floor(done.end / batch).astype(np.int64)
    edges = np.flatnonzero(np.diff(number, prepend=number[0] - 1, append=number[-1] + 1))
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = slice(first, last)
        yield (
            float(done.end[last - 1]),
            msgpack.packb(
                {
                    "job": job,
                    "ranks": done.ranks,
                    "b": rate[part].tolist(),
                    "ts": done.start[part].tolist(),
                    "te": done.end[part].tolist(),
                }
            ),
        )


def replay(stream: Iterator[tuple[float, bytes]], sink: Sink, *, speed: float) -> int:
    """Send messages at the right moments; return how many.

    Args:
        stream: moments in seconds, and messages.
        sink: where they go.
        speed: how many seconds of the job pass in one second; 0 for as fast as possible.
    """
    began: float | None = None
    sent = 0
    for moment, message in stream:
        if speed > 0.0:
            now = time.monotonic()
            began = now - moment / speed if began is None else began
            time.sleep(max(0.0, began + moment / speed - now))
        sink.send(message)
        sent += 1
    sink.close()
    return sent


class PushSink:
    """Pushes to a service that listens.

    Raises:
        UsageError: the address cannot be connected to.
    """

    def __init__(self, address: str, *, keys: ClientKeys | None = None) -> None:
        self._zmq = zeromq("ioprism replay --zmq")
        self._address = address
        self._context: Any = self._zmq.Context()
        self._socket = self._context.socket(self._zmq.PUSH)
        self._socket.setsockopt(self._zmq.SNDTIMEO, PATIENCE_MS)
        self._socket.setsockopt(self._zmq.LINGER, PATIENCE_MS)
        self._socket.setsockopt(self._zmq.IMMEDIATE, 1)
        if keys is not None:
            keys.use(self._socket)
        try:
            self._socket.connect(address)
        except self._zmq.ZMQError as error:
            self._context.destroy(linger=0)
            raise UsageError(
                f"cannot connect to {address}: {error}.\n"
                "Hint: give the address that `ioprism watch` prints when it starts."
            ) from error

    def send(self, message: bytes) -> None:
        """Send one message, waiting for a while if nobody takes it."""
        try:
            self._socket.send(message)
        except self._zmq.Again as error:
            self._context.destroy(linger=0)
            raise OutputError(
                f"nobody receives messages at {self._address}.\n"
                f"Hint: start `ioprism watch --zmq {self._address}` first; it may need --keys."
            ) from error

    def close(self) -> None:
        """Wait until all is sent."""
        self._context.destroy()


def _calls(trace: Trace, direction: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    events = trace.events().filter(pl.col("bytes") > 0)
    if direction != "both":
        events = events.filter(pl.col("operation") == direction)
    # A request of an upper layer is seen again in the layers below it.
    lowest = deepest(events["layer"].unique().to_list())
    chosen = events.filter(pl.col("layer").is_in(lowest))
    start, end, moved = (
        chosen[name].cast(pl.Float64).to_numpy() for name in ("start", "end", "bytes")
    )
    return start, end, moved


def _series(trace: Trace, direction: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    fitting = [s for s in trace.series.values() if direction in ("both", s.direction)]
    starts = [series.steps.edges[:-1] for series in fitting]
    ends = [series.steps.edges[1:] for series in fitting]
    moved = [series.steps.values * np.diff(series.steps.edges) for series in fitting]
    empty = [np.zeros(0)]
    return tuple(np.concatenate(part or empty) for part in (starts, ends, moved))  # type: ignore[return-value]
