"""How far can the predicted next phase be trusted, going by those predicted before?"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ioprism.analyses.periodicity.results import NextPhase, Period

ON_TIME = 0.1  # share of the period by which a phase on time may be early or late
PRIOR_WEIGHT = 2.0  # phases that the spread of the period is worth
REMEMBERED = 32  # phases
SPREAD_FLOOR = 0.005  # of the period; no clock is better than this


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
        self._last_start = -math.inf
        self._expected: tuple[float, float] | None = None  # start and period, in seconds

    def observe(self, start: float) -> None:
        """Hear when the latest phase began, in seconds."""
        if self._expected is not None:
            due, period = self._expected
            if start < self._last_start + period / 2:
                return
            self.errors.append(abs(start - due) / period)
            self._expected = None
        self._last_start = start

    def expect(self, phase: NextPhase, period: Period) -> ExpectedPhase:
        """Keep a prediction to compare with; return it with its confidence."""
        if self._expected is None:
            self._expected = (phase.start, period.seconds)
        return ExpectedPhase(phase.start, phase.end, phase.bytes, self._confidence(period))

    def forget(self) -> None:
        """Begin anew with another rhythm."""
        self.errors.clear()
        self._expected = None

    def state(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "errors": list(self.errors),
            "last_start": self._last_start,
            "expected": None if self._expected is None else list(self._expected),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Record:
        """Return the record that `state` described."""
        record = cls()
        record.errors.extend(float(error) for error in state["errors"])
        record._last_start = float(state["last_start"])
        if state["expected"] is not None:
            due, period = state["expected"]
            record._expected = (float(due), float(period))
        return record

    def _confidence(self, period: Period) -> float:
        spread = max(period.spread / period.seconds, SPREAD_FLOOR)
        prior = math.erf(ON_TIME / (spread * math.sqrt(2)))
        hits = sum(error <= ON_TIME for error in self.errors)
        share = (hits + PRIOR_WEIGHT * prior) / (len(self.errors) + PRIOR_WEIGHT)
        return share * (1.0 - period.false_alarm_probability)
