"""Which stretches of two runs are the same work: phases are paired in order, by kind and size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ioprism.phase_detection.find import Phase, Phases

# Costs of the alignment (Needleman and Wunsch 1970): two phases of one kind are paired rather than
# left alone, whatever their sizes, because a change may well alter how much a phase moves.
ALONE = 0.6  # of a phase without a partner
OTHER_KIND = 0.5  # more, where only one of the two also reads, or also writes
SIZES_APART = 8.0  # sizes that differ by this factor count as unlike
MOST_PHASES = 400  # of a run that are aligned, the longest: time grows with their square

Stretch = tuple[float, float]  # seconds from and to
Pair = tuple[Phase, Phase]


@dataclass(frozen=True, slots=True)
class AlignedStretch:
    """A stretch of both runs: a phase that both have, or what lies between two of them."""

    kind: str  # of the phase; empty between phases
    before: Stretch
    after: Stretch

    @property
    def saved(self) -> float:
        """Seconds that the run after needs less."""
        (a, b), (c, d) = self.before, self.after
        return (b - a) - (d - c)


def align_runs(
    before: Phases | None, after: Phases | None, spans: tuple[Stretch, Stretch]
) -> tuple[AlignedStretch, ...]:
    """Cut both runs at the phases that they share; `spans` are their first and last second."""
    return tuple(_segments(pair_phases(*_comparable(before, after)), spans))


def _segments(pairs: Sequence[Pair], spans: tuple[Stretch, Stretch]) -> Iterator[AlignedStretch]:
    (old, old_end), (new, new_end) = spans
    for first, second in pairs:
        yield AlignedStretch("", (old, first.start), (new, second.start))
        old, new = min(first.end, old_end), min(second.end, new_end)
        yield AlignedStretch(first.kind, (first.start, old), (second.start, new))
    yield AlignedStretch("", (old, old_end), (new, new_end))


def _comparable(before: Phases | None, after: Phases | None) -> tuple[list[Phase], list[Phase]]:
    """The phases of the longest layer that both have; else the main one of each."""
    if before is None or after is None:
        return [], []
    shared = before.layers.keys() & after.layers.keys()
    sides = []
    for phases in (before, after):
        names = sorted(shared or phases.layers.keys())
        main = max(names, key=lambda name: _seconds(before, after, name), default=None)
        listed = [] if main is None else list(phases.layers[main].phases)
        longest = sorted(listed, key=lambda phase: phase.start - phase.end)[:MOST_PHASES]
        sides.append(sorted(longest, key=lambda phase: phase.start))
    return sides[0], sides[1]


def _seconds(before: Phases, after: Phases, layer: str) -> float:
    held = (run.layers[layer].phases for run in (before, after) if layer in run.layers)
    return sum(phase.end - phase.start for phases in held for phase in phases)


def pair_phases(before: Sequence[Phase], after: Sequence[Phase]) -> list[Pair]:
    """Return pairs of phases that do the same work, in order, at the least cost."""
    width = len(after) + 1
    costs = [[ALONE * (row + column) for column in range(width)] for row in range(len(before) + 1)]
    for row, old in enumerate(before, 1):
        above, line = costs[row - 1], costs[row]
        for column, new in enumerate(after, 1):
            alone = min(above[column], line[column - 1]) + ALONE
            line[column] = min(alone, above[column - 1] + _unlikeness(old, new))
    pairs: list[Pair] = []
    row, column = len(before), len(after)
    while row and column:
        old, new = before[row - 1], after[column - 1]
        if costs[row][column] == costs[row - 1][column - 1] + _unlikeness(old, new):
            pairs.append((old, new))
            row, column = row - 1, column - 1
        elif costs[row][column] == costs[row - 1][column] + ALONE:
            row -= 1
        else:
            column -= 1
    return pairs[::-1]


def _unlikeness(old: Phase, new: Phase) -> float:
    """0 for equal phases, 1 for the same kind of another size, infinite for other kinds."""
    if not set(old.kind.split(" and ")) & set(new.kind.split(" and ")):
        return math.inf
    sizes = [phase.bytes or phase.operations or 1 for phase in (old, new)]
    apart = abs(math.log(sizes[0] / sizes[1])) / math.log(SIZES_APART)
    return min(1.0, apart) + (OTHER_KIND if old.kind != new.kind else 0.0)
