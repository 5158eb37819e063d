"""Two jobs share a file system: how much time is gained if their bursts are kept apart?

Both jobs compute and then write, again and again. Alone, a burst takes `VOLUME / BANDWIDTH`
seconds; two at once share the bandwidth and take twice as long. A job that is about to write
asks the service when the other one will: where the other one is expected to be writing just
then, it waits until that phase is over. The jobs are simulated, the service is real.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import msgpack

from ioprism import ServiceError, client
from ioprism.live.http import WatchServer
from ioprism.live.intake import Message
from ioprism.live.watch import Watch, WatchSettings

BANDWIDTH = 10e9  # bytes per second, of the file system
VOLUME = 200e9  # bytes of one burst
COMPUTING = {"climate": 40.0, "plasma": 40.5}  # seconds between bursts
BURSTS = 40
STEP = 0.1  # seconds of simulated time
SLACK = 1.0  # seconds by which a phase may begin early
SURE = 0.5  # confidence below which predictions are not acted on


@dataclass
class WatchedJob:
    """One simulated job."""

    name: str
    ready: float  # when it has computed and wants to write
    written: float = 0.0  # bytes of the current burst
    began: float | None = None  # when the current burst began
    bursts: list[tuple[float, float]] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether all bursts are written."""
        return len(self.bursts) == BURSTS


def simulate(url: str | None, watch: Watch | None) -> float:
    """Return when both jobs are done; with a service, bursts are kept apart."""
    jobs = [WatchedJob(name, computing) for name, computing in COMPUTING.items()]
    now = 0.0
    while not all(job.done for job in jobs):
        for job, other in (jobs, jobs[::-1]):
            if not job.done and job.began is None and now >= job.ready:
                job.began = now if url is None or not must_wait(url, job, other, now) else None
        writing = [job for job in jobs if job.began is not None]
        for job in writing:
            job.written += STEP * BANDWIDTH / len(writing)
            if job.written >= VOLUME:
                finish(job, now + STEP, watch)
        now += STEP
    return max(job.bursts[-1][1] for job in jobs)


def must_wait(url: str, job: WatchedJob, other: WatchedJob, now: float) -> bool:
    """Whether the other job is expected to be writing now, and to have begun first."""
    try:
        expected = client.next_phase(url, job=other.name)
    except ServiceError:
        return False  # the service has not heard of it yet
    if expected is None or expected.confidence < SURE or not expected.start - SLACK <= now:
        return False
    first = (expected.start, other.name) < (job.ready, job.name)
    return first and now < expected.end


def finish(job: WatchedJob, now: float, watch: Watch | None) -> None:
    """End a burst, tell the service, and compute on."""
    assert job.began is not None
    job.bursts.append((job.began, now))
    if watch is not None:
        rate = VOLUME / (now - job.began)
        message = {"job": job.name, "b": [rate], "ts": [job.began], "te": [now]}
        watch.intake.receive([Message(job.name, msgpack.packb(message))], arrived=time.monotonic())
        watch.step()
    job.began, job.written, job.ready = None, 0.0, now + COMPUTING[job.name]


def main() -> None:
    """Print the time with and without asking."""
    without = simulate(None, None)
    watch = Watch(WatchSettings())
    server = WatchServer(watch, "127.0.0.1", 0)
    try:
        apart = simulate(server.url, watch)
    finally:
        server.close()
        watch.close()
    print(f"as they come: {without:.0f} s, kept apart: {apart:.0f} s, "  # noqa: T201
          f"gained: {1 - apart / without:.1%}")  # fmt: skip


if __name__ == "__main__":
    main()
