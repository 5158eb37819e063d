"""Take messages in, bounded and once each, and keep the jobs that they belong to."""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from ioprism.formats.signals.messages import (
    MOST_NAME,
    MalformedMessageError,
    Piece,
    parse_alike,
    parse_value,
)
from ioprism.live.metrics import Counts
from ioprism.model.arrays import FloatArray, median
from ioprism.periodicity.stream_buffers import CODES, Codes
from ioprism.periodicity.tracker import Prediction, Tracker, TrackerSettings
from ioprism.units import DAY

FURTHEST = 30 * DAY  # seconds; what is further from the signal is taken for an error
LATEST = 1e11  # seconds, beyond any clock
USUAL_GAP = 20.0  # seconds between messages; a job that sends more rarely is waited for longer
LOOK_AGAIN = 1.0  # seconds until one more look for a job that can go
LEAST_SILENCE = 2.0  # seconds, before a job may be over
FAR_IN_A_ROW = 8  # batches far off in a row, after which the clock was reset


class WatchedJob:
    """One job: what it has sent, and what follows from it."""

    def __init__(self, name: str, tracker: Tracker) -> None:
        self.name = name
        self.tracker = tracker
        self.messages = 0
        self.ranks: int | None = None
        self.heard = 0.0  # monotonic seconds
        self.longest_gap = 0.0  # seconds between two messages
        self.sender = ""  # who was the first to speak of it
        self.answered_at = -math.inf  # monotonic seconds
        self.postponed: float | None = None  # monotonic seconds, since when its analysis waits
        self.waiting: Counter[float] = Counter()  # messages without an answer, by their arrival
        self.concluded = False  # whether the answer for the whole job was given
        self._pieces: list[Piece] = []
        self._far = 0

    @property
    def latest(self) -> Prediction | None:
        """The last answer."""
        return self.tracker.latest

    def take(self, piece: Piece) -> None:
        """Keep a piece until the next `finalize`."""
        self.concluded = False
        self._pieces.append(piece)
        self.ranks = max(self.ranks or 0, piece.ranks or 0) or None

    def finalize(self, counts: Counts) -> None:
        """Add all that waits to the signal, leaving out what cannot be true."""
        if not self._pieces:
            return
        start = np.concatenate([piece.start for piece in self._pieces])
        end = np.concatenate([piece.end for piece in self._pieces])
        amount = np.concatenate([piece.amount for piece in self._pieces])
        kinds = [np.full(len(piece.start), CODES.get(piece.direction, 0), np.int8)
                 for piece in self._pieces]  # fmt: skip
        codes = np.concatenate(kinds)
        self._pieces.clear()
        with np.errstate(invalid="ignore"):
            sound = np.isfinite(amount) & (amount >= 0.0) & (end >= start)
            sound &= (np.abs(start) < LATEST) & (np.abs(end) < LATEST)
        if not sound.all():
            counts.unsound += len(sound) - int(sound.sum())
            start, end, amount, codes = start[sound], end[sound], amount[sound], codes[sound]
        self._add(start, end, amount, codes, counts)

    def _add(
        self,
        start: FloatArray,
        end: FloatArray,
        amount: FloatArray,
        codes: Codes,
        counts: Counts,
    ) -> None:
        if not len(start):
            return
        ring = self.tracker.ring
        known = math.isfinite(ring.end)
        first, last = (ring.start, ring.end) if known else (median(end), median(end))
        low, high = first - FURTHEST, last + FURTHEST
        if float(start.min()) < low or float(end.max()) > high:
            near = (end <= high) & (start >= low)
            self._far += not near.any()
            if not near.any() and self._far >= FAR_IN_A_ROW:
                counts.restarted += 1
                self.tracker = Tracker(self.tracker.settings)
                near = np.ones(len(start), dtype=bool)
            counts.out_of_range += len(near) - int(near.sum())
            start, end, amount, codes = start[near], end[near], amount[near], codes[near]
        else:
            self._far = 0
        counts.intervals += len(start)
        self.tracker.add(start, end, amount, codes)

    def seems_over(self, now: float) -> bool:
        """Whether a job has been silent for twice as long as ever before (monotonic seconds)."""
        return now - self.heard > max(LEAST_SILENCE, 2.0 * self.longest_gap)


