"""Check the chain on a real machine: move known bytes at known times, find them in the counters.

The record of a run is kept as JSON, because the counters of that time come later: an
administrator runs the benchmark, lets the collector go on, ingests, and compares.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ioprism.errors import BrokenTraceError, NotEnoughDetailError, OutputError, UsageError
from ioprism.model.counters import DIRECTIONS, SECOND
from ioprism.model.trace import Progress
from ioprism.servers.activity import BYTE_ROWS
from ioprism.servers.series import LONGEST_STEP, locate, server_series
from ioprism.servers.settings import MetricSettings
from ioprism.servers.steps import interval_us
from ioprism.servers.store import CounterStore, open_store
from ioprism.storage.atomic import atomic_write_text, refuse_unless_file, scratch_file

REQUEST = 2**20
CLOSE_ENOUGH = 0.1  # of the bytes: counters and clocks are not atomic
RECORD = Path("ioprism-benchmark.json")
DATA = "ioprism-benchmark.data"
LONGEST_RUN = 24 * 3600  # seconds that one IOR may take


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run, and where to note it."""

    folder: Path | None
    record: Path | None = None
    bytes: int = 2**30  # of each phase
    phases: int = 3
    pause: float = 240.0  # seconds between phases
    ior: str | None = None  # a command; None: plain Python
    replace: bool = False  # whether an earlier record may be replaced


@dataclass(frozen=True, slots=True)
class Phase:
    """Known bytes that moved at a known time."""

    direction: str
    start: float  # seconds since 1970
    end: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Finding:
    """A phase, and what the counters show of it."""

    phase: Phase
    found: float  # bytes above the load before and after it

    @property
    def ratio(self) -> float:
        """Found / true."""
        return self.found / self.phase.bytes

    @property
    def passed(self) -> bool:
        """Whether the counters show the bytes that moved."""
        return abs(self.ratio - 1) <= CLOSE_ENOUGH


@dataclass(frozen=True, slots=True)
class Checked:
    """A benchmark's phases and, once there are counters of its time, what they show."""

    host: str
    record: Path
    phases: tuple[Phase, ...]
    servers: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing that was compared differs."""
        return all(finding.passed for finding in self.findings)


def check(plan: Plan, store: Path | None, *, progress: Progress = lambda _: None) -> Checked:
    """Run the benchmark if a folder is given; compare it with counters if a store is.

    Raises:
        OutputError: the record exists, the folder cannot be written to, or IOR fails.
        NotEnoughDetailError: the store has no counters of that time.
    """
    place = plan.record or RECORD
    if plan.folder is not None:
        refuse_unless_file(place, replace=plan.replace)  # before it takes its time
        phases = tuple(_run(plan, progress))
        checked = Checked(socket.gethostname(), place, phases)
        atomic_write_text(place, json.dumps(_document(checked), indent=1), replace=plan.replace)
    else:
        checked = _read(place)
    return checked if store is None else _compare(checked, open_store(store))


def _document(checked: Checked) -> dict[str, object]:
    return {"host": checked.host, "phases": [asdict(phase) for phase in checked.phases]}


def _read(place: Path) -> Checked:
    try:
        document = json.loads(place.read_text(encoding="utf-8"))
        phases = tuple(Phase(**phase) for phase in document["phases"])
        sound = all(phase.bytes > 0 and phase.direction in DIRECTIONS for phase in phases)
        if sound and phases:
            return Checked(str(document["host"]), place, phases)
    except (OSError, ValueError, TypeError, KeyError):
        pass
    raise BrokenTraceError(
        "this is not the record of a benchmark.\n"
        "Hint: make one with `ioprism servers validate --run FOLDER --record FILE`.",
        source=place,
    )


def _run(plan: Plan, progress: Progress) -> Iterator[Phase]:
    """Write, then read back what was written, as often as planned, with pauses."""
    if plan.folder is None or plan.bytes < REQUEST:
        raise UsageError("a phase must move at least 1 MiB.\nHint: give --bytes 1GiB.")
    moved = 0
    try:
        with scratch_file(plan.folder / DATA) as path:
            for number in range(plan.phases):
                for direction in DIRECTIONS[::-1]:
                    if number or direction == "read":
                        time.sleep(plan.pause)
                    phase = _phase(plan, direction, path)
                    moved += phase.bytes
                    progress(moved)
                    yield phase
    except OSError as error:
        raise OutputError(
            f"{plan.folder}: the benchmark cannot write or read its data "
            f"({error.strerror or error}).\n"
            "Hint: choose a folder with more free space for --run, or fewer --bytes."
        ) from error


def _phase(plan: Plan, direction: str, path: Path) -> Phase:
    start = time.time()
    if plan.ior is not None:
        _ior(plan, direction, path)
        size = path.stat().st_size
    else:
        size = _write(path, plan.bytes) if direction == "write" else _read_back(path)
    return Phase(direction, start, time.time(), size)


def _write(path: Path, size: int) -> int:
    """Write a file that no file system can compress, and wait until it is on the servers."""
    piece = os.urandom(REQUEST)
    path.unlink(missing_ok=True)
    with path.open("xb", buffering=0) as file:
        for _ in range(size // REQUEST):
            file.write(piece)
        os.fsync(file.fileno())
        _forget(file.fileno())
    return size // REQUEST * REQUEST


def _read_back(path: Path) -> int:
    moved = 0
    with path.open("rb", buffering=0) as file:
        _forget(file.fileno())
        while piece := file.read(REQUEST):
            moved += len(piece)
    return moved


def _forget(descriptor: int) -> None:
    """Ask the system to drop its copy, or reading would not reach the servers."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _ior(plan: Plan, direction: str, path: Path) -> None:
    what = {"write": ["-w", "-e"], "read": ["-r", "-C"]}[direction]
    block = plan.bytes // REQUEST * REQUEST
    command = [*shlex.split(plan.ior or ""), "-a", "POSIX", *what, "-k", "-t", str(REQUEST),
               "-b", str(block), "-o", str(path)]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, timeout=LONGEST_RUN, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OutputError(f"{command[0]} cannot be run ({error}).\nHint: check --ior.") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()[-200:]
        why = said or f"exit code {done.returncode}"
        raise OutputError(f"{command[0]} failed: {why}.\nHint: check --ior.")


