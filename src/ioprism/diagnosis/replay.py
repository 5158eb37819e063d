"""What a change would save: the only formula for seconds and intervals.

Each phase lasts as long as its busiest rank, or its busiest storage target, plus the time in
which the busiest rank waits. A change gives rows other durations; the phases are added up again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.rows import Flags, Floats
from ioprism.model.arrays import median
from ioprism.model.verdict import CallGroup, Contrast, Decision


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """What rows would take after a change."""

    chain: Floats  # seconds by which each row prolongs its rank's I/O
    work: Floats | None = None  # seconds that rows occupy their targets; None: no limit
    floor: Floats | None = None  # seconds that each phase lasts at least, without waiting
    library: Floats | None = None  # seconds inside libraries, by phase; None: as they are
    waiting: Floats | None = None  # all seconds outside the busiest rank's calls; None: computed


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What a change would do: most likely, at worst and at best."""

    likely: Scenario
    worst: Scenario
    best: Scenario
    service_doubt: bool = field(default=True, kw_only=True)  # service times may be misfitted


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """What a check found: the affected rows, the change, and how sure the contrast is."""

    code: str
    culprit: dict[str, Any]
    rows: Flags
    change: Change | None
    p_value: float
    contrast: Contrast
    decide: Decision | None = None  # what to do where the lower bound is zero
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """Seconds saved in each phase, and the interval of their sum."""

    by_phase: Floats
    low: float
    high: float

    @property
    def seconds(self) -> float:
        """Seconds saved in all phases."""
        return float(self.by_phase.sum())


def replay(observed: Observed, change: Change) -> Replayed:
    """Let the phases run again after a change."""
    doubted = change.service_doubt and change.likely.work is not None
    least, most = observed.service.doubt if doubted else (1.0, 1.0)
    likely = _savings(observed, change.likely, 1.0)
    low = float(_savings(observed, change.worst, most).sum())
    high = float(_savings(observed, change.best, least).sum())
    seconds, noise = float(likely.sum()), observed.limits.run_noise
    # The next run has its noise, independent of what the log leaves open.
    spread = noise * seconds
    least_saving = seconds - math.hypot(seconds - min(low, seconds), spread)
    high = min(max(high, seconds), float(observed.stall.sum()))
    most_saving = seconds + math.hypot(high - seconds, spread)
    return Replayed(
        likely,
        max(0.0, least_saving) if low > 0 else 0.0,
        min(most_saving, max(seconds, observed.runtime * observed.share)),
    )


def _savings(observed: Observed, scenario: Scenario, factor: float) -> Floats:
    longest = observed.busiest_rank(scenario.chain)
    if scenario.work is not None:
        longest = np.maximum(longest, observed.busiest_target(scenario.work) * factor)
    if scenario.floor is not None:
        longest = np.maximum(longest, scenario.floor)
    waiting = scenario.waiting
    if waiting is None:
        waiting = observed.waiting_after(scenario.chain)
    if scenario.library is not None and scenario.waiting is None:
        inside = np.minimum(observed.waiting, observed.library)
        waiting = waiting - inside + np.minimum(inside, scenario.library)
    return np.maximum(0.0, observed.stall - longest - waiting)


def contrast(observed: Observed, slow: Flags, peers: Flags | None, what: str) -> Contrast:
    """Compare two groups of calls."""
    group = None if peers is None or not peers.any() else _call_group(observed, peers)
    return Contrast(what, _call_group(observed, slow), group)


def propose(
    observed: Observed,
    code: str,
    rows: Flags,
    change: Change,
    decide: Decision | None,
    facts: dict[str, Any],
    *,
    culprit: dict[str, Any] | None = None,
    slow: Flags | None = None,
    peers: Flags | None = None,
) -> Proposal:
    """Propose a change of rows that are tested without peers: would they cost the same again?

    The culprit is their main file, and the contrast is between them and `peers`, unless told.
    """
    return Proposal(
        code,
        observed.file_culprit(rows) if culprit is None else culprit,
        rows,
        change,
        observed.repeat_probability(rows),
        contrast(observed, rows if slow is None else slow, peers, code),
        decide,
        facts,
    )


def _call_group(observed: Observed, some: Flags) -> CallGroup:
    rows = observed.rows
    moved, spent = int(rows.bytes[some].sum()), float(rows.seconds[some].sum())
    return CallGroup(
        count=round(float(rows.count[some].sum())),
        bytes=moved or None,
        median_seconds=median(rows.mean_seconds[some]) if some.any() else None,
        rate=moved / spent if moved and spent > 0 else None,
    )
