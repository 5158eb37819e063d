"""Who may use the file system now, and at which rate?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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


Policy = Callable[[Sequence[Waiting], float], list[float]]


def fair_share(waiting: Sequence[Waiting], bandwidth: float) -> list[float]:
    """Everyone gets the same, or what it can use: what file systems do without a scheduler."""
    return shared([one.limit for one in waiting], [1.0] * len(waiting), bandwidth)


def first_come_first_served(waiting: Sequence[Waiting], bandwidth: float) -> list[float]:
    """Who asked first is served alone."""
    return _in_turn(waiting, bandwidth, lambda one: one.arrival)


def set_10(waiting: Sequence[Waiting], bandwidth: float) -> list[float]:
    """IO-Sets' heuristic: jobs of one magnitude of period take turns, faster sets get more.

    A job is in the set of the rounded decimal logarithm of its period. Within a set the first
    to ask is served alone; sets share the bandwidth by a priority of one over their magnitude.
    """
    members: dict[int, list[int]] = {}
    for place, one in enumerate(waiting):
        members.setdefault(set_of(one.period), []).append(place)
    demands = [sum(waiting[place].limit for place in places) for places in members.values()]
    priorities = [priority_of(number) for number in members]
    parts = shared(demands, priorities, bandwidth)
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


def priority_of(number: int) -> float:
    """The weight of a set beside others."""
    return 10.0**-number


def shared(demands: Sequence[float], weights: Sequence[float], bandwidth: float) -> list[float]:
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
