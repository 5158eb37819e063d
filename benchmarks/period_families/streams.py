"""Pieces of I/O with or without a period, and what families of them are made of.

A `Stream` holds single requests, or samples that follow each other without a gap. Each family
is a function of a random generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ioprism.model.arrays import FloatArray, StepFunction
from ioprism.views.bandwidth import steps_of_intervals

Chance = np.random.Generator
LEVEL = 1e9  # bytes per second


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Pieces of I/O and the periods that are right answers; none for a stream without a period."""

    start: FloatArray
    end: FloatArray
    amount: FloatArray
    periods: tuple[float, ...] = ()

    def steps(self) -> StepFunction:
        """The bandwidth over time."""
        return steps_of_intervals(self.start, self.end, self.amount)

    def is_right(self, seconds: float | None, *, within: float = 0.05) -> bool:
        """Whether an answer is right: one of the periods, or None where there is none."""
        if seconds is None or not self.periods:
            return seconds is None and not self.periods
        return any(abs(seconds / true - 1.0) <= within for true in self.periods)


Family = Callable[[Chance], Stream]


def rectangles(starts: FloatArray, lengths: FloatArray | float, *periods: float) -> Stream:
    """Bursts of one request each, all of one height."""
    lengths = np.broadcast_to(np.asarray(lengths, dtype=np.float64), starts.shape)
    return Stream(starts, starts + lengths, LEVEL * lengths, periods)


def samples(values: FloatArray, interval: float, *periods: float) -> Stream:
    """A metric sampled at equal distances."""
    start = interval * np.arange(len(values), dtype=np.float64)
    return Stream(start, start + interval, np.maximum(values, 0.0) * interval, periods)


def requests(bursts: Sequence[tuple[float, float]], chance: Chance, *periods: float) -> Stream:
    """Bursts (start, length), each made of requests with pauses between them."""
    parts = [_requests_of_burst(start, length, chance) for start, length in bursts]
    start, end, amount = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Stream(start, end, amount, periods)


def _requests_of_burst(
    start: float, length: float, chance: Chance
) -> tuple[FloatArray, FloatArray, FloatArray]:
    count = int(chance.integers(10, 60))
    pauses = chance.exponential(size=count) * chance.uniform(0.2, 2.0)
    works = chance.lognormal(0.0, 0.3, count)
    edges = np.cumsum(np.stack((works, pauses), axis=1).reshape(-1))
    edges = start + np.concatenate(([0.0], edges[:-1])) * (length / edges[-2])
    return edges[0::2], edges[1::2], np.full(count, 4e6)


def heat_map(stream: Stream, bins: int) -> Stream:
    """What a tool tells that keeps bytes in equal bins only."""
    edges = np.linspace(0.0, float(stream.end.max()), bins + 1)
    steps = stream.steps()
    volume = np.concatenate(([0.0], np.cumsum(steps.values * np.diff(steps.edges))))
    amount = np.diff(np.interp(edges, steps.edges, volume, left=0.0, right=volume[-1]))
    return Stream(edges[:-1], edges[1:], amount, stream.periods)


def after_gaps(gaps: FloatArray, lengths: FloatArray | float) -> FloatArray:
    """Starts of bursts that follow each other after gaps."""
    lengths = np.broadcast_to(np.asarray(lengths, dtype=np.float64), gaps.shape)
    return np.cumsum(gaps) + np.concatenate(([0.0], np.cumsum(lengths[:-1])))


def bursts_at(starts: FloatArray, lengths: FloatArray, chance: Chance, *periods: float) -> Stream:
    """Bursts of requests that begin at these times."""
    return requests(list(zip(starts.tolist(), lengths.tolist(), strict=True)), chance, *periods)


def joined(*streams: Stream, periods: tuple[float, ...] = ()) -> Stream:
    """Several streams at the same time."""
    parts = ("start", "end", "amount")
    start, end, amount = (np.concatenate([getattr(one, part) for one in streams]) for part in parts)
    return Stream(start, end, amount, periods)


def train(chance: Chance, low: int = 6, high: int = 31) -> tuple[float, FloatArray]:
    """A period of up to a minute, and as many starts that do not begin at zero."""
    period, count = float(chance.uniform(2.0, 60.0)), int(chance.integers(low, high))
    return period, period * (float(chance.uniform()) + np.arange(count, dtype=np.float64))


def clock(chance: Chance, low: int, high: int) -> tuple[float, FloatArray]:
    """A period from half a second to five minutes, and as many starts from zero on."""
    period = float(np.exp(chance.uniform(np.log(0.5), np.log(300.0))))
    return period, period * np.arange(int(chance.integers(low, high)), dtype=np.float64)


def draw(family: Family, number: int) -> Stream:
    """The stream of this number; the same in every run."""
    name = sum(ord(letter) * (place + 1) for place, letter in enumerate(family.__name__))
    return family(np.random.default_rng([name, number]))