@dataclass(frozen=True, slots=True)
class SavedJob:
    """What the state keeps of a job."""

    name: str
    messages: int
    ranks: int | None
    sender: str
    tracker: Tracker


class Jobs:
    """All jobs by name, longest silent first."""

    def __init__(
        self,
        *,
        settings: TrackerSettings,
        counts: Counts,
        most: int,
        expire: float,
        most_of_sender: int | None = None,
        still_sends: float,
    ) -> None:
        self._settings = settings
        self._counts = counts
        self._most = most
        self._expire = expire  # seconds of silence
        self._most_of_sender = most if most_of_sender is None else most_of_sender
        self._still_sends = still_sends  # seconds in which a job is not taken for silent
        self._senders: Counter[str] = Counter()  # how many jobs each has
        self._full_until = -math.inf  # monotonic seconds
        self._jobs: OrderedDict[str, WatchedJob] = OrderedDict()

    def __iter__(self) -> Iterator[WatchedJob]:
        return iter(list(self._jobs.values()))

    def __len__(self) -> int:
        return len(self._jobs)

    def find(self, name: str) -> WatchedJob | None:
        """The job of this name, if it was heard of."""
        return self._jobs.get(name)

    def hear(self, name: str, now: float, *, sender: str = "") -> WatchedJob | None:
        """Return the job of this name, created if needed, which sent just now (monotonic seconds).

        None if it would be one too many: all others still send, or its sender has reached its
        limit.
        """
        job = self._jobs.get(name)
        if job is None:
            if not self._has_room(sender, now):
                return None
            job = self._jobs[name] = WatchedJob(name, Tracker(self._settings))
            job.sender = sender
            self._senders[sender] += 1
            self._counts.jobs_created += 1
        else:
            job.longest_gap = max(job.longest_gap, now - job.heard)
        job.heard = now
        self._jobs.move_to_end(name)
        return job

    def _has_room(self, sender: str, now: float) -> bool:
        if sender and self._senders[sender] >= self._most_of_sender:
            return False
        if len(self._jobs) < self._most:
            return True
        if now < self._full_until:
            return False
        # By its own habit: a job that sends rarely is waited for longer.
        quiet = (
            job
            for job in self._jobs.values()
            if now - job.heard >= self._still_sends * max(1.0, job.longest_gap / USUAL_GAP)
        )
        silent = next(quiet, None)
        if silent is None:
            self._full_until = now + LOOK_AGAIN * bool(self._still_sends)
            return False
        self._forget(silent.name)
        self._counts.jobs_evicted += 1
        return True

    def _forget(self, name: str) -> None:
        job = self._jobs.pop(name)
        self._senders[job.sender] -= 1
        if not self._senders[job.sender]:
            del self._senders[job.sender]

    def expire(self, now: float) -> list[str]:
        """Forget the jobs that were silent for too long; return their names."""
        gone = []
        for name, job in self._jobs.items():
            if now - job.heard <= self._expire:
                break
            gone.append(name)
        for name in gone:
            self._forget(name)
        self._counts.jobs_expired += len(gone)
        return gone

    def state(self) -> list[SavedJob]:
        """Return what `restore` needs."""
        return [
            SavedJob(job.name, job.messages, job.ranks, job.sender, job.tracker) for job in self
        ]

    def restore(self, state: Iterable[SavedJob], now: float) -> None:
        """Resume with saved jobs, which are followed by the settings of today."""
        for saved in state:
            saved.tracker.settings = self._settings
            job = self._jobs[saved.name] = WatchedJob(saved.name, saved.tracker)
            job.messages, job.ranks, job.heard = saved.messages, saved.ranks, now
            job.sender = saved.sender
            self._senders[job.sender] += 1


REMEMBERED = 2**16  # messages among which duplicates are found


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
        self.changed: dict[
            str, WatchedJob
        ] = {}  # jobs with new pieces since they were last finalized
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
        for _, alike in groupby(wanted, key=lambda one: (one.job, one.sender, len(one.raw))):
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

    def finalize(self) -> list[WatchedJob]:
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
        """Take messages of one form together; return those that counted."""
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
        made = hashlib.blake2b(raw, digest_size=12)
        made.update(b"\xff" + message.job.encode("utf-8", "replace"))  # a byte that no name has
        digest = made.digest()
        if digest in self._seen:
            counts.duplicates += 1
            return False
        self._seen[digest] = None
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return True
