"""Answer the Metric Proxy: it sends all its metrics and waits for their periods."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import msgpack
import numpy as np

from ioprism.errors import IoprismError
from ioprism.formats.signals.messages import MalformedMessageError, Problem, unpack
from ioprism.formats.signals.monitors import metric_series, metrics_in
from ioprism.live.access import ServerKeys, is_exposed, zeromq
from ioprism.live.metrics import Counts
from ioprism.live.sources import bind_socket
from ioprism.model.arrays import TimeSeries
from ioprism.model.trace import Completeness
from ioprism.periodicity.detect import Options
from ioprism.periodicity.of_signal import signal_periodicity
from ioprism.periodicity.sampling import sample

POLL_MS = 500
NEW_ADDRESS = b"New Address: "
FREQUENCY_FLAGS = ("-f", "--freq")
COMPONENT_FLAGS = ("-n", "--n_freq")


class ReplyServer(threading.Thread):
    """A REP socket in a separate thread, so that no watched job waits for it."""

    def __init__(
        self,
        context: Any,  # noqa: ANN401 - zmq is loaded late
        address: str,
        *,
        largest: int,
        counts: Counts,
        keys: ServerKeys | None = None,
    ) -> None:
        super().__init__(name="metric-proxy", daemon=True)
        self._zmq = zeromq("ioprism watch --metric-proxy")
        self._context = context
        self._largest = largest
        self._counts = counts
        self._keys = keys
        self._announce_end = threading.Event()  # the name _stop is taken by Thread
        self._socket = self._listen(address)
        self.start()

    def _listen(self, address: str) -> Any:  # noqa: ANN401 - zmq is loaded late
        socket = self._context.socket(self._zmq.REP)
        socket.setsockopt(self._zmq.LINGER, 0)
        socket.setsockopt(self._zmq.MAXMSGSIZE, self._largest)
        self.address = bind_socket(socket, address, self._zmq, self._keys)
        return socket

    def run(self) -> None:
        """Answer until `close`."""
        while not self._announce_end.is_set():
            if self._socket.poll(POLL_MS):
                raw = self._socket.recv()
                self._counts.messages += 1
                if raw.startswith(NEW_ADDRESS):
                    self._move(raw[len(NEW_ADDRESS) :].decode("utf-8", "replace"))
                else:
                    self._socket.send(answer(raw))
        self._socket.close()

    def close(self) -> None:
        """Stop answering."""
        self._announce_end.set()
        self.join()

    def _move(self, address: str) -> None:
        """Listen elsewhere on this machine from now on."""
        if is_exposed(address) or not address.startswith("tcp://"):
            self._socket.send(_error("only loopback addresses are allowed"))
            return
        old = self._socket
        old.send(b"Address updated")
        try:
            self._socket = self._listen(address)
            old.close(linger=1000)
        except IoprismError:
            self._counts.malformed += 1


def answer(raw: bytes) -> bytes:
    """Return the reply to one request."""
    if raw == b"ping":
        return b"pong"
    try:
        request = unpack(raw)
        arguments = [str(item) for item in request.get("argv", [])]
        series = metric_series(metrics_in(request), Completeness())
        replies = list(_replies(series, arguments))
    except (*Problem, MalformedMessageError) as error:
        return _error(f"Invalid request: {error}")
    except IoprismError as error:
        return _error(str(error))
    packed: bytes = msgpack.packb(replies)
    return packed


def _error(message: str) -> bytes:
    packed: bytes = msgpack.packb({"error": message})
    return packed


def _replies(every: Iterator[TimeSeries], arguments: list[str]) -> Iterator[dict[str, Any]]:
    frequency = _number(arguments, FREQUENCY_FLAGS)
    components = int(_number(arguments, COMPONENT_FLAGS) or 1)
    for series in every:
        try:
            yield _reply(series, frequency if frequency and frequency > 0 else None, components)
        except IoprismError as error:
            yield {"metric": series.name, "error": str(error)}


def _number(arguments: list[str], flags: tuple[str, ...]) -> float | None:
    places = [i for i, text in enumerate(arguments[:-1]) if text in flags]
    return float(arguments[places[-1] + 1]) if places else None


def _reply(series: TimeSeries, frequency: float | None, components: int) -> dict[str, Any]:
    """The fields that clients of FTIO's server expect."""
    signal = sample(series.steps, frequency=frequency)
    detected = signal_periodicity(signal, options=Options("auto"), components=max(1, components))
    waves = [wave for wave in detected.components if wave.frequency > 0.0]
    power = sum(wave.amplitude**2 for wave in waves) or 1.0
    period = detected.period
    return {
        "metric": series.name,
        "dominant_freq": [period.frequency] if period else [],
        "conf": [period.confidence] if period else [],
        "amp": [period.amplitude] if period else [],
        "phi": [period.phase] if period else [],
        "t_start": signal.start,
        "t_end": signal.end,
        "total_bytes": float((series.steps.values * np.diff(series.steps.edges)).sum()),
        "ranks": 32,
        "freq": signal.frequency,
        "top_freq": {
            "freq": [wave.frequency for wave in waves],
            "conf": [wave.amplitude**2 / power for wave in waves],
            "periodicity": [1.0 / wave.frequency for wave in waves],
            "amp": [wave.amplitude for wave in waves],
            "phi": [wave.phase for wave in waves],
        },
        "n_samples": len(signal.values),
        "wave_names": [
            f"{wave.amplitude:g}*cos(2π*{wave.frequency:g}*t{wave.phase:+g})" for wave in waves
        ],
        "false_alarm_probability": period.false_alarm_probability if period else None,
    }
