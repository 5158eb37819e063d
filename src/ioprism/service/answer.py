"""One prediction of one job, on its way to whoever listens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from ioprism.analyses.periodicity.live.online import Prediction
from ioprism.reports.to_json import live


@dataclass(frozen=True, eq=False)
class Answer:
    """What is said about a job, and how many of its messages it counts in."""

    job: str
    prediction: Prediction
    messages: int
    ranks: int | None

    @cached_property
    def json(self) -> str:
        """The prediction as one line of JSON, made once for all listeners."""
        return live.line(self.job, self.prediction, messages=self.messages, ranks=self.ranks)


Listener = Callable[[Answer], None]
