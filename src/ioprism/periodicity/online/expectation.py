"""How far can the predicted next phase be trusted, going by those predicted before?"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ioprism.periodicity.results import NextPhase, Period

ON_TIME = 0.1  # share of the period by which a phase on time may be early or late
PRIOR_WEIGHT = 2.0  # phases that the spread of the period is worth
FADING = 0.9  # weight of an outcome beside that of the next one
REMEMBERED = 32  # phases
SPREAD_FLOOR = 0.005  # of the period; no clock is better than this
LATE = 0.15  # of the period, beyond being on time, until a phase that is late counts as missed
MISSED = 1.0  # the error, in periods, of a phase that did not come


@dataclass(frozen=True, slots=True)
class Outcome:
    """A phase that was predicted, and what came."""

    due: float  # seconds
    came: float | None  # seconds; None if it did not come
    on_time: bool


@dataclass(frozen=True, slots=True)
class ExpectedPhase:
    """When the next phase is due, how much it moves, and how sure that is."""

    start: float  # seconds since the job started
    end: float
    bytes: float
    confidence: float  # probability that it begins within a tenth of the period of `start`


class Record:
    """Compares phases with what was predicted for them."""

    def __init__(self) -> None:
        self.errors: deque[float] = deque(maxlen=REMEMBERED)  # shares of the period
        self.outcomes: deque[Outcome] = deque(maxlen=REMEMBERED)
        self._last_start = -math.inf
        self._expected: tuple[float, float] | None = None  # start and period, in seconds

    def observe(self, start: float, *, now: float) -> None:
        """Hear when the latest phase began, and what time it is, in seconds."""
        if self._expected is not None:
            due, period = self._expected
            if start >= self._last_start + period / 2:
                self._outcome(due, start, abs(start - due) / period)
            elif now > due + (ON_TIME + LATE) * period:
                self._outcome(due, None, MISSED)  # a phase this late is none, whenever it comes
            else:
                return
        self._last_start = max(start, self._last_start)

    def _outcome(self, due: float, came: float | None, error: float) -> None:
        self.errors.append(error)
        self.outcomes.append(Outcome(due, came, error <= ON_TIME))
        self._expected = None

    def expect(self, phase: NextPhase, period: Period) -> ExpectedPhase:
        """Keep a prediction to compare with; return it with its confidence."""
        if self._expected is None:
            self._expected = (phase.start, period.seconds)
        return ExpectedPhase(phase.start, phase.end, phase.bytes, self._confidence(period))

    def forget(self) -> None:
        """Begin anew with another rhythm; what was predicted before is kept to be shown."""
        self.errors.clear()
        self._expected = None

    def state(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "errors": list(self.errors),
            "outcomes": [[one.due, one.came, one.on_time] for one in self.outcomes],
            "last_start": self._last_start,
            "expected": None if self._expected is None else list(self._expected),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Record:
        """Return the record that `state` described."""
        record = cls()
        record.errors.extend(float(error) for error in state["errors"])
        record.outcomes.extend(Outcome(*one) for one in state.get("outcomes", ()))
        record._last_start = float(state["last_start"])
        if state["expected"] is not None:
            due, period = state["expected"]
            record._expected = (float(due), float(period))
        return record

    def _confidence(self, period: Period) -> float:
        """The probability that the next phase is on time.

        What came before counts, the latest most; the spread of the distances, known from few of
        them, stands in for what has not come yet. After misses it is no more than one in as
        many as there were, and one: the rhythm may be over.
        """
        seen = max(1, period.repetitions)
        spread = max(period.spread / period.seconds, SPREAD_FLOOR) * (1.0 + 2.0 / seen)
        prior = math.erf(ON_TIME / (spread * math.sqrt(2)))
        hits, total = PRIOR_WEIGHT * prior, PRIOR_WEIGHT
        for age, error in enumerate(reversed(self.errors)):
            weight = FADING**age
            hits += weight * (error <= ON_TIME)
            total += weight
        known = seen + len(self.errors)
        share = hits / total * (known + 1.0) / (known + 2.0)
        return min(share, 1.0 / (1.0 + self._misses())) * (1.0 - period.false_alarm_probability)

    def _misses(self) -> int:
        """How many of the latest phases in a row were not on time."""
        count = 0
        for error in reversed(self.errors):
            if error <= ON_TIME:
                break
            count += 1
        return count
