"""Which writes to measure so that a model can learn, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ioprism.errors import UsageError
from ioprism.model.samples import MEGABYTE, WritePattern
from ioprism.write_time.system import System

# Tables III and IV of the paper: bursts are drawn from these ranges, in MB.
BURSTS_MB = ((1, 5), (6, 25), (25, 100), (101, 250), (251, 500), (501, 1024), (1025, 2560))
LARGE_BURSTS_MB = ((2561, 5120), (5121, 7680), (7681, 10240))  # up to 128 nodes
LARGE_BURST_NODES = 128
SCALES = (1, 2, 4, 8, 16, 32, 64, 128, 200, 256, 400, 512)
STRIPE_COUNTS = ((1, 4), (5, 8), (9, 16), (17, 32), (33, 64))
RANDOM_CORES = 8  # choices for each burst range on Lustre, and for its large bursts
RANDOM_CORES_LARGE = 4
WHOLE = 2**20  # bursts are multiples: benchmarks write in transfers of 1 MiB
SHORTEST = 5.0  # seconds; shorter writes measure start-up and noise more than storage
SPREADS = (1, 1, 2, 4)  # how many times more nodes than needed a placement is drawn from


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """What to sample."""

    scales: tuple[int, ...] = SCALES
    largest_burst: int | None = None  # bytes
    most_bytes: int | None = None  # of one run, all files together
    rounds: int = 1  # how often the templates are drawn
    placements: bool = True  # draw node lists; otherwise the scheduler decides
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Cost:
    """What a plan takes, from all patterns converging at once to none converging."""

    patterns: int
    largest_run_bytes: int
    fewest_bytes: int
    most_bytes: int
    fewest_seconds: float
    most_seconds: float
    node_hours: float  # at most
    too_short: int  # patterns whose writes are expected to be too short to count
    shortest: float  # seconds that count


def plan(system: System, settings: PlanSettings | None = None) -> tuple[WritePattern, ...]:
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
        for pattern in _of_scale(nodes, system, settings, chance)
    ]
    if not drawn:
        raise UsageError(
            "these limits leave nothing to sample.\n"
            "Hint: allow larger bursts, or node counts that the system has."
        )
    return tuple(dict.fromkeys(drawn))


def cost(patterns: Sequence[WritePattern], system: System, *, rate: float) -> Cost:
    """Estimate what a plan takes if a node writes at `rate` bytes per second."""
    rule = system.sampling
    once = [pattern.burst_bytes * pattern.cores_per_node / rate for pattern in patterns]
    total = sum(pattern.total_bytes for pattern in patterns)
    hours = sum(t * p.nodes for t, p in zip(once, patterns, strict=True)) / 3600
    return Cost(
        patterns=len(patterns),
        largest_run_bytes=max((p.total_bytes for p in patterns), default=0),
        fewest_bytes=rule.minimum_runs * total,
        most_bytes=rule.maximum_runs * total,
        fewest_seconds=rule.minimum_runs * sum(once),
        most_seconds=rule.maximum_runs * sum(once),
        node_hours=rule.maximum_runs * hours,
        too_short=len(patterns) - len(long_enough(patterns, system, rate=rate)),
        shortest=_shortest(system),
    )


def long_enough(
    patterns: Sequence[WritePattern], system: System, *, rate: float
) -> tuple[WritePattern, ...]:
    """Keep the patterns that last long enough to count, if a node writes at `rate`."""
    least = _shortest(system) * rate
    return tuple(p for p in patterns if p.cores_per_node * p.burst_bytes >= least)


def _shortest(system: System) -> float:
    return system.sampling.minimum_seconds or SHORTEST


def _whole(size: int) -> int:
    """Round down to whole transfers, but not to none."""
    return max(size // WHOLE, 1) * WHOLE


def _of_scale(
    nodes: int, system: System, settings: PlanSettings, chance: np.random.Generator
) -> Iterator[WritePattern]:
    ranges = BURSTS_MB + (LARGE_BURSTS_MB if nodes <= LARGE_BURST_NODES else ())
    for low, high in ranges:
        for cores in _cores(system, large=low >= LARGE_BURSTS_MB[0][0], chance=chance):
            for stripes in _stripe_counts(system, chance):
                burst = _whole(MEGABYTE * int(chance.integers(low, high + 1)))
                if settings.largest_burst is not None:
                    if low * MEGABYTE > settings.largest_burst:
                        continue
                    burst = min(burst, settings.largest_burst)
                placement = _placement(nodes, system, chance) if settings.placements else None
                pattern = WritePattern(nodes, cores, burst, None, stripes, placement)
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