def _compare(checked: Checked, source: CounterStore) -> Checked:
    """Look for the phases in the counters of this host if it has some, else of all servers."""
    names = source.servers()
    own = [name for name in names if name.split(".")[0] == checked.host.split(".")[0]]
    settings = MetricSettings(interval_us(source))
    start, end = checked.phases[0].start, checked.phases[-1].end
    chosen = own or names
    rates = [_cumulative(source, name, start, end, settings, checked.phases) for name in chosen]
    if not any(rate is not None for rate in rates):
        raise NotEnoughDetailError(
            needed="counters of the time of the benchmark",
            has="none",
            source="the store",
            hint="ingest the counters of that time, with some before and after it.",
        )
    moved = np.sum([rate for rate in rates if rate is not None], axis=0)
    findings = tuple(map(Finding, checked.phases, moved.tolist()))
    return Checked(checked.host, checked.record, checked.phases, tuple(chosen), findings)


def _cumulative(
    source: CounterStore,
    server: str,
    start: float,
    end: float,
    settings: MetricSettings,
    phases: tuple[Phase, ...],
) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
    """Return what a server moved in each phase beyond its load just before and after.

    A phase is widened by one sampling interval on both sides, so that no step which holds some
    of it is cut; the intervals beyond are the load of others.
    """
    samples = source.counters(
        server, start_us=round(start * SECOND) - LONGEST_STEP,
        end_us=round(end * SECOND) + LONGEST_STEP,
    )  # fmt: skip
    series = server_series(samples, settings)
    if series.empty or series.times[0] > start * SECOND or series.times[-1] < end * SECOND:
        return None
    step = settings.interval_us
    moved = []
    for phase in phases:
        first, last = round(phase.start * SECOND) - step, round(phase.end * SECOND) + step
        moments = np.array([first - step // 2, first, last, last + step // 2])
        place = locate(series, moments)
        row = series.totals[BYTE_ROWS[DIRECTIONS.index(phase.direction)]]
        before, within, after = place.between(row, np.arange(3), np.arange(1, 4)).tolist()
        background = (before + after) / step * (last - first)
        moved.append(within - background)
    return np.array(moved)
