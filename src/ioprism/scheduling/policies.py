"""Which job may use the file system now, at which rate, and for how long?

The same policies serve the simulation of `ioprism schedule` and the jobs of `ioprism watch`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Of a period that other jobs of the set may have to wait for one whose period is unknown. Chosen
# among 1/15, 0.1, 0.3 and 1 on `benchmarks.scheduling`, seeds 100 to 119 and 200 to 219: 0.1 kept
# 95.5 to 98.4 % of the gain, 1/15 a little more, but that is the I/O share of this workload.
MAX_SERVED_SHARE = 0.1
UNKNOWN_PERIOD = 1e3  # seconds; a job of unknown period gets the priority of a slow one


@dataclass(slots=True)
class Waiting:
    """A phase that waits for the file system, or is being served."""

    job: int
    arrival: float  # seconds
    left: float  # bytes
    total: float  # bytes
    limit: float  # bytes per second that the job can use
    period: float | None  # seconds, as far as the scheduler knows
    age: float | None = None  # seconds that the job had run when it asked

    @property
    def magnitude(self) -> int:
        """The set of the phase; a first phase moves to slower ones the longer it is served."""
        if self.period is not None or self.age is None:
            return set_of(self.period)
        served = (self.total - self.left) / self.limit
        return set_of(max(self.age, served / MAX_SERVED_SHARE))


Policy = Callable[[Sequence[Waiting], float], list[float]]


def fair_share(waiting: Sequence[Waiting], bandwidth: float) -> list[float]:
    """Everyone gets the same, or what it can use: what file systems do without a scheduler."""
    return divide_bandwidth([one.limit for one in waiting], [1.0] * len(waiting), bandwidth)


def first_come_first_served(waiting: Sequence[Waiting], bandwidth: float) -> list[float]:
    """Who asked first is served alone."""
    return _in_turn(waiting, bandwidth, lambda one: one.arrival)


def set_10(waiting: Sequence[Waiting], bandwidth: float) -> list[float]:
    """IO-Sets' heuristic: jobs of one magnitude of period take turns, faster sets get more.

    A job is in the set of the rounded decimal logarithm of its period. Within a set the first
    to ask is served alone; sets share the bandwidth by a priority of one over their magnitude.
    While the period is unknown, the time before the first phase stands for it.
    """
    members: dict[int, list[int]] = {}
    for place, one in enumerate(waiting):
        members.setdefault(one.magnitude, []).append(place)
    demands = [sum(waiting[place].limit for place in places) for places in members.values()]
    priorities = [10.0**-number for number in members]
    parts = divide_bandwidth(demands, priorities, bandwidth)
    rates = [0.0] * len(waiting)
    for places, part in zip(members.values(), parts, strict=True):
        own = _in_turn([waiting[place] for place in places], part, lambda one: one.arrival)
        for place, rate in zip(places, own, strict=True):
            rates[place] = rate
    return rates


def clairvoyant(waiting: Sequence[Waiting], bandwidth: float) -> list[float]:
    """The phase with the least work left for its size is served alone.

    It knows how much every phase moves. Serving the smallest product of what is left and the
    whole is nearly the best that can be done for the mean slowdown (Wierman et al., 2005).
    """
    return _in_turn(waiting, bandwidth, lambda one: one.left * one.total)


POLICIES: Mapping[str, Policy] = {
    "fair-share": fair_share,
    "fcfs": first_come_first_served,
    "set-10": set_10,
    "clairvoyant": clairvoyant,
}


def set_of(period: float | None) -> int:
    """The magnitude of a period (seconds): the rounded decimal logarithm."""
    return round(math.log10(UNKNOWN_PERIOD if period is None else max(period, 1e-3)))


def divide_bandwidth(
    demands: Sequence[float], weights: Sequence[float], bandwidth: float
) -> list[float]:
    """Divide a bandwidth by weights; what some cannot use goes to the others."""
    rates, open_, left = [0.0] * len(demands), set(range(len(demands))), bandwidth
    while open_ and left > 0.0:
        unit = left / sum(weights[place] for place in open_)
        full = [place for place in open_ if demands[place] <= unit * weights[place]]
        if not full:
            for place in open_:
                rates[place] = unit * weights[place]
            break
        for place in full:
            rates[place] = demands[place]
            left -= demands[place]
            open_.remove(place)
    return rates


def _in_turn(
    waiting: Sequence[Waiting], bandwidth: float, order: Callable[[Waiting], float]
) -> list[float]:
    """One after the other; what one cannot use goes to the next."""
    rates, left = [0.0] * len(waiting), bandwidth
    for place in sorted(range(len(waiting)), key=lambda place: order(waiting[place])):
        rates[place] = min(left, waiting[place].limit)
        left -= rates[place]
        if left <= 0.0:
            break
    return rates


GRANTED = 0.5  # seconds for which a share holds
FORGOTTEN = 1.0  # seconds without asking, after which a job no longer wants to do I/O
MOST_WAITING = 4096


@dataclass(frozen=True, slots=True)
class Turn:
    """What a job may do now."""

    job: str
    wants: bool  # whether it asked to do I/O
    may_write: bool
    share: float  # of the file system's bandwidth, 0 to 1
    until: float  # seconds from now for which this holds
    set: int | None  # magnitude of its period; None if the period is not known yet
    period: float | None  # seconds
    waited: float  # seconds since it asked first

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


class Turns:
    """Remembers who wants to do I/O, and divides the bandwidth among them."""

    def __init__(self, period_of: Callable[[str], float | None], policy: Policy = set_10) -> None:
        self._period_of = period_of
        self._policy = policy
        self._asked: dict[str, tuple[float, float]] = {}  # first and last time, monotonic seconds

    def ask(self, job: str, now: float) -> None:
        """Note that a job wants to do I/O now (monotonic seconds)."""
        self._forget(now)
        first, _ = self._asked.get(job, (now, now))
        if job in self._asked or len(self._asked) < MOST_WAITING:
            self._asked[job] = (first, now)

    def leave(self, job: str) -> None:
        """Note that a job has done its I/O."""
        self._asked.pop(job, None)

    def turns(self, now: float) -> list[Turn]:
        """What every job that wants to do I/O may do, the one that asked first first."""
        self._forget(now)
        names = sorted(self._asked, key=lambda name: self._asked[name][0])
        waiting = [
            Waiting(
                job=number,
                arrival=self._asked[name][0],
                left=math.inf,
                total=math.inf,
                limit=1.0,
                period=self._period_of(name),
            )
            for number, name in enumerate(names)
        ]
        shares = self._policy(waiting, 1.0)
        return [
            Turn(
                job=name,
                wants=True,
                may_write=share > 0.0,
                share=share,
                until=GRANTED,
                set=None if one.period is None else set_of(one.period),
                period=one.period,
                waited=now - one.arrival,
            )
            for name, one, share in zip(names, waiting, shares, strict=True)
        ]

    def turn(self, job: str, now: float) -> Turn:
        """What one job may do; one that does not ask may do nothing."""
        for one in self.turns(now):
            if one.job == job:
                return one
        period = self._period_of(job)
        number = None if period is None else set_of(period)
        return Turn(job, False, False, 0.0, GRANTED, number, period, 0.0)

    def _forget(self, now: float) -> None:
        silent = [name for name, (_, last) in self._asked.items() if now - last > FORGOTTEN]
        for name in silent:
            del self._asked[name]
