"""When a job does I/O, and how the storage targets of the file system are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioprism.diagnosis.evidence import Evidence, sum_by
from ioprism.diagnosis.limits import MAJORITY, NEARLY_ALL, Limits
from ioprism.diagnosis.rules.rule import (
    SLOWEST_RANKS,
    WHOLE_JOB,
    Answer,
    Hit,
    Rule,
    Unknown,
    share,
    times_in,
    worst,
)
from ioprism.model.result import pick
from ioprism.model.usage import EVERYONE, Striping, Usage
from ioprism.model.verdict import Severity, Subject

if TYPE_CHECKING:  # a small log is judged without a table library
    from ioprism.phase_detection.find import LayerPhases, Phase


@dataclass(frozen=True, slots=True)
class TargetUse:
    """The load of each storage target that holds files."""

    bytes: Mapping[int, float]  # by target; exact for per-call traces
    ranks: Mapping[int, int]  # by target: ranks with files on it
    seconds: float  # in calls on these files, of the rank most concerned
    files: Sequence[int]

    @property
    def total(self) -> float:
        """Bytes on all targets."""
        return sum(self.bytes.values())


def target_use(evidence: Evidence) -> TargetUse | None:
    """Return the load of storage targets, or None where no layout is known."""
    striping = {f: s for f, s in evidence.files.striping.items() if s.size > 0 and s.targets}
    usage = evidence.usages.get("posix") or evidence.usages.get("mpiio")
    if not striping or usage is None:
        return None
    sizes = usage.bytes
    entries = [p for p, file in enumerate(usage.file) if file in striping and sizes[p]]
    loads = (evidence.targets or {}).get(usage.layer) or _spread(usage, entries, striping)
    if not loads:
        return None
    seconds = [0.0] * len(usage)
    for place in entries:
        seconds[place] = usage.seconds[place]
    files = list(dict.fromkeys(usage.file[place] for place in entries))
    return TargetUse(
        loads, _ranks(evidence, usage, entries, striping), evidence.held_up(usage, seconds), files
    )


def slow_target(evidence: Evidence) -> tuple[int, Mapping[int, float], Mapping[int, int]] | None:
    """Return the target that is slower than all others by a factor, the rate of each, and files.

    Only files on one target each show the rate of a target, and there must be some others. These
    must agree: where all differ, being last means nothing.
    """
    alone = {f: s.targets[0] for f, s in evidence.files.striping.items() if len(s.targets) == 1}
    usage = evidence.usages.get("posix") or evidence.usages.get("mpiio")
    if not alone or usage is None:
        return None
    read, write = (moves.seconds for moves in usage.moves.values())
    places = [place for place, file in enumerate(usage.file) if file in alone]
    targets = [alone[usage.file[place]] for place in places]
    sizes = sum_by(targets, (usage.bytes[place] for place in places))
    times = sum_by(targets, (read[place] + write[place] for place in places))
    rates = {t: size / times[t] for t, size in sizes.items() if size and times[t] > 0}
    if len(rates) < Limits().min_peers:
        return None
    slowest, second, *_ = sorted(rates, key=lambda target: rates[target])
    if evidence.thresholds.slow_target_factor * rates[slowest] > rates[second]:
        return None
    return slowest, rates, alone


def _spread(usage: Usage, entries: list[int], striping: Mapping[int, Striping]) -> dict[int, float]:
    """Lay each file's traffic evenly over the bytes from its start to the last one touched."""
    loads: dict[int, float] = {}
    reach: dict[int, int] = {}
    for moves in usage.moves.values():
        extent = moves.bytes if moves.extent is None else moves.extent
        for place in entries:
            file = usage.file[place]
            reach[file] = max(reach.get(file, 1), extent[place])
    moved = sum_by((usage.file[p] for p in entries), (usage.bytes[p] for p in entries))
    for file, size in moved.items():
        for target, part in stripe_bytes(striping[file], reach[file]).items():
            loads[target] = loads.get(target, 0) + round(size * part / reach[file])
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
    for place in entries:
        for target in striping[usage.file[place]].targets:
            users.setdefault(target, set()).add(usage.rank[place])
    return {
        target: evidence.ranks if EVERYONE in ranks else len(ranks)
        for target, ranks in users.items()
    }


FEWEST_PHASES = 3  # fewer show the ranks of the job, not what its phases have in common
NEEDS = "a per-call trace: Darshan with DXT_ENABLE_IO_TRACE=1"


def _outermost(evidence: Evidence) -> tuple[str, LayerPhases] | Unknown | None:
    """The phases of the interface that the program called."""
    if not any(evidence.moved.values()):
        return None
    if evidence.phases is None:
        return Unknown(NEEDS)
    for layer in ("mpiio", *evidence.base_layers):
        if layer in evidence.phases:
            return layer, evidence.phases[layer]
    return Unknown(NEEDS)


