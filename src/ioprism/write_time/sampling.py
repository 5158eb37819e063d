"""Which writes to measure so that a model can learn, what that costs, and measuring them.

Every planned pattern is run until its mean is known well enough; a session goes on where a crash
interrupted the one before.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ioprism.errors import RunFailedError, UsageError
from ioprism.model.result import pick
from ioprism.model.samples import MEGABYTE, WritePattern
from ioprism.storage.atomic import held_alone
from ioprism.units import format_bytes
from ioprism.write_time.launchers import TRANSFER_BYTES, Launcher
from ioprism.write_time.run_store import PlannedPattern, RunStore
from ioprism.write_time.system import SamplingRule, System

# Tables III and IV of the paper: bursts are drawn from these ranges, in MB.
BURSTS_MB = ((1, 5), (6, 25), (25, 100), (101, 250), (251, 500), (501, 1024), (1025, 2560))
LARGE_BURSTS_MB = ((2561, 5120), (5121, 7680), (7681, 10240))  # up to 128 nodes
LARGE_BURST_NODES = 128
SCALES = (1, 2, 4, 8, 16, 32, 64, 128, 200, 256, 400, 512)
STRIPE_COUNTS = ((1, 4), (5, 8), (9, 16), (17, 32), (33, 64))
RANDOM_CORES = 8  # choices for each burst range on Lustre, and for its large bursts
RANDOM_CORES_LARGE = 4
MIN_SECONDS = 5.0  # seconds; shorter writes measure start-up and noise more than storage
SPREADS = (1, 1, 2, 4)  # how many times more nodes than needed a placement is drawn from
Announce = Callable[[str], None]
FREE_SPACE_FACTOR = 2  # free space must hold this many times a run's bytes
MAX_FAILURES = 3  # failures in a row after which this session gives a pattern up
MIN_TIMEOUT = 600.0  # seconds that any run may take
TIMEOUT_FACTOR = 20.0  # times the expected time that a run may take
SLOW_NODE = 20e6  # bytes per second and node, expected while nothing is measured


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """What to sample."""

    scales: tuple[int, ...] = SCALES
    largest_burst: int | None = None  # bytes
    most_bytes: int | None = None  # of one run, all files together
    rounds: int = 1  # how often the templates are drawn
    placements: bool = True  # draw node lists; otherwise the scheduler decides
    seed: int = 1
    access: str = "write"  # or another of ACCESSES


@dataclass(frozen=True, slots=True)
class PlanCost:
    """What a plan costs: at least if every pattern converges early, at most if none does."""

    patterns: int
    largest_run_bytes: int
    fewest_bytes: int
    most_bytes: int
    fewest_seconds: float
    most_seconds: float
    node_hours: float  # at most
    too_short: int  # patterns whose writes are expected to be too short to count
    shortest: float  # seconds that count


def draw_patterns(system: System, settings: PlanSettings | None = None) -> tuple[WritePattern, ...]:
    """Draw patterns from the paper's templates, scaled to the system.

    Raises:
        UsageError: the limits leave nothing to sample.
    """
    settings = settings or PlanSettings()
    chance = np.random.default_rng(settings.seed)
    scales = [n for n in settings.scales if 1 <= n <= system.nodes]
    drawn = [
        pattern
        for _ in range(settings.rounds)
        for nodes in scales
        for pattern in _patterns_of_scale(nodes, system, settings, chance)
    ]
    if not drawn:
        raise UsageError(
            "these limits leave nothing to sample.\n"
            "Hint: allow larger bursts, or node counts that the system has."
        )
    return tuple(dict.fromkeys(drawn))


def plan_cost(patterns: Sequence[WritePattern], system: System, *, rate: float) -> PlanCost:
    """Estimate what a plan takes if a node writes at `rate` bytes per second."""
    rule = system.sampling
    once = [pattern.burst_bytes * pattern.cores_per_node / rate for pattern in patterns]
    total = sum(pattern.total_bytes for pattern in patterns)
    hours = sum(t * p.nodes for t, p in zip(once, patterns, strict=True)) / 3600
    return PlanCost(
        patterns=len(patterns),
        largest_run_bytes=max((p.total_bytes for p in patterns), default=0),
        fewest_bytes=rule.minimum_runs * total,
        most_bytes=rule.maximum_runs * total,
        fewest_seconds=rule.minimum_runs * sum(once),
        most_seconds=rule.maximum_runs * sum(once),
        node_hours=rule.maximum_runs * hours,
        too_short=len(patterns) - len(long_enough(patterns, system, rate=rate)),
        shortest=_min_seconds(system),
    )


def long_enough(
    patterns: Sequence[WritePattern], system: System, *, rate: float
) -> tuple[WritePattern, ...]:
    """Keep the patterns that last long enough to count, if a node writes at `rate`."""
    least = _min_seconds(system) * rate
    return tuple(p for p in patterns if p.cores_per_node * p.burst_bytes >= least)


def _min_seconds(system: System) -> float:
    return system.sampling.minimum_seconds or MIN_SECONDS


def _patterns_of_scale(
    nodes: int, system: System, settings: PlanSettings, chance: np.random.Generator
) -> Iterator[WritePattern]:
    ranges = BURSTS_MB + (LARGE_BURSTS_MB if nodes <= LARGE_BURST_NODES else ())
    for low, high in ranges:
        for cores in _cores(system, large=low >= LARGE_BURSTS_MB[0][0], chance=chance):
            for stripes in _stripe_counts(system, chance):
                drawn = MEGABYTE * int(chance.integers(low, high + 1))
                burst = max(drawn // TRANSFER_BYTES, 1) * TRANSFER_BYTES
                if settings.largest_burst is not None:
                    if low * MEGABYTE > settings.largest_burst:
                        continue
                    burst = min(burst, settings.largest_burst)
                placement = _placement(nodes, system, chance) if settings.placements else None
                pattern = WritePattern(
                    nodes, cores, burst, None, stripes, placement, access=settings.access
                )
                if settings.most_bytes is None or pattern.total_bytes <= settings.most_bytes:
                    yield pattern


def _cores(system: System, *, large: bool, chance: np.random.Generator) -> list[int]:
    most = system.cores_per_node
    if system.filesystem != "lustre":
        return [2**power for power in range(most.bit_length()) if 2**power <= most]
    count = min(RANDOM_CORES_LARGE if large else RANDOM_CORES, most)
    return sorted(int(c) + 1 for c in chance.choice(most, size=count, replace=False))


def _stripe_counts(system: System, chance: np.random.Generator) -> list[int | None]:
    if system.filesystem != "lustre":
        return [None]
    targets = system.storage.targets
    fitting = [(low, min(high, targets)) for low, high in STRIPE_COUNTS if low <= targets]
    return [int(chance.integers(low, high + 1)) for low, high in fitting]


def _placement(nodes: int, system: System, chance: np.random.Generator) -> tuple[int, ...] | None:
    """Draw nodes, in a row or scattered: skew and aggregate load must not always move together."""
    if not system.stages:
        return None
    block = min(system.nodes, nodes * int(chance.choice(SPREADS)))
    first = int(chance.integers(0, system.nodes - block + 1))
    members = np.sort(chance.choice(block, size=nodes, replace=False))
    return tuple(int(first + member) for member in members)


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """When a session ends, and how long it waits."""

    runs: int | None = None
    seconds: float | None = None  # after which no run is started
    timeout: float | None = None  # seconds of one run; None: by its size
    pause: float = 60.0  # seconds to wait after a round in which every run failed


@dataclass(frozen=True, slots=True)
class SamplingProgress:
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

    def to_dict(self) -> dict[str, int]:
        """Return what `ioprism write-time sample run --json` says."""
        counts = pick(self, "runs", "converged", "unconverged", "waiting", "discarded", "failed")
        return {**counts, "left_aside": sum(self.given_up.values())}


def run_session(
    store: RunStore,
    *,
    rule: SamplingRule,
    launcher: Launcher,
    folder: Path,
    hosts: Mapping[int, str] | None = None,
    limits: SessionLimits | None = None,
    announce: Announce = lambda _: None,
) -> SamplingProgress:
    """Run every planned pattern in rotation, so that repetitions are spread over time.

    A run that fails is noted and its pattern tried again in later rounds; after three in a
    row this session gives it up, and the next one tries again.

    Raises:
        TraceError: another sampler works on the store.
        UsageError: nothing can be written to this folder.
    """
    lock = store.path.with_name(f"{store.path.name}.lock")
    taken = "another `sample run` is using this store.\nHint: wait for it, or stop it."
    with held_alone(lock, otherwise=f"{store.path}: {taken}"):
        limits = limits or SessionLimits()
        session = _Session(store, rule, launcher, folder, hosts or {}, limits, announce)
        session.clean_up()
        while (waiting := session.runnable()) and not session.over:
            before = session.runs
            session.run_once(waiting)
            if session.runs == before and not session.over:
                time.sleep(limits.pause)
    return session.progress()


@dataclass(slots=True)
class _Session:
    """What all steps of a session share, and what happened so far."""

    store: RunStore
    rule: SamplingRule
    launcher: Launcher
    folder: Path
    hosts: Mapping[int, str]
    limits: SessionLimits
    announce: Announce
    began: float = field(default_factory=time.monotonic)
    runs: int = 0
    discarded: int = 0  # runs that a crash had interrupted
    failed_runs: int = 0
    failures: Counter[int] = field(default_factory=Counter)  # in a row, by pattern
    reasons: dict[int, str] = field(default_factory=dict)  # the last failure of each pattern

    @property
    def over(self) -> bool:
        """Whether no further run may start."""
        spent = time.monotonic() - self.began
        most, seconds = self.limits.runs, self.limits.seconds
        return (most is not None and self.runs >= most) or (
            seconds is not None and spent >= seconds
        )

    def clean_up(self) -> None:
        """Forget runs that a crash interrupted, and remove what they left."""
        self.discarded = len(self.store.discard_unfinished())
        # Also those of runs that were noted, but killed before they had tidied up.
        for left in self.folder.glob(self._run_folder("*").name):
            shutil.rmtree(left, ignore_errors=True)

    def runnable(self) -> list[PlannedPattern]:
        """The patterns that are not finished, not given up, and can run here."""
        return [
            planned
            for planned in self.store.planned()
            if not self.rule.is_finished(planned.times)
            and self.failures[planned.number] < MAX_FAILURES
            and self.launcher.obstacle(planned.pattern) is None
        ]

    def run_once(self, waiting: Sequence[PlannedPattern]) -> None:
        """Run every waiting pattern once."""
        rate = self.store.measured_rate() or SLOW_NODE
        for planned in waiting:
            if self.over:
                return
            placed = self._place(planned) if self.launcher.chooses_hosts else planned
            expected = placed.pattern.cores_per_node * placed.pattern.burst_bytes / rate
            timeout = self.limits.timeout or max(MIN_TIMEOUT, TIMEOUT_FACTOR * expected)
            try:
                seconds = self._run(placed, timeout)
            except RunFailedError as error:
                self.failed_runs += 1
                self.failures[planned.number] += 1
                self.reasons[planned.number] = str(error)
                self.announce(f"pattern {planned.number}: {error}")
                continue
            self.runs += 1
            self.failures[planned.number] = 0
            number = len(planned.times) + 1
            self.announce(f"pattern {planned.number}, run {number}: {seconds:.3f} s")

    def progress(self) -> SamplingProgress:
        """Say what the session did."""
        planned = self.store.planned()
        waiting = [p for p in planned if not self.rule.is_finished(p.times)]
        obstacles = [self.launcher.obstacle(p.pattern) for p in waiting]
        given_up = [p.number for p in waiting if self.failures[p.number] >= MAX_FAILURES]
        known = sum(self.rule.is_converged(p.times) for p in planned)
        return SamplingProgress(
            runs=self.runs,
            converged=known,
            unconverged=len(planned) - len(waiting) - known,
            waiting=len(waiting),
            discarded=self.discarded,
            failed=self.failed_runs,
            given_up=Counter(self.reasons[number] for number in given_up),
            obstacles=Counter(reason for reason in obstacles if reason),
        )

    def _run_folder(self, run: object) -> Path:
        mark = hashlib.sha256(str(self.store.path.resolve()).encode()).hexdigest()[:8]
        return self.folder / f".ioprism-write-{mark}-{run}"

    def _place(self, planned: PlannedPattern) -> PlannedPattern:
        """Choose nodes of the allocation for a pattern that has none, and keep to them."""
        pattern = planned.pattern
        if pattern.node_list is not None or len(self.hosts) < pattern.nodes:
            return planned
        members = sorted(self.hosts)
        stride = 1 + planned.number % max(1, len(members) // pattern.nodes)
        chosen = tuple(members[: pattern.nodes * stride : stride])
        return replace(planned, pattern=self.store.place(planned, chosen))

    def _run(self, planned: PlannedPattern, timeout: float) -> float:
        free, needed = shutil.disk_usage(self.folder).free, planned.pattern.total_bytes
        if free < FREE_SPACE_FACTOR * needed:
            raise RunFailedError(
                f"{self.folder} has {format_bytes(free)} free, a run of {format_bytes(needed)} "
                "needs twice its size"
            )
        run = self.store.begin(planned.number)
        target = self._run_folder(run)
        try:
            try:
                target.mkdir()
            except OSError as error:
                raise RunFailedError(f"{self.folder}: {error.strerror or error}") from error
            measured = self.launcher.run(planned.pattern, target, timeout=timeout)
        except BaseException as error:
            self.store.discard(run, reason=str(error) or type(error).__name__)
            raise
        finally:
            shutil.rmtree(target, ignore_errors=True)
        self.store.finish(run, seconds=measured.seconds, details=measured.details)
        return measured.seconds
