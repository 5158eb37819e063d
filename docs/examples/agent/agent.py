"""A reference agent: it lets programs write when `ioprism watch` says that it is their turn.

Each program runs with `throttle.so` preloaded, which waits for the rate in its control file. The
agent sees when a program wants to write, asks the service for its turn, and writes the rate.

Example: python agent.py http://127.0.0.1:8080/TOKEN 200e6 a.jsonl=a.control b.jsonl=b.control
"""

from __future__ import annotations

import mmap
import struct
import sys
import threading
import time
from pathlib import Path

from ioprism import ServiceError, client

CONTROL = struct.Struct("ddd")  # rate in bytes per second, end of want, last look of the agent
UNLIMITED = -1.0
EVERY = 0.05  # seconds between two looks
WANTS = 0.15  # seconds after a write in which a program still wants to write


class Program:
    """One throttled program, by the file that it shares with its preloaded library."""

    def __init__(self, job: str, control: Path) -> None:
        self.job = job
        self.served = False  # whether the service still counts it among those that write
        control.write_bytes(CONTROL.pack(0.0, 0.0, time.monotonic()))
        with control.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), CONTROL.size)

    @property
    def wants(self) -> bool:
        """Whether it wants to write, or writes."""
        last: float = CONTROL.unpack(self._shared[: CONTROL.size])[1]
        return time.monotonic() - last < WANTS

    def allow(self, rate: float) -> None:
        """Let it write at a rate, in bytes per second; 0 lets it wait."""
        self._shared[:8] = struct.pack("d", rate)
        self._shared[16:] = struct.pack("d", time.monotonic())


def run(
    url: str, bandwidth: float, programs: list[Program], *, stop: threading.Event | None = None
) -> None:
    """Give every program its turn until told to stop; without the service, all may write."""
    while stop is None or not stop.is_set():
        for program in programs:
            try:
                rate = _rate(url, bandwidth, program)
            except ServiceError:
                rate = UNLIMITED
            program.allow(rate)
        time.sleep(EVERY)


def _rate(url: str, bandwidth: float, program: Program) -> float:
    wants = program.wants
    if not wants and not program.served:
        return 0.0
    (turn,) = client.schedule(url, job=program.job, wants=wants)
    program.served = wants
    # A job that is served alone needs no limit: the file system is all its own.
    return UNLIMITED if turn.share >= 1.0 else turn.share * bandwidth


def main() -> None:
    """Read the arguments, and run."""
    url, bandwidth, *pairs = sys.argv[1:]
    split = (pair.partition("=") for pair in pairs)
    run(url, float(bandwidth), [Program(job, Path(control)) for job, _, control in split])


if __name__ == "__main__":
    main()
