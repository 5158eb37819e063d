"""Hand events to everyone who listens over HTTP, without waiting for anyone."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ioprism.service.answer import Answer
from ioprism.service.counts import Counts

MOST_LISTENERS = 64
WAITING = 256  # events; a listener that is slower loses the oldest

Events = queue.Queue[str | None]  # None: the service ends


class Broker:
    """Keeps one bounded queue a listener."""

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
