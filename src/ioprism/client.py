"""For applications and schedulers: receive predictions of `ioprism watch`, and report to it.

>>> next_phase("http://127.0.0.1:8080/TOKEN", job="climate")  # doctest: +SKIP
ExpectedPhase(start=120.0, end=124.0, bytes=4e9, confidence=0.97)
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ioprism.errors import ServiceError, UsageError
from ioprism.live.access import PATIENCE, client_keys, zeromq
from ioprism.periodicity.results import ExpectedPhase
from ioprism.scheduling.policies import Turn

LINGER_MS = 2000


@dataclass(frozen=True, slots=True)
class Forecast:
    """One prediction of one job."""

    job: str
    time: float  # seconds since the job started
    period: float | None  # seconds, or None without a period
    next_phase: ExpectedPhase | None
    changed: bool  # whether a period began, changed or ended
    details: Mapping[str, Any]  # all values of the service's answer


def next_phase(url: str, *, job: str | None = None) -> ExpectedPhase | None:
    """Ask a service when a job's next phase is due; None if it has no period.

    Args:
        url: what `ioprism watch --http` says, such as ``http://127.0.0.1:8080/TOKEN``.
        job: the name of the job; not needed if there is only one.

    Raises:
        ServiceError: the service does not answer, or does not know the job.
    """
    with _open_url(url, "next-phase", PATIENCE, job=job) as answer:
        return _phase(json.load(answer)["next_phase"])


def schedule(url: str, *, job: str | None = None, wants: bool | None = None) -> list[Turn]:
    """Ask a service who may do I/O now.

    Args:
        url: what `ioprism watch --http` says.
        job: only this job.
        wants: whether the job wants to do I/O, or has done it; None only looks. A job that wants
            to asks again before its turn's `until` is over.

    Raises:
        ServiceError: the service does not answer.
    """
    wish = None if wants is None else str(int(wants))
    with _open_url(url, "schedule", PATIENCE, job=job, wants=wish) as answer:
        turns = json.load(answer)["turns"]
    return [Turn(**turn) for turn in turns]


def subscribe(
    address: str,
    *,
    job: str | None = None,
    timeout: float | None = None,
    keys: str | Path | None = None,
) -> Generator[Forecast, None, None]:
    """Yield predictions as they are made.

    Args:
        address: of `--publish` (``tcp://…``) or of `--http` (``http://…``).
        job: only of this job.
        timeout: seconds of silence after which to stop; None waits for ever.
        keys: the file or folder that `ioprism watch --keygen` made; TCP needs it.

    Raises:
        ServiceError: the service does not answer.
    """
    web = address.startswith(("http://", "https://"))
    texts = _events(address, job, timeout) if web else _published_texts(address, job, timeout, keys)
    for text in texts:
        forecast = _forecast(json.loads(text))
        if job in (None, forecast.job):
            yield forecast


class Reporter:
    """Tells a service what the application has moved.

    `keys` is the file or folder that `ioprism watch --keygen` made; TCP needs it.

    >>> with Reporter("tcp://127.0.0.1:5555", job="climate") as reporter:  # doctest: +SKIP
    ...     reporter.report(start=[0.0], end=[2.5], moved=[4e9])
    """

    def __init__(
        self,
        address: str,
        *,
        job: str | None = None,
        ranks: int = 1,
        keys: str | Path | None = None,
    ) -> None:
        zmq = zeromq("ioprism.client.Reporter")
        self._job, self._ranks = job, ranks
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PUSH)
        self._socket.setsockopt(zmq.LINGER, LINGER_MS)
        _show_keys(self._socket, keys)
        self._socket.connect(address)

    def report(
        self, *, start: Sequence[float], end: Sequence[float], moved: Sequence[float]
    ) -> None:
        """Send requests that are done: start and end in seconds, and bytes moved."""
        import msgpack

        pairs = zip(start, end, moved, strict=True)
        rates = [amount / max(last - first, 1e-9) for first, last, amount in pairs]
        message: dict[str, Any] = {
            "ranks": self._ranks,
            "b": rates,
            "ts": list(start),
            "te": list(end),
        }
        if self._job is not None:
            message["job"] = self._job
        self._socket.send(msgpack.packb(message))

    def close(self) -> None:
        """Wait a moment until all is sent, and disconnect."""
        self._context.destroy(linger=LINGER_MS)

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _forecast(said: Mapping[str, Any]) -> Forecast:
    period = said["period"]
    return Forecast(
        job=said["job"],
        time=said["time"],
        period=None if period is None else period["seconds"],
        next_phase=_phase(said["next_phase"]),
        changed=said["change"] is not None,
        details=said,
    )


def _phase(values: Mapping[str, Any] | None) -> ExpectedPhase | None:
    return None if values is None else ExpectedPhase(**values)


def _published_texts(
    address: str, job: str | None, timeout: float | None, keys: str | Path | None
) -> Iterator[str]:
    zmq = zeromq("ioprism.client.subscribe")
    context = zmq.Context()
    try:
        socket = context.socket(zmq.SUB)
        socket.setsockopt(zmq.SUBSCRIBE, b"" if job is None else job.encode())
        _show_keys(socket, keys)
        socket.connect(address)
        while socket.poll(None if timeout is None else timeout * 1000):
            _, text = socket.recv_multipart()
            yield text.decode()
    finally:
        context.destroy(linger=0)


def _events(address: str, job: str | None, timeout: float | None) -> Iterator[str]:
    with _open_url(address, "events", timeout, job=job) as answer:
        heard = time.monotonic()
        with suppress(TimeoutError):
            for line in answer:
                if line.startswith(b"data: "):
                    yield line[len(b"data: ") :].decode()
                    heard = time.monotonic()
                elif timeout is not None and time.monotonic() - heard > timeout:
                    return  # there were signs of life alone


def _open_url(address: str, path: str, timeout: float | None, **asked: str | None) -> Any:  # noqa: ANN401 - a response
    """Ask a service; what is None is not asked for."""
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    url = f"{address.rstrip('/')}/{path}{'?' if query else ''}{query}"
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"{url!r} is not a web address.\nHint: write http://127.0.0.1:PORT.")
    try:
        return urllib.request.urlopen(url, timeout=timeout)  # noqa: S310 - the scheme is checked
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(1000).decode("utf-8", "replace")
        with suppress(ValueError, KeyError, TypeError):
            said = json.loads(said)["error"]
        raise ServiceError(f"{url}: {said} (HTTP status {error.code}).") from error
    except (urllib.error.URLError, OSError) as error:
        raise ServiceError(
            f"{url} does not answer: {error}.\nHint: is `ioprism watch --http` running there?"
        ) from error


def _show_keys(socket: Any, keys: str | Path | None) -> None:  # noqa: ANN401 - zmq is loaded late
    if keys is not None:
        client_keys(Path(keys)).use(socket)
