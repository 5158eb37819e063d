"""Take messages in: bounded, once each, and only what can be understood."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from ioprism.formats.signals.messages import (
    MOST_NAME,
    MalformedMessageError,
    Piece,
    parse_alike,
    parse_value,
)
from ioprism.live.jobs import Job, Jobs
from ioprism.live.metrics import Counts

REMEMBERED = 2**16  # messages among which duplicates are found
DIGEST = 12  # bytes


class Message(NamedTuple):
    """What came over the network."""

    job: str  # that it belongs to, if it does not say
    raw: bytes
    sender: str = ""  # as far as it is known


class Intake:
    """Turns messages into pieces of the jobs' signals, and counts what it drops."""

    def __init__(self, jobs: Jobs, counts: Counts, *, direction: str, largest: int) -> None:
        self.counts = counts
        self.largest = largest  # bytes of a message
        self.changed: dict[str, Job] = {}  # jobs with new pieces since they were last finalized
        self._jobs = jobs
        self._direction = direction
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def receive(self, messages: Iterable[Message], *, arrived: float) -> list[Message]:
        """Take messages that came over the network; return those that counted.

        Args:
            messages: each with the job it belongs to, if it does not say.
            arrived: monotonic seconds, from when on they have waited.
        """
        wanted = [message for message in messages if self._is_wanted(message)]
        counted: list[Message] = []
        for _, alike in groupby(wanted, key=_look):
            counted += self._take(list(alike), arrived)
        return counted

    def receive_value(self, value: object, *, job: str) -> bool:
        """Take one value of a followed file; return whether it counted."""
        self.counts.messages += 1
        try:
            pieces = parse_value(value)
        except MalformedMessageError:
            self.counts.malformed += 1
            return False
        self._sort(pieces, job, arrived=time.monotonic())
        return True

    def finalize(self) -> list[Job]:
        """Add what was taken in to the signals; return the jobs that have something new."""
        changed = list(self.changed.values())
        self.changed.clear()
        for job in changed:
            job.finalize(self.counts)
        return changed

    def digests(self) -> list[bytes]:
        """Fingerprints of recent messages."""
        return list(self._seen)

    def restore(self, digests: list[bytes]) -> None:
        """Resume with the fingerprints of messages received before."""
        self._seen = OrderedDict((bytes(digest), None) for digest in digests)

    def _take(self, alike: list[Message], arrived: float) -> list[Message]:
        """Take messages that look alike, together if they are; return those that counted."""
        try:
            pieces = parse_alike([message.raw for message in alike])
        except MalformedMessageError:
            if len(alike) > 1:
                return [one for single in alike for one in self._take([single], arrived)]
            self.counts.malformed += 1
            return []
        first = alike[0]
        self._sort(pieces, first.job, arrived=arrived, messages=len(alike), sender=first.sender)
        return alike

    def _sort(
        self,
        pieces: list[Piece],
        default: str,
        *,
        arrived: float,
        messages: int = 1,
        sender: str = "",
    ) -> None:
        heard: set[str] = set()
        for piece in pieces:
            if self._direction != "both" and piece.direction not in (None, self._direction):
                continue
            name = piece.job or default
            known = len(name) <= MOST_NAME
            job = self._jobs.hear(name, time.monotonic(), sender=sender) if known else None
            if job is None:
                self.counts.refused += 1
                continue
            job.take(piece)
            self.changed[job.name] = job
            if job.name not in heard:
                heard.add(job.name)
                job.messages += messages
                job.waiting[arrived] += messages

    def _is_wanted(self, message: Message) -> bool:
        counts, raw = self.counts, message.raw
        counts.messages += 1
        counts.received_bytes += len(raw)
        if len(raw) > self.largest:
            counts.oversized += 1
            return False
        if self._is_duplicate(message):
            counts.duplicates += 1
            return False
        return True

    def _is_duplicate(self, message: Message) -> bool:
        digest = _digest(message)
        if digest in self._seen:
            return True
        self._seen[digest] = None
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return False


def _digest(message: Message) -> bytes:
    made = hashlib.blake2b(message.raw, digest_size=DIGEST)
    made.update(b"\xff" + message.job.encode("utf-8", "replace"))  # a byte that no name has
    return made.digest()


def _look(message: Message) -> tuple[str, str, int]:
    return message.job, message.sender, len(message.raw)
