"""Whether the whole chain recovers a load of known bytes that was moved on the real machine.

The record of a run on a real machine is kept as JSON, because the counters of that time come
later: an administrator runs the benchmark, lets the collector go on, ingests, and compares.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from msgspec import MsgspecError, json

from ioprism.errors import BrokenTraceError, NotEnoughDetailError, OutputError, UsageError
from ioprism.model.counters import DIRECTIONS, SECOND
from ioprism.model.trace import MIB, Progress
from ioprism.servers.limits import MINOR
from ioprism.servers.series import BYTE_ROWS, LONGEST_STEP, MetricSettings, locate, server_series
from ioprism.servers.store import CounterStore, open_store, sampling_interval
from ioprism.storage.atomic import atomic_write_text, refuse_unless_file, scratch_file
from ioprism.units import DAY

RECORD_FILE = Path("ioprism-benchmark.json")
DATA_FILE = "ioprism-benchmark.data"


@dataclass(frozen=True, slots=True)
class BenchmarkPlan:
    """What to run, and where to note it."""

    folder: Path | None
    record: Path | None = None
    bytes: int = 2**30  # of each phase
    phases: int = 3
    pause: float = 240.0  # seconds between phases
    ior: str | None = None  # a command; None: plain Python
    replace: bool = False  # whether an earlier record may be replaced


@dataclass(frozen=True, slots=True)
class BenchmarkPhase:
    """Known bytes that moved at a known time."""

    direction: str
    start: float  # seconds since 1970
    end: float
    bytes: int


@dataclass(frozen=True, slots=True)
class PhaseComparison:
    """What the counters show of a phase."""

    shown: float  # bytes above the load before and after the phase
    ratio: float  # shown by the counters / true

    @property
    def passed(self) -> bool:
        """Whether the counters show the bytes that moved."""
        return abs(self.ratio - 1) <= MINOR  # counters and clocks are not atomic


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """A benchmark's phases and, once there are counters of its time, what they show."""

    host: str
    phases: tuple[BenchmarkPhase, ...]
    record: Path = RECORD_FILE
    servers: tuple[str, ...] = ()
    findings: tuple[PhaseComparison, ...] = ()  # one for each phase, or none

    @property
    def passed(self) -> bool:
        """Whether nothing that was compared differs."""
        return all(finding.passed for finding in self.findings)


def run_benchmark(
    plan: BenchmarkPlan, store: Path | None, *, progress: Progress = lambda _: None
) -> BenchmarkResult:
    """Run the benchmark if a folder is given; compare it with counters if a store is.

    Raises:
        OutputError: the record exists, the folder cannot be written to, or IOR fails.
        NotEnoughDetailError: the store has no counters of that time.
    """
    place = plan.record or RECORD_FILE
    if plan.folder is not None:
        refuse_unless_file(place, replace=plan.replace)  # before it takes its time
        result = BenchmarkResult(
            socket.gethostname(), tuple(_run_phases(plan, plan.folder, progress)), place
        )
        noted = {"host": result.host, "phases": [asdict(phase) for phase in result.phases]}
        text = json.format(json.encode(noted), indent=1).decode()
        atomic_write_text(place, text, replace=plan.replace)
    else:
        result = _read_record(place)
    return result if store is None else _compare_with_counters(result, open_store(store))


def _read_record(place: Path) -> BenchmarkResult:
    try:
        result = json.decode(place.read_bytes(), type=BenchmarkResult)
        sound = all(phase.bytes > 0 and phase.direction in DIRECTIONS for phase in result.phases)
        if sound and result.phases:
            return replace(result, record=place, servers=(), findings=())
    except (OSError, ValueError, MsgspecError):
        pass
    raise BrokenTraceError(
        "this is not the record of a benchmark.\n"
        "Hint: make one with `ioprism servers validate --run FOLDER --record FILE`.",
        source=place,
    )


