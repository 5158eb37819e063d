"""How likely is each range of frequencies, going by the recent answers?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

APART = 1.1  # frequencies this factor apart belong to different ranges


@dataclass(frozen=True, slots=True)
class FrequencyRange:
    """Frequencies that recent answers agree on."""

    low: float  # Hz
    high: float  # Hz
    probability: float  # share of all recent answers, those without a period included


def frequency_ranges(answers: Iterable[float | None]) -> tuple[FrequencyRange, ...]:
    """Merge recent answers (Hz, or None for no period) into ranges, the likeliest first."""
    every = list(answers)
    groups: list[list[float]] = []
    for frequency in sorted(answer for answer in every if answer is not None):
        if groups and frequency <= APART * groups[-1][-1]:
            groups[-1].append(frequency)
        else:
            groups.append([frequency])
    ranges = [FrequencyRange(group[0], group[-1], len(group) / len(every)) for group in groups]
    return tuple(sorted(ranges, key=lambda found: -found.probability))
