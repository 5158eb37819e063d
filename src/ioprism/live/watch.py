"""Watch running jobs: receive messages, predict, publish, and lose nothing on the way.

One thread owns all jobs. It sleeps until something arrives, takes in what there is for a few
milliseconds, answers, and rests a few more, in which messages gather: many together cost little
more than one. So answers are never far behind the messages, and an idle service costs nothing.
"""

from __future__ import annotations

import ctypes
import gc
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ioprism.errors import OutputError
from ioprism.live import state
from ioprism.live.access import zeromq
from ioprism.live.intake import Intake, Jobs, Message, SavedJob, WatchedJob
from ioprism.live.metrics import Counts, Latency
from ioprism.live.publish import Answer, Broker, Listener
from ioprism.live.sources import StreamSource
from ioprism.live.state import Journal, read_journal
from ioprism.periodicity.tracker import Prediction, Tracker, TrackerSettings
from ioprism.scheduling.policies import Turns

LOOK_AT_FILES = 0.2  # seconds between looks at followed files, and other sources to poll
HOUSEKEEPING = 1.0  # seconds
# Seconds of analyses before messages are taken in again, and of rest when there is nothing to do:
# what a job sends within it is answered together.
ANALYSIS_BUDGET = 0.005
ANALYSIS_PAUSE = 0.05  # seconds without an analysis at most, however many messages wait
CLOSING_BUDGET = 5.0  # seconds for answers to all jobs when the service ends
JOURNAL_BYTES = 64 * 2**20  # after which the state is saved and a new journal begun
TRY_AGAIN = 5.0  # seconds after the state could not be saved
TRIM = 30.0  # seconds between times at which freed memory goes back to the system
STATE_SHARE = 4  # or when the journal is this many times as large as the state


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """How to watch."""

    tracking: TrackerSettings = field(default_factory=TrackerSettings)
    direction: str = "both"
    every: float = 0.0  # seconds between predictions of a job; 0: with every batch
    expire: float = 600.0  # seconds of silence after which a job is forgotten
    most_jobs: int = 2000
    most_jobs_of_sender: int | None = None  # half of `most_jobs` if None
    still_sends: float = 60.0  # seconds in which a job is not taken for silent
    largest_message: int = 16 * 2**20  # bytes
    save_to: Path | None = None


@dataclass(frozen=True, slots=True)
class WatchState:
    """What is saved of a service."""

    generation: int  # of the journal that goes on from here
    counts: Counts
    seen: list[bytes]
    jobs: list[SavedJob]
    files: list[dict[str, Any]]


