"""Measure planned writes until each mean is known well enough; go on where a crash left off."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ioprism.errors import RunFailedError
from ioprism.model.samples import WritePattern
from ioprism.storage.atomic import held_alone
from ioprism.units import format_bytes
from ioprism.write_time.campaign.launchers import Launcher
from ioprism.write_time.run_store import Planned, RunStore

Announce = Callable[[str], None]
Judge = Callable[[Sequence[float]], bool]
SPACE = 2  # free space must hold this many times a run's bytes
TRIES = 3  # failures in a row after which this session gives a pattern up
LEAST_PATIENCE = 600.0  # seconds that any run may take
PATIENCE = 20.0  # times the expected time that a run may take
SLOW_NODE = 20e6  # bytes per second and node, expected while nothing is measured


@dataclass(frozen=True, slots=True)
class StopRule:
    """When the times of a pattern are enough."""

    converged: Judge  # the mean is known well enough
    finished: Judge  # that, or tried as often as allowed


@dataclass(frozen=True, slots=True)
class Limits:
    """When a session ends, and how long it waits."""

    runs: int | None = None
    seconds: float | None = None  # after which no run is started
    timeout: float | None = None  # seconds of one run; None: by its size
    pause: float = 60.0  # seconds to wait after a round in which every run failed


@dataclass(frozen=True, slots=True)
class Progress:
    """What a sampling session did."""

    runs: int
    converged: int
    unconverged: int  # tried as often as allowed
    waiting: int  # not finished yet
    discarded: int  # runs that a crash had interrupted
    failed: int  # runs that were refused, hung or said nothing usable
    given_up: Mapping[str, int]  # why patterns were given up -> how many
    obstacles: Mapping[str, int]  # why patterns could not run here -> how many

    @property
    def worth_another(self) -> bool:
        """Whether patterns are left that another session may finish, as this one got further."""
        left = self.waiting - sum(self.given_up.values()) - sum(self.obstacles.values())
        return left > 0 and self.runs > 0


@dataclass(slots=True)
class _Session:
    """What happened so far."""

    began: float = field(default_factory=time.monotonic)
    runs: int = 0
    failed_runs: int = 0
    failures: Counter[int] = field(default_factory=Counter)  # in a row, by pattern
    reasons: dict[int, str] = field(default_factory=dict)  # the last failure of each pattern

    def over(self, limits: Limits) -> bool:
        """Whether no further run may start."""
        spent = time.monotonic() - self.began
        return (limits.runs is not None and self.runs >= limits.runs) or (
            limits.seconds is not None and spent >= limits.seconds
        )

    def succeeded(self, planned: Planned) -> None:
        """Note a finished run."""
        self.runs += 1
        self.failures[planned.number] = 0

    def failed(self, planned: Planned, reason: str) -> None:
        """Note a failure."""
        self.failed_runs += 1
        self.failures[planned.number] += 1
        self.reasons[planned.number] = reason


def sample(
    store: RunStore,
    *,
    rule: StopRule,
    launcher: Launcher,
    folder: Path,
    hosts: Mapping[int, str] | None = None,
    limits: Limits | None = None,
    announce: Announce = lambda _: None,
) -> Progress:
    """Run every planned pattern in rotation, so that repetitions are spread over time.

    A run that fails is noted and its pattern tried again in later rounds; after three in a
    row this session gives it up, and the next one tries again.

    Raises:
        TraceError: another sampler works on the store.
        UsageError: nothing can be written to this folder.
    """
    limits = limits or Limits()
    with _alone(store.path):
        discarded = _clean_up(store, folder)
        session = _Session()
        while (waiting := _runnable(store, rule, launcher, session)) and not session.over(limits):
            before = session.runs
            _round(store, waiting, launcher, folder, hosts or {}, limits, session, announce)
            if session.runs == before and not session.over(limits):
                time.sleep(limits.pause)
    return _progress(store, rule, launcher, session, discarded)


def _round(
    store: RunStore,
    waiting: Sequence[Planned],
    launcher: Launcher,
    folder: Path,
    hosts: Mapping[int, str],
    limits: Limits,
    session: _Session,
    announce: Announce,
) -> None:
    """Run every waiting pattern once."""
    rate = store.measured_rate() or SLOW_NODE
    for planned in waiting:
        if session.over(limits):
            return
        placed = _placed(store, planned, hosts) if launcher.chooses_hosts else planned
        timeout = limits.timeout or _patience(placed.pattern, rate)
        try:
            seconds = _run(store, placed, launcher, folder, timeout)
        except RunFailedError as error:
            session.failed(planned, str(error))
            announce(f"pattern {planned.number}: {error}")
            continue
        session.succeeded(planned)
        announce(f"pattern {planned.number}, run {len(planned.times) + 1}: {seconds:.3f} s")


def _patience(pattern: WritePattern, rate: float) -> float:
    expected = pattern.cores_per_node * pattern.burst_bytes / rate
    return max(LEAST_PATIENCE, PATIENCE * expected)


@contextmanager
def _alone(store: Path) -> Iterator[None]:
    taken = f"{store}: another `sample run` is using this store.\nHint: wait for it, or stop it."
    with held_alone(store.with_name(f"{store.name}.lock"), otherwise=taken):
        yield


def _run_folder(store: Path, folder: Path, run: int) -> Path:
    mark = hashlib.sha256(str(store.resolve()).encode()).hexdigest()[:8]
    return folder / f".ioprism-write-{mark}-{run}"


def _clean_up(store: RunStore, folder: Path) -> int:
    """Forget runs that a crash interrupted, and remove what they left."""
    numbers = store.discard_unfinished()
    # Also those of runs that were noted, but killed before they had tidied up.
    for left in folder.glob(_run_folder(store.path, folder, 0).name.removesuffix("0") + "*"):
        shutil.rmtree(left, ignore_errors=True)
    return len(numbers)


def _runnable(
    store: RunStore, rule: StopRule, launcher: Launcher, session: _Session
) -> list[Planned]:
    return [
        planned
        for planned in store.planned()
        if not rule.finished(planned.times)
        and session.failures[planned.number] < TRIES
        and launcher.obstacle(planned.pattern) is None
    ]


def _placed(store: RunStore, planned: Planned, hosts: Mapping[int, str]) -> Planned:
    """Choose nodes of the allocation for a pattern that has none, and keep to them."""
    pattern = planned.pattern
    if pattern.node_list is not None or len(hosts) < pattern.nodes:
        return planned
    members = sorted(hosts)
    stride = 1 + planned.number % max(1, len(members) // pattern.nodes)
    chosen = tuple(members[: pattern.nodes * stride : stride])
    return replace(planned, pattern=store.place(planned, chosen))


def _run(
    store: RunStore, planned: Planned, launcher: Launcher, folder: Path, timeout: float
) -> float:
    _check_space(planned, folder)
    run = store.begin(planned.number)
    target = _run_folder(store.path, folder, run)
    try:
        _make(target)
        measured = launcher.run(planned.pattern, target, timeout=timeout)
    except BaseException as error:
        store.discard(run, reason=str(error) or type(error).__name__)
        raise
    finally:
        shutil.rmtree(target, ignore_errors=True)
    store.finish(run, seconds=measured.seconds, details=measured.details)
    return measured.seconds


def _make(folder: Path) -> None:
    try:
        folder.mkdir()
    except OSError as error:
        raise RunFailedError(f"{folder.parent}: {error.strerror or error}") from error


def _check_space(planned: Planned, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < SPACE * planned.pattern.total_bytes:
        raise RunFailedError(
            f"{folder} has {format_bytes(free)} free, a run of "
            f"{format_bytes(planned.pattern.total_bytes)} needs twice its size"
        )


def _progress(
    store: RunStore, rule: StopRule, launcher: Launcher, session: _Session, discarded: int
) -> Progress:
    planned = store.planned()
    waiting = [p for p in planned if not rule.finished(p.times)]
    obstacles = [launcher.obstacle(p.pattern) for p in waiting]
    given_up = [session.reasons[p.number] for p in waiting if session.failures[p.number] >= TRIES]
    known = sum(rule.converged(p.times) for p in planned)
    return Progress(
        runs=session.runs,
        converged=known,
        unconverged=len(planned) - len(waiting) - known,
        waiting=len(waiting),
        discarded=discarded,
        failed=session.failed_runs,
        given_up=Counter(given_up),
        obstacles=Counter(reason for reason in obstacles if reason),
    )
