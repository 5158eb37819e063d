"""Which running job may use the file system now, at which share, and for how long?

Jobs, or agents that throttle them, ask while they want to do I/O. Those that asked within the last
moments wait or write; the policy is that of `ioprism schedule`, with the periods that the watched
streams show. A share is granted for a short while and has to be asked for again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ioprism.scheduling.policies import Policy, Waiting, set_10, set_of

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
