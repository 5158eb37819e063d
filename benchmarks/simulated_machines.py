"""Two simulated machines, for write times at scales and seeds that no measurement covers.

Built from the descriptions of Cetus and Titan: every component of every stage has a speed of its
own, a stage takes as long as its busiest component, stages overlap as in a pipeline (a p-norm of
their times), and every run meets stragglers, a background load that may drift, and rare events.
The truth of a stage comes from the loads of single components, not from the model's features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ioprism.model.samples import MEGABYTE, Sample, WritePattern
from ioprism.write_time.sampling import PlanSettings, draw_patterns
from ioprism.write_time.system import System, bundled_system

FloatArray = npt.NDArray[np.float64]

TRAINING = (1, 2, 4, 8, 16, 32, 64, 128)
TEST = (200, 256, 400, 512, 1024, 2048)

# MB/s of one component, and files/s of the metadata service.
CETUS_SPEEDS: Mapping[str, float] = {
    "compute node": 1500.0,
    "bridge node": 2400.0,
    "link": 1800.0,
    "I/O node": 2600.0,
    "network": 150_000.0,
    "NSD server": 2500.0,
    "NSD": 420.0,
    "metadata": 2500.0,
    "subblock": 60_000.0,  # subblocks/s
}
TITAN_SPEEDS: Mapping[str, float] = {
    "compute node": 1200.0,
    "I/O router": 2600.0,
    "network": 450_000.0,
    "OSS": 3200.0,
    "OST": 500.0,
    "metadata": 12_000.0,
}


@dataclass(frozen=True, slots=True)
class Machine:
    """What a simulated machine is like."""

    name: str
    speeds: Mapping[str, float]
    overlap: float = 3.0  # exponent of the norm over stages: 1 adds them up, large takes the worst
    creates_first: bool = False  # files are created before data flows, not meanwhile
    start: float = 1.5  # seconds that every write takes
    unevenness: float = 0.05  # of the speeds of equal components
    noise: float = 0.04  # of the background load, between runs
    straggling: float = 0.012  # mean delay of a process, as a share of the write
    events: float = 0.02  # share of runs that meet a rare event
    contention: float = 0.0  # loss of a component's speed per ln(1 + streams) that share it
    drift: float = 0.0  # amplitude of a slow change of the load, over all samples
    lock: float = 0.004  # seconds until a target's locks are passed to one more process
    reading: float = 1.2  # speed of storage when it reads, over that when it writes
    seed: int = 1

    @property
    def system(self) -> System:
        """The machine's description."""
        return bundled_system(self.name)


def machine(
    name: str,
    *,
    seed: int,
    speed: float = 1.0,
    noise: float = 1.0,
    drift: float = 0.0,
    contention: float = 0.0,
) -> Machine:
    """Return a machine; `speed` above 1 changes every stage's speed by up to that factor."""
    chance = np.random.default_rng([seed, len(name)])
    base = CETUS_SPEEDS if name == "cetus" else TITAN_SPEEDS
    change = np.exp(chance.uniform(-1, 1, size=len(base)) * np.log(speed))
    return Machine(
        name,
        {stage: s * float(c) for (stage, s), c in zip(base.items(), change, strict=True)},
        overlap=float(chance.uniform(2.0, 4.0)),
        creates_first=bool(chance.random() < 0.5),
        noise=0.04 * noise,
        straggling=0.012 * noise,
        contention=contention,
        drift=drift,
        lock=0.004 * float(chance.uniform(0.5, 2.0)),
        reading=float(chance.uniform(0.8, 1.6)),
        seed=seed,
    )


