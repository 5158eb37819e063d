"""What is said of the streams of each family: asked once, whichever test looks at it."""

from __future__ import annotations

from functools import cache

from benchmarks.period_families import NOT_PERIODIC, PERIODIC, draw
from benchmarks.periodicity_families import answer
from ioprism.periodicity.results import Period

FAMILIES = {**PERIODIC, **NOT_PERIODIC}


@cache
def answer_of(name: str, number: int) -> Period | None:
    """What the library says of one whole stream of a family."""
    return answer(draw(FAMILIES[name], number))
