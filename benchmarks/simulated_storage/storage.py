"""What one request costs the targets it falls on: bytes, seeks and locks."""

from __future__ import annotations

import numpy as np

from benchmarks.simulated_storage.hardware import FileSystem, Floats
from benchmarks.simulated_storage.program import Call, File

DRIFT_STEP = 4.0  # seconds for which other users' load on a target stays as it is
DRIFTS = 512


class Placement:
    """Where a file's bytes lie, who holds its lock blocks, and where reads left off."""

    __slots__ = ("blocks", "ends", "stripe", "targets", "touched_by")

    def __init__(self, file: File, number: int, targets: int) -> None:
        self.targets = file.targets or (number % targets,)
        self.stripe = file.stripe_size
        self.blocks: dict[int, int] = {}  # lock block -> the rank that wrote it last
        self.ends: dict[int, int] = {}  # rank -> where its last access ended
        self.touched_by = -1

    def pieces(self, call: Call) -> dict[int, int]:
        """Bytes by target."""
        count = len(self.targets)
        if count == 1:
            return {self.targets[0]: call.bytes}
        by_target: dict[int, int] = {}
        position, left = call.offset, call.bytes
        while left > 0:
            target = self.targets[position // self.stripe % count]
            part = min(left, self.stripe - position % self.stripe)
            by_target[target] = by_target.get(target, 0) + part
            position += part
            left -= part
        return by_target

    def conflicts(self, call: Call, rank: int) -> dict[int, int]:
        """Lock blocks by target that another rank wrote last; they are this rank's now."""
        first, last = call.offset // self.stripe, (call.offset + call.bytes - 1) // self.stripe
        taken: dict[int, int] = {}
        for block in range(first, last + 1):
            if self.blocks.get(block, rank) != rank:
                target = self.targets[block % len(self.targets)]
                taken[target] = taken.get(target, 0) + 1
            self.blocks[block] = rank
        return taken

    def seeks(self, call: Call, rank: int) -> bool:
        """Whether an access does not continue the rank's last one; the first one is free."""
        expected = self.ends.get(rank, call.offset)
        self.ends[rank] = call.offset + call.bytes
        return call.offset != expected


class Costs:
    """Seconds that a file system's targets need for their pieces of a call."""

    def __init__(self, system: FileSystem, rng: np.random.Generator) -> None:
        self.system = system
        self.rates = {"write": system.rate, "read": system.read_rate or system.rate}
        drift: Floats = rng.lognormal(0.0, system.unsteady, (system.targets, DRIFTS))
        self.drift = drift.tolist() if system.unsteady else None

    def pieces(self, call: Call, rank: int, place: Placement) -> dict[int, float]:
        """Work by target, before noise and what slows the target down."""
        system = self.system
        if call.operation == "sync":
            return dict.fromkeys(place.targets, system.sync_cost)
        rate = self.rates[call.operation]
        work = {t: system.request_cost + part / rate for t, part in place.pieces(call).items()}
        if call.operation == "write":
            for target, count in place.conflicts(call, rank).items():
                work[target] += count * system.lock_cost
        if place.seeks(call, rank) and call.operation == "read":
            work = {target: seconds + system.seek_cost for target, seconds in work.items()}
        return work

    def slowness(self, target: int, now: float) -> float:
        """The factor on a target's service times at a moment."""
        system = self.system
        factor = system.slow.get(target, 1.0)
        for window in system.windows:
            if window.start <= now < window.end:
                factor *= window.factor
        if self.drift is not None:
            factor *= self.drift[target][int(now / DRIFT_STEP) % DRIFTS]
        return factor
