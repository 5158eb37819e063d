"""Keep the requests of a job as they came, as long as they are few.

A ring of bins forgets what is finer than its bins. The last answer for a job is to be that of its
whole trace, which needs the requests themselves: they are kept until there are too many.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ioprism.errors import AnalysisError
from ioprism.model.signal import FloatArray, Signal
from ioprism.periodicity.sampling import sample
from ioprism.views.time.bandwidth import steps_of_intervals

MOST_REQUESTS = 2**14  # 0.4 MiB, as much as the bins of a long job
UNKNOWN, READ, WRITE = 0, 1, 2
CODES = {None: UNKNOWN, "read": READ, "write": WRITE}

Codes = npt.NDArray[np.int8]


class History:
    """Requests with their directions."""

    def __init__(self) -> None:
        self.complete = True
        self._count = 0
        self._parts: list[tuple[FloatArray, FloatArray, FloatArray, Codes]] = []

    def add(
        self, start: FloatArray, end: FloatArray, amount: FloatArray, codes: Codes | None
    ) -> None:
        """Keep requests; once there are too many, none."""
        if not self.complete:
            return
        self._count += len(start)
        if self._count > MOST_REQUESTS:
            self.complete = False
            self._parts.clear()
            return
        known = np.zeros(len(start), np.int8) if codes is None else codes
        self._parts.append((start, end, amount, known))

    @property
    def direction(self) -> str | None:
        """The direction of all requests, if it is one."""
        kinds = {code for part in self._parts for code in np.unique(part[3]).tolist()}
        names = [name for name, code in CODES.items() if kinds == {code}]
        return names[0] if names else None

    def signals(self, *, samples: bool = False) -> dict[str, Signal]:
        """Bandwidth of both directions, and of each where they are known; empty if incomplete.

        Args:
            samples: whether they are samples of a metric, of which those of zero count, too.
        """
        if not self.complete or not self._parts:
            return {}
        start, end, amount, codes = (
            np.concatenate([part[field] for part in self._parts]) for field in range(4)
        )
        kinds = {"both": np.ones(len(codes), bool), "read": codes == READ, "write": codes == WRITE}
        found = {}
        for name, chosen in kinds.items():
            moving = chosen if samples else chosen & (amount > 0.0)
            if moving.any():
                try:
                    steps = steps_of_intervals(start[moving], end[moving], amount[moving])
                    found[name] = sample(steps)
                except AnalysisError:
                    continue
        if not np.all(codes[amount > 0.0] > UNKNOWN):
            return {"both": found["both"]} if "both" in found else {}
        return found

    def state(self) -> dict[str, Any]:
        """Return everything as plain values."""
        fields = [
            b"".join(np.ascontiguousarray(part[field]).tobytes() for part in self._parts)
            for field in range(4)
        ]
        return {"complete": self.complete, "fields": fields}

    @classmethod
    def restored(cls, state: Mapping[str, Any] | None) -> History:
        """Return what `state` described; an older state has none, and is incomplete."""
        history = cls()
        if state is None or not state["complete"]:
            history.complete = False
            return history
        numbers = [np.frombuffer(field, "<f8").astype(np.float64) for field in state["fields"][:3]]
        codes = np.frombuffer(state["fields"][3], np.int8)
        if len({len(codes), *map(len, numbers)}) > 1:
            raise ValueError("the requests that were kept differ in number")
        if len(codes):
            history.add(numbers[0], numbers[1], numbers[2], codes)
        return history
