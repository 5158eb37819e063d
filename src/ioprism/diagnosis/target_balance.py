"""How much of a job's data each storage target takes, and how many ranks share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ioprism.diagnosis.evidence import Evidence
from ioprism.model.usage import EVERYONE, Striping, Usage

FEWEST_TARGETS = 4  # to say that one of them is slow


@dataclass(frozen=True, slots=True)
class TargetUse:
    """The load of each storage target that holds files."""

    bytes: Mapping[int, int]  # by target; exact for per-call traces
    ranks: Mapping[int, int]  # by target: ranks with files on it
    seconds: float  # in calls on these files, of the rank most concerned
    files: Sequence[int]

    @property
    def total(self) -> int:
        """Bytes on all targets."""
        return sum(self.bytes.values())


def target_use(evidence: Evidence) -> TargetUse | None:
    """Return the load of storage targets, or None where no layout is known."""
    striping = {f: s for f, s in evidence.files.striping.items() if s.size > 0 and s.targets}
    usage = evidence.usages.get("posix") or evidence.usages.get("mpiio")
    if not striping or usage is None:
        return None
    sizes = usage.bytes
    times = usage.seconds
    entries = [p for p, file in enumerate(usage.file) if file in striping and sizes[p]]
    loads = (evidence.targets or {}).get(usage.layer) or _spread(usage, entries, striping)
    if not loads:
        return None
    chosen = set(entries)
    seconds = [t if p in chosen else 0.0 for p, t in enumerate(times)]
    files = list(dict.fromkeys(usage.file[place] for place in entries))
    return TargetUse(
        loads, _ranks(evidence, usage, entries, striping), evidence.held_up(usage, seconds), files
    )


@dataclass(frozen=True, slots=True)
class SlowTarget:
    """A storage target that takes far longer than others for the same amount of data."""

    target: int
    files: Sequence[int]
    seconds: float  # of the rank most concerned
    rate: float  # bytes per second of its calls
    peers_rate: float  # of the median target
    peers: int

    @property
    def excess(self) -> float:
        """Seconds beyond those at the speed of the others."""
        return self.seconds * max(0.0, 1 - self.rate / self.peers_rate)


def slow_target(evidence: Evidence, *, factor: float) -> SlowTarget | None:
    """Return the target that is slower than the median one by this factor, the worst of them.

    Only files that lie on one target each tell targets apart, and there must be some others.
    """
    alone = {f: s.targets[0] for f, s in evidence.files.striping.items() if len(s.targets) == 1}
    usage = evidence.usages.get("posix") or evidence.usages.get("mpiio")
    if not alone or usage is None:
        return None
    rates = _single_target_rates(usage, alone)
    if len(rates) < FEWEST_TARGETS:
        return None
    slowest = min(rates, key=lambda target: rates[target])
    others = sorted(rate for target, rate in rates.items() if target != slowest)
    # The others must agree: where all differ, being last means nothing.
    if factor * rates[slowest] > others[0]:
        return None
    files = [file for file, target in alone.items() if target == slowest]
    inside = [alone.get(file) == slowest for file in usage.file]
    held = [t if chosen else 0.0 for t, chosen in zip(usage.seconds, inside, strict=True)]
    middle = others[len(others) // 2]
    return SlowTarget(
        slowest, files, evidence.held_up(usage, held), rates[slowest], middle, len(others)
    )


def _single_target_rates(usage: Usage, alone: Mapping[int, int]) -> dict[int, float]:
    """Bytes per second in calls, by target."""
    sizes: dict[int, int] = {}
    times: dict[int, float] = {}
    data = [sum(parts) for parts in zip(*(m.seconds for m in usage.moves.values()), strict=True)]
    for file, size, seconds in zip(usage.file, usage.bytes, data, strict=True):
        if file in alone:
            target = alone[file]
            sizes[target] = sizes.get(target, 0) + size
            times[target] = times.get(target, 0.0) + seconds
    return {t: size / times[t] for t, size in sizes.items() if size and times[t] > 0}


def _spread(usage: Usage, entries: list[int], striping: Mapping[int, Striping]) -> dict[int, int]:
    """Lay each file's traffic evenly over the bytes from its start to the last one touched."""
    loads: dict[int, int] = {}
    moved: dict[int, int] = {}
    reach: dict[int, int] = {}
    for moves in usage.moves.values():
        for place in entries:
            file = usage.file[place]
            moved[file] = moved.get(file, 0) + moves.bytes[place]
            extent = moves.extent[place] if moves.extent is not None else moves.bytes[place]
            reach[file] = max(reach.get(file, 0), extent)
    for file, size in moved.items():
        for target, part in stripe_bytes(striping[file], max(1, reach[file])).items():
            loads[target] = loads.get(target, 0) + round(size * part / max(1, reach[file]))
    return loads


def stripe_bytes(striping: Striping, extent: int) -> dict[int, int]:
    """Return how many of a file's first bytes are on each target."""
    count = len(striping.targets)
    whole, rest = divmod(extent, striping.size)
    loads: dict[int, int] = {}
    for place, target in enumerate(striping.targets):
        stripes = whole // count + (1 if place < whole % count else 0)
        size = stripes * striping.size + (rest if place == whole % count else 0)
        if size:
            loads[target] = loads.get(target, 0) + size
    return loads


def _ranks(
    evidence: Evidence, usage: Usage, entries: list[int], striping: Mapping[int, Striping]
) -> dict[int, int]:
    users: dict[int, set[int]] = {}
    everyone: set[int] = set()
    for place in entries:
        targets = striping[usage.file[place]].targets
        if usage.rank[place] == EVERYONE:
            everyone.update(targets)
        else:
            for target in targets:
                users.setdefault(target, set()).add(usage.rank[place])
    counts = {target: len(ranks) for target, ranks in users.items()}
    return counts | dict.fromkeys(everyone, evidence.ranks)