def many_phases(evidence: Evidence) -> Answer:
    """I/O is spread over very many phases."""
    outermost = _outermost(evidence)
    if not isinstance(outermost, tuple):
        return outermost
    layer, phases = outermost
    count = len(phases.phases)
    if count <= evidence.thresholds.phases:
        return None
    busy = sum(phase.slowest.time for phase in phases.phases)
    size = sum(phase.bytes for phase in phases.phases) / count
    numbers = {"phases": count, "bytes_per_phase": size, "seconds": busy}
    return Hit(numbers, busy, interface=layer)


def phase_stragglers(evidence: Evidence) -> Answer:
    """In most phases, all ranks wait for one that takes far longer than the middle one."""
    outermost = _outermost(evidence)
    if not isinstance(outermost, tuple):
        return outermost
    layer, phases = outermost
    limits = evidence.thresholds
    waiting = [
        phase
        for phase in phases.phases
        if phase.ranks > 1 and phase.slowest.time >= limits.straggler_factor * phase.typical
    ]
    if len(phases.phases) < FEWEST_PHASES or evidence.ranks < 2:
        return None
    part = share(len(waiting), len(phases.phases))
    lost = sum(phase.slowest.time - phase.typical for phase in waiting)
    if part <= limits.phase_stragglers or lost < limits.imbalance_seconds:
        return None
    ranks = Counter(phase.slowest.rank for phase in waiting)
    most = max(ranks, key=lambda rank: ranks[rank])
    return Hit(
        {"phases": len(waiting), "of": len(phases.phases), "share": part, "seconds": lost},
        lost,
        _worst_phases(waiting),
        Subject("rank", str(most)),
        interface=layer,
        ranks=list(ranks),
    )


def _worst_phases(phases: list[Phase]) -> list[dict[str, object]]:
    ordered = sorted(phases, key=lambda phase: phase.typical - phase.slowest.time)[:10]
    return [
        {
            **pick(phase, "start", "end"),
            **pick(phase.slowest, "rank", "time"),
            "middle": phase.typical,
        }
        for phase in ordered
    ]


def hideable(evidence: Evidence) -> Answer:
    """Phases are followed by gaps in which asynchronous I/O could do their work."""
    outermost = _outermost(evidence)
    if not isinstance(outermost, tuple):
        return outermost
    layer, phases = outermost
    if len(phases.phases) < 2:
        return None
    pairs = list(zip(phases.phases, phases.gaps, strict=False))
    hidden = sum(min(phase.slowest.time, gap) for phase, gap in pairs)
    part = share(hidden, evidence.runtime or 0.0)
    if part <= evidence.thresholds.hideable_share:
        return None
    gap = sum(phases.gaps) / len(phases.gaps)
    numbers = {"seconds": hidden, "share": part, "phases": len(phases.phases), "mean_gap": gap}
    return Hit(numbers, hidden, interface=layer)


TIME_RULES = (
    Rule("many-phases", Severity.WARN, "application", many_phases, thresholds=("phases",),
         calls=WHOLE_JOB),
    Rule("phase-stragglers", Severity.WARN, "application", phase_stragglers,
         thresholds=("phase_stragglers", "straggler_factor", "imbalance_seconds"),
         calls=SLOWEST_RANKS),
    Rule("hideable-io", Severity.INFO, "application", hideable, thresholds=("hideable_share",)),
)  # fmt: skip


LAYOUTS = "stripe layouts: a Lustre file system and Darshan's LUSTRE module"
SERVERS = "counters of the file-system servers: `ioprism insights --servers STORE`"
CLOCK = "when the job ran, by the clock, to ask the servers about that time"


def _use(evidence: Evidence) -> TargetUse | Unknown | None:
    """How several ranks use storage targets."""
    if not any(evidence.moved.values()):
        return None
    use = target_use(evidence) or Unknown(LAYOUTS)
    return use if isinstance(use, Unknown) or evidence.ranks > 1 else None


def single_target(evidence: Evidence) -> Answer:
    """Several ranks move most of the data to or from one storage target."""
    use = _use(evidence)
    if not isinstance(use, TargetUse):
        return use
    busiest = max(use.bytes, key=lambda target: use.bytes[target])
    part, limits = use.bytes[busiest] / use.total, evidence.thresholds
    if part <= limits.target_share or use.bytes[busiest] < limits.imbalance_bytes:
        return None
    numbers = {"target": busiest, "bytes": use.bytes[busiest], "share": part}
    subject = Subject("target", str(busiest))
    return Hit(numbers, use.seconds, _details(use), subject, files=_on(busiest, use, evidence))


def _on(target: int, use: TargetUse, evidence: Evidence) -> list[int]:
    """The files with stripes on a target."""
    return [file for file in use.files if target in evidence.files.striping[file].targets]


