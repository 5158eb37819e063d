"""``ioprism replay``: send a trace as the live stream that its job would have sent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgpack
import numpy as np
import polars as pl

from ioprism.command import options, output
from ioprism.command.options import NumberRange, option
from ioprism.errors import NotEnoughDetailError, OutputError, UsageError
from ioprism.live.access import PATIENCE, ClientKeys, client_keys, endpoint, zeromq
from ioprism.model.arrays import FloatArray
from ioprism.model.trace import Trace, deepest
from ioprism.units import format_counted

SHORTEST = 1e-6  # seconds
# Seconds in one message: of real time, or of the job's if sent as fast as possible.
BATCH = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class ReplayRequests:
    """What a trace moves, in the order in which it is done."""

    start: FloatArray  # seconds
    end: FloatArray
    bytes: FloatArray
    ranks: int


def requests_of_trace(trace: Trace, *, direction: str) -> ReplayRequests:
    """Return the requests of a trace in the order in which they end.

    Raises:
        NotEnoughDetailError: there are none.
    """
    parts = [np.zeros((3, 0))]
    for series in trace.series.values():
        if direction in ("both", series.direction):
            edges = series.steps.edges
            parts.append(np.stack([edges[:-1], edges[1:], series.steps.values * np.diff(edges)]))
    if trace.partitions:
        moving = pl.col("bytes") > 0
        if direction != "both":
            moving &= pl.col("operation") == direction
        events = trace.events().filter(moving)
        # A request of an upper layer is seen again in the layers below it.
        lowest = deepest(events["layer"].unique().to_list())
        chosen = events.filter(pl.col("layer").is_in(lowest))
        parts.append(chosen.select(pl.col("start", "end", "bytes").cast(pl.Float64)).to_numpy().T)
    start, end, moved = np.concatenate(parts, axis=1)
    if not len(start):
        raise NotEnoughDetailError(
            needed="reads or writes with their times",
            has="none in this direction",
            hint="choose another --direction, or trace with DXT enabled (DXT_ENABLE_IO_TRACE=1).",
        )
    order = np.argsort(end, kind="stable")
    end = np.maximum(end, start + SHORTEST)
    return ReplayRequests(start[order], end[order], moved[order], trace.job.ranks or 1)


def stream_messages(
    done: ReplayRequests, *, batch: float, job: str
) -> Iterator[tuple[float, bytes]]:
    """Yield what the application would send, and when, in seconds since it started.

    Args:
        done: the requests of a trace.
        batch: seconds of the job's time in one message.
        job: the name to send.
    """
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


def send_stream(stream: Iterator[tuple[float, bytes]], sink: PushSink, *, speed: float) -> int:
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
        self._socket.setsockopt(self._zmq.SNDTIMEO, round(1000 * PATIENCE))
        self._socket.setsockopt(self._zmq.LINGER, round(1000 * PATIENCE))
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
        """Send one message, waiting for a while until it is received."""
        try:
            self._socket.send(message)
        except self._zmq.Again as error:
            self._context.destroy(linger=0)
            raise OutputError(
                f"no service receives messages at {self._address}.\n"
                f"Hint: start `ioprism watch --zmq {self._address}` first; it may need --keys."
            ) from error

    def close(self) -> None:
        """Wait until all is sent."""
        self._context.destroy()


@click.command()
@options.traces
@option(
    "--zmq",
    "address",
    required=True,
    metavar="ADDRESS",
    help="Port or endpoint that `ioprism watch` listens on.",
)
@option(
    "--keys",
    type=click.Path(path_type=Path, exists=True),
    help="Keys made by `ioprism watch --keygen`.",
)
@option(
    "--speed",
    type=NumberRange(min=0.0),
    default=1.0,
    help="Seconds of the job per second of real time; 0 sends as fast as possible.",
)
@option("--batch", type=NumberRange(min=0.0, min_open=True), help="Seconds of the job per message.")
@option(
    "--direction",
    type=click.Choice(["read", "write", "both"]),
    default="both",
    help="Direction to send.",
)
@option("--job", help="Job name to send; by default that of the trace.")
@options.format_name
@options.quiet
def replay(
    paths: tuple[Path, ...],
    *,
    address: str,
    keys: Path | None,
    speed: float,
    batch: float | None,
    direction: str,
    job: str | None,
    format_name: str | None,
    quiet: bool,
) -> None:
    """Send a trace as the live stream its job would have sent.

    Example: ioprism replay run42.darshan --speed 10 --zmq ipc:///tmp/watch.me
    """
    done = requests_of_trace(options.read_job(paths, format_name), direction=direction)
    stream = stream_messages(done, batch=batch or BATCH * (speed or 1.0), job=job or paths[0].name)
    known = None if keys is None else client_keys(keys)
    sent = send_stream(stream, PushSink(endpoint(address), keys=known), speed=speed)
    if not quiet:
        output.say(
            f"sent {format_counted(len(done.start), 'request')} "
            f"in {format_counted(sent, 'message')}"
        )
