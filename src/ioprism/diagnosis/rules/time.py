"""When a job does I/O: too many phases, phases that wait for one rank, time that could hide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.rules.rule import SLOWEST_RANKS, WHOLE_JOB, Answer, Hit, Rule, Unknown, share
from ioprism.model.verdict import Severity, Subject

if TYPE_CHECKING:  # a small log is judged without it
    from ioprism.phase_detection.find import LayerPhases, Phase

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
    if not isinstance(outermost, tuple) or evidence.ranks < 2:
        return outermost if isinstance(outermost, Unknown) else None
    layer, phases = outermost
    limits = evidence.thresholds
    waiting = [p for p in phases.phases if _waits(p, limits.straggler_factor)]
    if len(phases.phases) < FEWEST_PHASES:
        return None
    part = share(len(waiting), len(phases.phases))
    lost = sum(phase.slowest.time - phase.typical for phase in waiting)
    if part <= limits.phase_stragglers or lost < limits.imbalance_seconds:
        return None
    ranks: dict[int, int] = {}
    for phase in waiting:
        ranks[phase.slowest.rank] = ranks.get(phase.slowest.rank, 0) + 1
    most = max(ranks, key=lambda rank: ranks[rank])
    return Hit(
        {"phases": len(waiting), "of": len(phases.phases), "share": part, "seconds": lost},
        lost,
        _worst_phases(waiting),
        Subject("rank", str(most)),
        interface=layer,
        ranks=list(ranks),
    )


def _waits(phase: Phase, factor: float) -> bool:
    return phase.ranks > 1 and phase.slowest.time >= factor * phase.typical


def _worst_phases(phases: list[Phase]) -> list[dict[str, object]]:
    ordered = sorted(phases, key=lambda phase: phase.typical - phase.slowest.time)[:10]
    return [
        {
            "start": phase.start,
            "end": phase.end,
            "rank": phase.slowest.rank,
            "time": phase.slowest.time,
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


RULES = (
    Rule("many-phases", Severity.WARN, "application", many_phases, "many-phases", ("phases",),
         calls=WHOLE_JOB),
    Rule("phase-stragglers", Severity.WARN, "application", phase_stragglers, "phase-stragglers",
         ("phase_stragglers", "straggler_factor", "imbalance_seconds"), calls=SLOWEST_RANKS),
    Rule("hideable-io", Severity.INFO, "application", hideable, "hideable-io",
         ("hideable_share",)),
)  # fmt: skip
