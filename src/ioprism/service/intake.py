"""Take messages in: bounded, once each, and only what can be understood."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable

from ioprism.readers.signals.messages import (
    MalformedMessageError,
    Piece,
    parse_message,
    parse_value,
)
from ioprism.service.counts import Counts
from ioprism.service.jobs import Job, Jobs

REMEMBERED = 2**16  # messages among which duplicates are found
DIGEST = 12  # bytes


class Intake:
    """Turns messages into pieces of the jobs' signals, and counts what it drops."""

    def __init__(
        self,
        jobs: Jobs,
        counts: Counts,
        *,
        direction: str,
        largest: int,
        clock: Callable[[], float],
    ) -> None:
        self.counts = counts
        self.largest = largest  # bytes of a message
        self.clock = clock
        self.changed: dict[str, Job] = {}  # jobs with new pieces since they were last settled
        self._jobs = jobs
        self._direction = direction
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def receive(self, raw: bytes, *, job: str) -> bool:
        """Take one message that came over the network; return whether it counted."""
        counts = self.counts
        counts.messages += 1
        counts.received_bytes += len(raw)
        if len(raw) > self.largest:
            counts.oversized += 1
            return False
        if self._is_duplicate(raw):
            counts.duplicates += 1
            return False
        try:
            pieces = parse_message(raw)
        except MalformedMessageError:
            counts.malformed += 1
            return False
        self._sort(pieces, job)
        return True

    def receive_value(self, value: object, *, job: str) -> bool:
        """Take one value of a followed file; return whether it counted."""
        self.counts.messages += 1
        try:
            pieces = parse_value(value)
        except MalformedMessageError:
            self.counts.malformed += 1
            return False
        self._sort(pieces, job)
        return True

    def settle(self) -> list[Job]:
        """Add what was taken in to the signals; return the jobs that have something new."""
        changed = list(self.changed.values())
        self.changed.clear()
        for job in changed:
            job.settle(self.counts)
        return changed

    def digests(self) -> list[bytes]:
        """Fingerprints of recent messages."""
        return list(self._seen)

    def restore(self, digests: list[bytes]) -> None:
        """Go on with the fingerprints of messages received before."""
        self._seen = OrderedDict((bytes(digest), None) for digest in digests)

    def _sort(self, pieces: list[Piece], default: str) -> None:
        now = self.clock()
        heard: set[str] = set()
        for piece in pieces:
            if self._direction != "both" and piece.direction not in (None, self._direction):
                continue
            job = self._jobs.hear(piece.job or default, now)
            job.take(piece)
            self.changed[job.name] = job
            if job.name not in heard:
                heard.add(job.name)
                job.messages += 1
                job.arrivals.append(now)

    def _is_duplicate(self, raw: bytes) -> bool:
        digest = hashlib.blake2b(raw, digest_size=DIGEST).digest()
        if digest in self._seen:
            return True
        self._seen[digest] = None
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return False
