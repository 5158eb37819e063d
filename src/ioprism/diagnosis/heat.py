"""Darshan's heat maps, for logs without calls: when each rank moved how many bytes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ioprism.diagnosis.limits import MAJORITY
from ioprism.model.usage import HeatMap


@dataclass(frozen=True, slots=True, eq=False)
class HeatPhases:
    """Stretches of bins in which bytes were moved."""

    start: Sequence[float]
    end: Sequence[float]
    moved: Sequence[dict[int, float]]  # by phase: bytes of each rank
    busy: Sequence[dict[int, float]]  # by phase: seconds of the bins in which a rank moved any
    width: float  # of a bin
    ranks: int

    def __len__(self) -> int:
        return len(self.start)

    @property
    def seconds(self) -> list[float]:
        """How long each phase lasts, to the width of a bin."""
        return [end - start for start, end in zip(self.start, self.end, strict=True)]

    @property
    def waiting_ratio(self) -> float:
        """Slowest ranks' time, phase by phase, over that of the rank which is slowest in all.

        Ranks that take part in the same phases wait for whoever is slowest in each of them.
        """
        present = [busy for busy in self.busy if len(busy) >= MAJORITY * self.ranks]
        if len(present) < 2:
            return 1.0
        return sum(max(busy.values()) for busy in present) / max(totals(present, self.ranks))


def totals(phases: Iterable[dict[int, float]], ranks: int) -> list[float]:
    """What each rank has in these phases together."""
    sums = [0.0] * ranks
    for phase in phases:
        for rank, value in phase.items():
            sums[rank] += value
    return sums


def heat_phases(maps: Sequence[HeatMap], ranks: int) -> HeatPhases | None:
    """Return the phases of one layer; None where nothing was moved."""
    used = [(one, bins) for one in maps if (bins := one.busy_bins())]
    if not used:
        return None
    spans = {
        (number * one.width, (number + 1) * one.width) for one, bins in used for number in bins
    }
    start, end = _merge_spans(sorted(spans))
    moved: list[dict[int, float]] = [{} for _ in start]
    busy: list[dict[int, float]] = [{} for _ in start]
    for one, bins in used:
        if not 0 <= one.rank < ranks:
            continue
        for place in bins:
            phase = bisect_right(start, (place + 0.5) * one.width) - 1
            size = one.read[place] + one.write[place]
            moved[phase][one.rank] = moved[phase].get(one.rank, 0.0) + size
            busy[phase][one.rank] = busy[phase].get(one.rank, 0.0) + one.width
    return HeatPhases(start, end, moved, busy, used[0][0].width, ranks)


def _merge_spans(spans: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Join spans that touch each other; they come in order."""
    start: list[float] = []
    end: list[float] = []
    for begin, finish in spans:
        if end and begin <= end[-1]:
            end[-1] = max(end[-1], finish)
        else:
            start.append(begin)
            end.append(finish)
    return start, end