@dataclass(slots=True)
class Simulator:
    """Measures patterns on a machine."""

    machine: Machine
    chance: np.random.Generator = field(init=False)
    system: System = field(init=False)
    spread: dict[str, FloatArray] = field(init=False)

    def __post_init__(self) -> None:
        self.chance = np.random.default_rng(self.machine.seed)
        self.system = self.machine.system
        counts = {name: stage.count for name, stage in self.system.stages.items()}
        counts |= {"target": self.system.storage.targets, "server": self.system.storage.servers}
        self.spread = {
            name: self.chance.lognormal(0.0, self.machine.unevenness, size=count)
            for name, count in counts.items()
        }

    def stage_seconds(self, pattern: WritePattern) -> dict[str, float]:
        """Seconds that every stage alone would need."""
        speeds = self.machine.speeds
        megabytes = pattern.burst_bytes / MEGABYTE
        of_node = pattern.cores_per_node * megabytes
        opening = 1.0 if pattern.access == "write" else 0.2  # creating a file takes longest
        found = {
            "metadata": opening * pattern.processes / speeds["metadata"],
            "compute node": of_node / speeds["compute node"],
            "network": pattern.processes * megabytes / speeds["network"],
        }
        titles = {"bridge": "bridge node", "link": "link", "io_node": "I/O node"}
        titles["router"] = "I/O router"
        for name, stage in self.system.stages.items():
            nodes = np.array(pattern.node_list or range(pattern.nodes))
            sharing = np.bincount(stage.component_of[nodes], minlength=stage.count)
            busiest = float((sharing / self.spread[name]).max())
            busiest *= self._crowded(float(sharing.max()) * pattern.cores_per_node)
            found[titles[name]] = busiest * of_node / speeds[titles[name]]
        return found | self._storage_seconds(pattern)

    def seconds(self, pattern: WritePattern) -> float:
        """Seconds of a quiet run."""
        stages = self.stage_seconds(pattern)
        first = stages.pop("metadata") if self.machine.creates_first else 0.0
        times = np.array(list(stages.values()))
        exponent = self.machine.overlap
        busy = float((times**exponent).sum()) ** (1.0 / exponent)
        return float(self.machine.start + first + busy)

    def sample(self, pattern: WritePattern, *, when: float) -> Sample:
        """Repeat a pattern as the sampling rule asks; `when` is the share of the campaign done."""
        quiet = self.seconds(pattern)
        rule = self.system.sampling
        load = 1.0 + self.machine.drift * np.sin(2 * np.pi * (1.3 * when + 0.1))
        times: list[float] = []
        while not rule.is_finished(times):
            times.append(quiet * load * self._disturbance(pattern))
        return Sample(pattern, tuple(times))

    def _disturbance(self, pattern: WritePattern) -> float:
        machine = self.machine
        slowest = self.chance.exponential(
            machine.straggling, size=min(pattern.processes, 4096)
        ).max()
        background = float(self.chance.lognormal(0.0, machine.noise))
        event = 1.0
        if self.chance.random() < machine.events:
            event += 0.2 * float(self.chance.pareto(2.0))
        return background * (1.0 + float(slowest)) * event

    def _crowded(self, streams: float) -> float:
        """How much slower a component is for being shared."""
        return 1.0 + self.machine.contention * float(np.log1p(streams))

    def _storage_seconds(self, pattern: WritePattern) -> dict[str, float]:
        storage, speeds = self.system.storage, self.machine.speeds
        targets = self._target_megabytes(pattern)
        servers = np.bincount(np.arange(storage.targets) % storage.servers, weights=targets)
        files = float(targets.max()) * MEGABYTE / pattern.burst_bytes
        speed = self.machine.reading if pattern.access.endswith("read") else 1.0
        on_target = float((targets / self.spread["target"]).max()) * self._crowded(files) / speed
        on_server = float((servers / self.spread["server"]).max()) * self._crowded(files) / speed
        locks = {}
        if pattern.access == "shared-write":  # readers share a lock
            others = pattern.processes / np.count_nonzero(targets) - 1.0
            locks = {"file locks": self.machine.lock * max(others, 0.0)}
        if self.system.filesystem == "lustre":
            return {"OSS": on_server / speeds["OSS"], "OST": on_target / speeds["OST"], **locks}
        rest = pattern.file_bytes % storage.block_bytes
        pieces = -(-rest // (storage.block_bytes // storage.subblocks))
        return {
            "NSD server": on_server / speeds["NSD server"],
            "NSD": on_target / speeds["NSD"],
            "subblock": pattern.files * pieces / speeds["subblock"],
            **locks,
        }

    def _target_megabytes(self, pattern: WritePattern) -> FloatArray:
        """MB on every target: files in a row on Lustre, at a random start each on GPFS."""
        storage = self.system.storage
        count = storage.targets
        if self.system.filesystem == "lustre":
            stripe = pattern.stripe_bytes or storage.block_bytes
            width = min(pattern.stripe_count or storage.stripe_count, count)
            starts = (int(self.chance.integers(count)) + np.arange(pattern.files)) % count
        else:
            stripe, width = storage.block_bytes, count
            starts = self.chance.integers(count, size=pattern.files)
        stripes = -(-pattern.file_bytes // stripe)
        rounds, rest = divmod(stripes, width)
        begun = np.bincount(starts, minlength=count).astype(np.float64)
        load = rounds * _window(begun, width) + _window(begun, rest)
        size = pattern.file_bytes / stripes / MEGABYTE
        return load * size


def _window(begun: FloatArray, width: int) -> FloatArray:
    """For every target, the files that began on it or on one of the `width` - 1 before it."""
    sums = np.concatenate([[0.0], np.cumsum(np.concatenate([begun, begun]))])
    end = np.arange(len(begun)) + len(begun) + 1
    window: FloatArray = sums[end] - sums[end - width]
    return window


def patterns(
    system: System, *, scales: Sequence[int], each: int, seed: int, access: str = "write"
) -> list[WritePattern]:
    """Draw patterns of the paper's templates, at most `each` for a node count."""
    found: list[WritePattern] = []
    rounds = 1 + each // 30
    settings = PlanSettings(scales=tuple(scales), rounds=rounds, seed=seed, access=access)
    drawn = draw_patterns(system, settings)
    chance = np.random.default_rng(seed)
    for nodes in scales:
        here = [p for p in drawn if p.nodes == nodes]
        chosen = chance.permutation(len(here))[:each]
        found += [here[int(number)] for number in np.sort(chosen)]
    return found


def measure(
    which: Machine,
    *,
    training: int = 160,
    test: int = 200,
    scales: Sequence[int] = (*TRAINING, *TEST),
    access: str = "write",
) -> list[Sample]:
    """Sample a machine in random order: `training` or `test` patterns for each node count."""
    simulator = Simulator(which)
    small = [n for n in scales if n <= max(TRAINING)]
    large = [n for n in scales if n > max(TRAINING)]
    wanted = patterns(which.system, scales=small, each=training, seed=which.seed, access=access)
    if large:
        wanted += patterns(
            which.system, scales=large, each=test, seed=which.seed + 1, access=access
        )
    order = simulator.chance.permutation(len(wanted))
    measured = {
        int(number): simulator.sample(wanted[number], when=position / len(wanted))
        for position, number in enumerate(order)
    }
    return [measured[number] for number in range(len(wanted))]