def target_imbalance(evidence: Evidence) -> Answer:
    """Of the targets used by several ranks concurrently, some take far more bytes than others."""
    use = _use(evidence)
    if not isinstance(use, TargetUse):
        return use
    if len(use.bytes) < 2 or isinstance(single_target(evidence), Hit):
        return None  # that one target takes nearly everything says it all
    most = max(use.bytes.values())
    mean = use.total / len(use.bytes)
    imbalance, limits = 1 - mean / most, evidence.thresholds
    if imbalance <= limits.target_imbalance or most < limits.imbalance_bytes:
        return None
    numbers = {"targets": len(use.bytes), "most_bytes": most, "mean_bytes": mean}
    numbers["imbalance"] = imbalance
    return Hit(numbers, use.seconds * imbalance, _details(use), files=use.files)


def slow(evidence: Evidence) -> Answer:
    """One storage target takes far longer than the others for the same work."""
    use = _use(evidence)
    if not isinstance(use, TargetUse):
        return use
    slowest = slow_target(evidence)
    if slowest is None:
        return None
    target, rates, alone = slowest
    usage = evidence.usages["posix" if "posix" in evidence.usages else "mpiio"]
    others = sorted(rate for name, rate in rates.items() if name != target)
    rate, usual = rates[target], others[len(others) // 2]
    files = [file for file, name in alone.items() if name == target]
    seconds = evidence.held_up(usage, times_in(usage, usage.seconds, set(files)))
    excess = seconds * max(0.0, 1 - rate / usual)
    if excess < evidence.thresholds.imbalance_seconds:
        return None
    numbers = {"target": target, "others": len(others), "factor": usual / rate}
    numbers |= {"rate": rate, "peers_rate": usual}
    subject, words = Subject("target", str(target)), {"target": str(target)}
    return Hit(numbers, excess, _details(use), subject, files=files, words=words)


def contention(evidence: Evidence) -> Answer:
    """Very many ranks of the job itself share each storage target, and none of these is slow.

    Wider stripes would only spread the harm of a slow one.
    """
    use = _use(evidence)
    if not isinstance(use, TargetUse):
        return use
    if slow_target(evidence) is not None:
        return None
    crowd = max(use.ranks.values(), default=0)
    if crowd <= evidence.thresholds.target_ranks:
        return None
    busiest = max(use.ranks, key=lambda target: use.ranks[target])
    numbers = {"ranks": crowd, "targets": len(use.bytes)}
    files, subject = _on(busiest, use, evidence), Subject("target", str(busiest))
    return Hit(numbers, use.seconds, _details(use), subject, files=files)


def background_load(evidence: Evidence) -> Answer:
    """Other jobs keep the servers busy while this one runs."""
    if not any(evidence.moved.values()):
        return None
    seen = evidence.background_load
    if seen is None:
        timed = evidence.job.start_time is not None and evidence.job.end_time is not None
        return Unknown(SERVERS if timed else CLOCK)
    if seen.coverage < NEARLY_ALL:
        return Unknown(f"counters of all the job's time; the store covers {seen.coverage:.0%}")
    if seen.bytes < MAJORITY * evidence.moved["write"]:
        return Unknown("the servers of the job's file system; those of the store moved less")
    own = sum(evidence.moved.values())
    others = max(0.0, seen.bytes - own)
    part = share(others, seen.most_bytes)
    if part <= evidence.thresholds.others_load:
        return None
    usages = [evidence.usages[layer] for layer in evidence.base_layers]
    waited = sum(evidence.held_up(usage, usage.seconds) for usage in usages)
    numbers = {"others_bytes": others, "own_bytes": own, "share": part, "servers": seen.servers,
               "seconds": seen.seconds}  # fmt: skip
    return Hit(numbers, waited * part)


def _details(use: TargetUse) -> list[dict[str, object]]:
    return [
        {
            "target": target,
            "bytes": use.bytes[target],
            "share": use.bytes[target] / use.total,
            "ranks": use.ranks.get(target),
        }
        for target in worst(use.bytes)
    ]


STORAGE_RULES = (
    Rule("single-target", Severity.WARN, "posix", single_target,
         thresholds=("target_share", "imbalance_bytes")),
    Rule("slow-target", Severity.HIGH, "posix", slow,
         thresholds=("slow_target_factor", "imbalance_seconds")),
    Rule("target-imbalance", Severity.WARN, "posix", target_imbalance,
         thresholds=("target_imbalance", "imbalance_bytes")),
    Rule("target-contention", Severity.WARN, "posix", contention, thresholds=("target_ranks",)),
    Rule("file-system-weather", Severity.WARN, "posix", background_load,
         thresholds=("others_load",), calls=WHOLE_JOB),
)  # fmt: skip

RULES = (*TIME_RULES, *STORAGE_RULES)