class Watch:
    """The service: sources, jobs, listeners."""

    def __init__(
        self,
        settings: WatchSettings,
        listeners: Iterable[Listener] = (),
        *,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self.notify = notify  # receives messages for the operator
        self.counts = Counts()
        self.latency = Latency()
        self.lock = threading.RLock()  # held while another thread reads jobs
        self.jobs = Jobs(
            settings=settings.tracking,
            counts=self.counts,
            most=settings.most_jobs,
            expire=settings.expire,
            most_of_sender=settings.most_jobs_of_sender or max(1, settings.most_jobs // 2),
            still_sends=settings.still_sends,
        )
        self.intake = Intake(
            self.jobs,
            self.counts,
            direction=settings.direction,
            largest=settings.largest_message,
        )
        self.broker = Broker(self.counts)
        self.listeners: list[Listener] = [*listeners, self.broker.hear]
        self.turns = Turns(self._period_of)
        self.sources: list[StreamSource] = []
        self._interval = max(settings.every, ANALYSIS_BUDGET)
        self._postponed: dict[str, WatchedJob] = {}  # an analysis is due, but messages go first
        self._delayed: dict[str, WatchedJob] = {}  # answered a moment ago
        self._over: deque[WatchedJob] = deque()  # they seem to have ended, as of the last look
        self._journal: Journal | None = None
        self._generation = 0
        self._unsaved_since: float | None = None  # monotonic seconds of the last failure
        self._state_bytes = 0
        self._tidied = self._trim_edges = self._analysed_at = time.monotonic()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._stopping = False
        self.last_arrival = time.monotonic()
        rehearse()

    def find(self, name: str | None) -> WatchedJob | None:
        """The job of this name; without a name, the only one."""
        if name is not None:
            return self.jobs.find(name)
        every = list(self.jobs)
        return every[0] if len(every) == 1 else None

    def _period_of(self, name: str) -> float | None:
        """Seconds between the phases of a job, as far as they are known."""
        job = self.jobs.find(name)
        latest = None if job is None else job.latest
        if latest is None:
            return None
        return latest.phase_distance if latest.period is None else latest.period.seconds

    @property
    def analyses_waiting(self) -> int:
        """How many jobs wait for their analysis, each once and in the order of their turns."""
        return len(self._postponed)

    @property
    def lag(self) -> float:
        """Seconds that the analysis put off longest has waited; 0 if none waits."""
        since = [job.postponed for job in self._postponed.values() if job.postponed is not None]
        return time.monotonic() - min(since) if since else 0.0

    def stop(self) -> None:
        """End `run`; safe in a signal handler and from any thread."""
        self._stopping = True
        os.write(self._wake_write, b"x")

    def run(self, *, idle: float | None = None) -> None:
        """Watch until `stop`, or until nothing has arrived for `idle` seconds."""
        gc.freeze()  # what was loaded so far is not looked at again
        wait, more = self._waiter(), True
        while not self._stopping:
            wait(0.0 if more else self._pause())
            with self.lock:
                more = self.step()
            if not more:
                time.sleep(ANALYSIS_BUDGET)
            if idle is not None and time.monotonic() - self.last_arrival > idle:
                break

    def step(self) -> bool:
        """Take in, answer, tidy up; return whether there is more to do immediately."""
        received, replaced = self.counts.messages, self.counts.files_replaced
        left = [source.read(self.intake, self._journal) for source in self.sources]  # from each
        more = any(left)
        self._flush()
        if self.counts.messages > received:
            self.last_arrival = time.monotonic()
        self._answer(self.intake.finalize(), budget=0.0 if more else ANALYSIS_BUDGET)
        if not more:
            self._conclude_next()
        if self.counts.files_replaced > replaced:
            self.save()  # what the old file held can no longer be read again
        now = time.monotonic()
        if now - self._tidied >= HOUSEKEEPING:
            self._tidied = now
            self._tidy(now)
        return more or bool(self._postponed or self._over)

    def restore(self) -> None:
        """Resume from the saved state, if there is one, and journal from now on.

        Raises:
            BrokenTraceError: the state cannot be used.
        """
        path = self.settings.save_to
        if path is None:
            return
        saved = state.load(path, WatchState)
        if saved is not None:
            self._restore(saved)
            warning = (
                "warning: the last {} bytes of the journal are cut off or damaged and left out"
            )
            journal = self._journal_path(path)
            for message in read_journal(journal, lambda n: self.notify(warning.format(n))):
                self.intake.receive([Message(*message)], arrived=time.monotonic())
            self._answer(self.intake.finalize())
        self._save(path)

    @property
    def saving(self) -> bool:
        """Whether a restart would lose nothing that was answered."""
        return self.settings.save_to is not None and self._unsaved_since is None

    def save(self) -> None:
        """Save the state; if that fails, report it, keep answering, and retry soon."""
        path = self.settings.save_to
        if path is None:
            return
        try:
            self._save(path)
        except (OSError, OutputError) as error:
            self._note_unsaved(error)
        else:
            if self._unsaved_since is not None:
                self.notify("the state is saved again")
            self._unsaved_since = None

    def _save(self, path: Path) -> None:
        """Save the state and begin a new journal; the old ones stay until the new are there."""
        old, old_path = self._journal, self._journal_path(path)
        self._generation += 1
        fresh: Journal | None = None
        try:
            fresh = Journal(self._journal_path(path))
            self._state_bytes = state.save(path, self._state())
        except BaseException:
            self._generation -= 1
            if fresh is not None:
                fresh.discard()
            raise
        self._journal = fresh
        if old is not None:
            old.close()
        old_path.unlink(missing_ok=True)

    def _flush(self) -> None:
        """Bring what was taken in to the journal before it is answered."""
        if self._journal is not None:
            try:
                self._journal.flush()
            except OSError as error:
                self._note_unsaved(error)

    def _note_unsaved(self, error: Exception) -> None:
        self.counts.unsaved += 1
        if self._unsaved_since is None:
            why = error.strerror if isinstance(error, OSError) else str(error)
            self.notify(f"warning: the state cannot be saved ({why}); predictions continue")
        self._unsaved_since = time.monotonic()

    def close(self) -> None:
        """Save, and release everything."""
        with self.lock:
            for source in self.sources:
                if source.waits_on() is None:
                    source.read(self.intake, self._journal)
            self._answer(self.intake.finalize(), budget=1.0)
            self._conclude(self.jobs, budget=CLOSING_BUDGET)
            self.save()
            if self._journal is not None and self._unsaved_since is None:
                self._journal.discard()  # all of it is in the state now
        self.broker.close()
        for source in self.sources:
            source.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _waiter(self) -> Callable[[float], object]:
        """Return a function that sleeps until a message, `stop`, or a timeout in seconds."""
        sleepers = [source for source in self.sources if source.waits_on() is not None]
        if not sleepers:
            return lambda seconds: select.select([self._wake_read], [], [], seconds)
        zmq = zeromq("ioprism watch")  # its poller takes descriptors as well as its own sockets
        poller = zmq.Poller()
        for waited in (self._wake_read, *(source.waits_on() for source in sleepers)):
            poller.register(waited, zmq.POLLIN)

        def wait(seconds: float) -> None:
            if poller.poll(0) or not seconds:
                return
            poller.poll(1000 * seconds)
            for source in sleepers:
                source.note_empty()

        return wait

    def _pause(self) -> float:
        polled = any(source.waits_on() is None for source in self.sources)
        pause = LOOK_AT_FILES if polled else HOUSEKEEPING
        return min(pause, self._interval) if self._delayed else pause

    def _answer(self, changed: list[WatchedJob], *, budget: float = ANALYSIS_BUDGET) -> None:
        """Predict for jobs with something new; once analyses are put off, messages go first.

        A job whose analysis is put off is answered without it, unless it is answered so rarely
        that the one answer has to be the better one.
        """
        until = time.monotonic() + budget
        waiting = {**self._delayed, **{job.name: job for job in changed}}
        self._delayed = {}
        for name, job in waiting.items():
            if self.jobs.find(name) is not job:  # it had to go
                continue
            now = time.monotonic()
            if now - job.answered_at < self._interval:
                self._delayed[name] = job
                continue
            put_off = job.tracker.due and (bool(self._postponed) or now > until)
            if put_off:
                self._postponed[name] = job
                job.postponed = job.postponed or now
            if not put_off or not self.settings.every:
                self._tell(job, job.tracker.predict(analyse=not put_off))
        self._catch_up(until)

    def _catch_up(self, until: float) -> None:
        """Make analyses that were put off; messages go first, but not for ever."""
        for name in list(self._postponed):
            now = time.monotonic()
            if now > until and now - self._analysed_at < ANALYSIS_PAUSE:
                return
            job = self._postponed.pop(name)
            job.postponed = None
            if self.jobs.find(name) is not job:
                continue
            self._tell(job, job.tracker.predict())
            self._analysed_at = time.monotonic()

    def _conclude(self, jobs: Iterable[WatchedJob], *, budget: float) -> None:
        """Answer for the whole of jobs, once each, as long as there is time."""
        until = time.monotonic() + budget
        for job in jobs:
            if not job.concluded and time.monotonic() <= until:
                job.concluded = True
                self._tell(job, job.tracker.conclude())

    def _conclude_next(self) -> None:
        """Answer for one job that seems to be over; between two of them messages go first."""
        while self._over:
            job = self._over.popleft()
            if self.jobs.find(job.name) is job and job.seems_over(time.monotonic()):
                self._conclude([job], budget=ANALYSIS_BUDGET)
                return

    def _tell(self, job: WatchedJob, prediction: Prediction | None) -> None:
        now = time.monotonic()
        for arrived, messages in job.waiting.items():
            self.latency.record(now - arrived, messages=messages)
        job.waiting.clear()
        if prediction is None:
            return
        job.answered_at = now
        self.counts.predictions += not prediction.final
        self.counts.announcements += prediction.change is not None
        answer = Answer(job.name, prediction, job.messages, job.ranks)
        for listener in self.listeners:
            listener(answer)

    def _tidy(self, now: float) -> None:
        self._over = deque(job for job in self.jobs if not job.concluded and job.seems_over(now))
        self.jobs.expire(now)
        if now - self._trim_edges >= TRIM:
            self._trim_edges = now
            give_back_memory()
        size = 0 if self._journal is None else self._journal.size
        large = size > max(JOURNAL_BYTES, STATE_SHARE * self._state_bytes)
        failed = self._unsaved_since is not None and now - self._unsaved_since > TRY_AGAIN
        if large or failed:
            self.save()

    def _journal_path(self, path: Path) -> Path:
        return path.with_name(f"{path.name}.journal-{self._generation}")

    def _state(self) -> WatchState:
        known = [(source.address, source.state()) for source in self.sources]
        files = [{**one, "path": address} for address, one in known if one]
        return WatchState(
            self._generation, self.counts, self.intake.digests(), self.jobs.state(), files
        )

    def _restore(self, saved: WatchState) -> None:
        self._generation = saved.generation
        self.counts.restore(saved.counts)
        self.intake.restore(saved.seen)
        self.jobs.restore(saved.jobs, time.monotonic())
        files = {known["path"]: known for known in saved.files}
        for source in self.sources:
            if source.address in files:
                source.restore(files[source.address])


def give_back_memory() -> None:
    """Let glibc return what jobs that are gone had; short commands keep it (`__main__`)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def rehearse() -> None:
    """Find a made-up period once: no message waits for what an analysis loads."""
    tracker, start = Tracker(), np.arange(256.0)
    tracker.add(start, start + 1.0, 1.0 + np.sin(start))
    tracker.predict()
