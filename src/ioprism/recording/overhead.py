"""What a tracer costs here: a small program with a known number of calls, with and without it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ioprism.recording.command import Command, Program
from ioprism.recording.tracer import Tracer

CALLS = 3000  # of the probe: 0.1 s with a tracer that takes 30 µs a call
PROBES = 3  # times that the probe runs each way; the fastest counts, as others disturb it
TIMEOUT = 20.0  # seconds
PROBE = """
import os, sys, time
target = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY, 0o600)
began = time.perf_counter()
for _ in range(int(sys.argv[2])):
    os.pwrite(target, b"x", 0)
sys.stderr.write(repr(time.perf_counter() - began))
"""


@dataclass(frozen=True, slots=True)
class TracerCost:
    """What a tracer adds, in seconds."""

    per_call: float
    per_process: float  # to start and end a process

    def seconds(self, *, calls: float, processes: float) -> float:
        """Return what it adds to a number of calls and processes."""
        return self.per_call * calls + self.per_process * processes


def measure_cost(tracer: Tracer, folder: Path) -> TracerCost | None:
    """Return what the tracer adds to a small write on this machine; None where it does not run.

    Args:
        tracer: what to measure.
        folder: where the probe may write; it is left as it was.
    """
    place = folder / "probe"
    place.mkdir()
    try:
        plain = [_run(None, place) for _ in range(PROBES)]
        traced = [_run(tracer, place) for _ in range(PROBES)]
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None
    finally:
        shutil.rmtree(place, ignore_errors=True)
    calls = min(inside for inside, _ in traced) - min(inside for inside, _ in plain)
    around = min(outside for _, outside in traced) - min(outside for _, outside in plain)
    return TracerCost(max(calls, 0.0) / CALLS, max(around, 0.0))


def _run(tracer: Tracer | None, place: Path) -> tuple[float, float]:
    """Return the seconds in the probe's calls, and those around them."""
    words: tuple[str, ...] = (
        sys.executable,
        "-I",
        "-S",
        "-c",
        PROBE,
        str(place / "data"),
        str(CALLS),
    )
    environment: dict[str, str] = {}
    if tracer is not None:
        traces = place / "traces"
        traces.mkdir()
        program = Program(words, linkage=None, python=True, mpi=False)
        start = tracer.start(Command(words, None, (0,), program), traces)
        words, environment = start.words, dict(start.environment)
    began = time.perf_counter()
    answer = subprocess.run(  # noqa: S603 - our own program
        words,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=TIMEOUT,
        check=True,
    )
    whole = time.perf_counter() - began
    with suppress(OSError):
        shutil.rmtree(place / "traces")
    inside = float(answer.stderr.split()[-1])
    return inside, whole - inside
