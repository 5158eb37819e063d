"""Which stretches of a row of waits vary least?

All stretches of a few lengths are compared at once, by running sums. Few of them are even enough
to be worth a closer look; how even that is depends on the length alone and is remembered.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ioprism.model.signal import FloatArray
from ioprism.periodicity.chance import log_regular

SHORTEST = 4  # waits; a shorter regular stretch among irregular ones is chance
LONGER = 1.25  # from one length to the next
MOST_AT_ONCE = 1024  # waits
WIDEST = 3.0  # coefficient of variation
HALVINGS = 24
STEP = 0.5  # of logarithms of chances, to remember few of them

Ints = npt.NDArray[np.int64]


def log_questions(waits: int) -> float:
    """Logarithm of how many stretches there are to compare, by gaps and by distances."""
    return math.log(max(1, sum(2 * (waits - size + 1) for size in _sizes(waits))))


def steadiest(spacings: Iterable[FloatArray], *, log_least: float) -> set[tuple[int, int]]:
    """First wait and length of the steadiest stretch of each length that is steady enough.

    Args:
        spacings: rows of waits, all as long.
        log_least: bursts at random times are as even with no higher a chance, as a logarithm.
    """
    return {stretch for waits in spacings for stretch in _steadiest(waits, log_least)}


def _steadiest(waits: FloatArray, log_least: float) -> Iterator[tuple[int, int]]:
    middle = float(waits.mean())
    running = np.zeros((2, len(waits) + 1))
    np.cumsum(waits - middle, out=running[0, 1:])
    np.cumsum((waits - middle) ** 2, out=running[1, 1:])
    for sizes in _together(len(waits)):
        first, offsets, sizes_of = _stretches(len(waits), sizes)
        mean, square = (running[:, first + sizes_of] - running[:, first]) / sizes_of
        relative = np.maximum(square - mean**2, 0.0) / (middle + mean) ** 2
        least = np.minimum.reduceat(relative, offsets).tolist()
        for size, begin, variation in zip(sizes, offsets.tolist(), least, strict=True):
            if variation <= _most_variation(size, math.ceil(log_least / STEP)) ** 2:
                yield int(np.argmin(relative[begin : begin + len(waits) - size + 1])), size


def _together(waits: int) -> list[tuple[int, ...]]:
    """The lengths to compare at once: all where there are few waits, else one by one."""
    sizes = _sizes(waits)
    return [sizes] if waits <= MOST_AT_ONCE else [(size,) for size in sizes]


@lru_cache(maxsize=64)
def _stretches(waits: int, sizes: tuple[int, ...]) -> tuple[Ints, Ints, Ints]:
    """First waits of all stretches, where each length begins among them, and their lengths."""
    counts = [waits - size + 1 for size in sizes]
    first = np.concatenate([np.arange(count) for count in counts])
    offsets = np.cumsum([0, *counts[:-1]])
    return first, offsets, np.repeat(np.array(sizes), counts)


@lru_cache(maxsize=64)
def _sizes(waits: int) -> tuple[int, ...]:
    sizes, size = [], float(SHORTEST)
    while size < waits:
        sizes.append(round(size))
        size *= LONGER
    return tuple(sorted(set(sizes)))


@lru_cache(maxsize=4096)
def _most_variation(size: int, steps: int) -> float:
    """The variation at which random waits are as even with a chance of so many steps."""
    low, high = 0.0, WIDEST
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if log_regular(waits=size, variation=middle) <= steps * STEP:
            low = middle
        else:
            high = middle
    return high