def _run_phases(plan: BenchmarkPlan, folder: Path, progress: Progress) -> Iterator[BenchmarkPhase]:
    """Write, then read back what was written, as often as planned, with pauses."""
    if plan.bytes < MIB:
        raise UsageError("a phase must move at least 1 MiB.\nHint: give --bytes 1GiB.")
    moved = 0
    try:
        with scratch_file(folder / DATA_FILE) as path:
            for number in range(plan.phases):
                for direction in DIRECTIONS[::-1]:
                    if number or direction == "read":
                        time.sleep(plan.pause)
                    phase = _run_phase(plan, direction, path)
                    moved += phase.bytes
                    progress(moved)
                    yield phase
    except OSError as error:
        raise OutputError(
            f"{folder}: the benchmark cannot write or read its data "
            f"({error.strerror or error}).\n"
            "Hint: choose a folder with more free space for --run, or fewer --bytes."
        ) from error


def _run_phase(plan: BenchmarkPlan, direction: str, path: Path) -> BenchmarkPhase:
    start = time.time()
    if plan.ior is not None:
        _run_ior(plan, direction, path)
        size = path.stat().st_size
    else:
        size = _write_data(path, plan.bytes) if direction == "write" else _read_back(path)
    return BenchmarkPhase(direction, start, time.time(), size)


def _write_data(path: Path, size: int) -> int:
    """Write a file that no file system can compress, and wait until it is on the servers."""
    piece = os.urandom(MIB)
    path.unlink(missing_ok=True)
    with path.open("xb", buffering=0) as file:
        for _ in range(size // MIB):
            file.write(piece)
        os.fsync(file.fileno())
        _drop_cache(file.fileno())
    return size // MIB * MIB


def _read_back(path: Path) -> int:
    moved = 0
    with path.open("rb", buffering=0) as file:
        _drop_cache(file.fileno())
        while piece := file.read(MIB):
            moved += len(piece)
    return moved


def _drop_cache(descriptor: int) -> None:
    """Ask the system to drop its copy, or reading would not reach the servers."""
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _run_ior(plan: BenchmarkPlan, direction: str, path: Path) -> None:
    what = {"write": ["-w", "-e"], "read": ["-r", "-C"]}[direction]
    block = plan.bytes // MIB * MIB
    command = [*shlex.split(plan.ior or ""), "-a", "POSIX", *what, "-k", "-t", str(MIB),
               "-b", str(block), "-o", str(path)]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, timeout=DAY, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OutputError(f"{command[0]} cannot be run ({error}).\nHint: check --ior.") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()[-200:]
        why = said or f"exit code {done.returncode}"
        raise OutputError(f"{command[0]} failed: {why}.\nHint: check --ior.")


def _compare_with_counters(result: BenchmarkResult, source: CounterStore) -> BenchmarkResult:
    """Look for the phases in the counters of this host if it has some, else of all servers."""
    names = source.servers()
    own = [name for name in names if name.split(".")[0] == result.host.split(".")[0]]
    settings = MetricSettings(sampling_interval(source))
    chosen = own or names
    moved = [_moved_in_phases(source, name, settings, result.phases) for name in chosen]
    known = [amounts for amounts in moved if amounts is not None]
    if not known:
        raise NotEnoughDetailError(
            needed="counters of the time of the benchmark",
            has="none",
            source="the store",
            hint="ingest the counters of that time, with some before and after it.",
        )
    findings = [
        PhaseComparison(shown, shown / phase.bytes)
        for shown, phase in zip(np.sum(known, axis=0).tolist(), result.phases, strict=True)
    ]
    return replace(result, servers=tuple(chosen), findings=tuple(findings))


def _moved_in_phases(
    source: CounterStore, server: str, settings: MetricSettings, phases: tuple[BenchmarkPhase, ...]
) -> list[float] | None:
    """Return what a server moved in each phase beyond its load just before and after.

    A phase is widened by one sampling interval on both sides, so that no step which holds some
    of it is cut; the intervals beyond are the load of others.
    """
    start, end = round(phases[0].start * SECOND), round(phases[-1].end * SECOND)
    samples = source.counters(server, start_us=start - LONGEST_STEP, end_us=end + LONGEST_STEP)
    series = server_series(samples, settings)
    if series.empty or series.times[0] > start or series.times[-1] < end:
        return None
    step = settings.interval_us
    moved = []
    for phase in phases:
        first, last = round(phase.start * SECOND) - step, round(phase.end * SECOND) + step
        place = locate(series, np.array([first - step // 2, first, last, last + step // 2]))
        row = series.totals[BYTE_ROWS[DIRECTIONS.index(phase.direction)]]
        before, within, after = place.steps(row).tolist()
        moved.append(within - (before + after) / step * (last - first))
    return moved
