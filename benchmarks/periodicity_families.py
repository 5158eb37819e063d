"""Families of streams with and without a period: how often the answer is right, offline and live.

"right" is within 5 % for streams with a period, and "no period" for the others. "p <= 0.01" is
the share called periodic at that level, "live called" that of live jobs, at any moment and beyond
doubt. The last live answer is that for the whole job, after its last request.
`IOPRISM_BENCH_STREAMS` sets how many streams of each family are drawn (200 by default).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.peers import row
from benchmarks.period_families import NOT_PERIODIC, PERIODIC, Family, Stream, draw
from ioprism import period
from ioprism.periodicity.results import Period
from ioprism.periodicity.tracker import Tracker

STREAMS = int(os.environ.get("IOPRISM_BENCH_STREAMS", "200"))
BATCHES = 400  # of a live stream
LEVEL = 0.01
WIDTHS = (30, 8, 10, 8, 10, 12)


@dataclass(frozen=True, slots=True)
class Score:
    """Shares of a family's streams."""

    right: float
    called: float  # an answer was given
    sure: float  # with a false-alarm probability of at most `LEVEL`


def main() -> None:
    row("", "right", "p <= 0.01", "called", "live right", "live called", widths=WIDTHS)
    for kind, families in (("without", NOT_PERIODIC), ("with", PERIODIC)):
        rights = []
        for name, family in families.items():
            offline, live = offline_score(family, STREAMS), live_score(family, STREAMS)
            rights.append(offline.right)
            shares = (offline.right, offline.sure, offline.called, live.right, live.called)
            row(name, *(f"{share:.1%}" for share in shares), widths=WIDTHS)
        print(f"right over {len(rights)} families {kind} a period: {np.mean(rights):.1%}")


def answer(stream: Stream) -> Period | None:
    """What the library says of the whole stream."""
    steps = stream.steps()
    return period(steps.edges, steps.values)


def offline_score(family: Family, streams: int) -> Score:
    """Ask for the period of whole streams."""
    right, chances = [], []
    for number in range(streams):
        stream = draw(family, number)
        found = answer(stream)
        right.append(stream.is_right(None if found is None else found.seconds))
        chances.append(2.0 if found is None else found.false_alarm_probability)
    told = np.array(chances)
    return Score(float(np.mean(right)), float(np.mean(told < 2.0)), float(np.mean(told <= LEVEL)))


def live_score(family: Family, streams: int) -> Score:
    """Follow streams as they come; a period that is called at any moment counts."""
    right, called = [], []
    for number in range(streams):
        stream = draw(family, number)
        said = [p for p in followed(stream) if p is not None]
        sure = [p for p in said if p.certainty == "sure"]
        called.append(bool(sure))
        right.append(any(stream.is_right(p.seconds) for p in said) if stream.periods else not sure)
    return Score(float(np.mean(right)), float(np.mean(called)), float(np.mean(called)))


def followed(stream: Stream) -> Iterator[Period | None]:
    """The answers of a tracker to a stream that comes in batches, by the ends of its pieces."""
    tracker = Tracker()
    for pieces in batches(stream):
        tracker.add(stream.start[pieces], stream.end[pieces], stream.amount[pieces])
        told = tracker.predict()
        yield None if told is None else told.period
    told = tracker.conclude()
    yield None if told is None else told.period


def batches(stream: Stream) -> Iterator[np.ndarray]:
    """Pieces that end within the same stretch of time."""
    order = np.argsort(stream.end, kind="stable")
    end = stream.end[order]
    number = np.floor((end - end[0]) / (end[-1] - end[0] + 1e-9) * BATCHES).astype(np.int64)
    return iter(np.split(order, np.flatnonzero(np.diff(number)) + 1))


if __name__ == "__main__":
    main()
