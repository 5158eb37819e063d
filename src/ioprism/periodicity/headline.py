"""Which period is the answer for a job: that of all its I/O, of its reads, or of its writes?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ioprism.errors import AnalysisError
from ioprism.model.signal import Signal
from ioprism.periodicity.detect import Options, detect
from ioprism.periodicity.results import MIN_BYTES_SHARE, Period

DIRECTIONS = ("read", "write")
SAME = 0.05  # of the period


@dataclass(frozen=True, slots=True, eq=False)
class DirectionPeriod:
    """The period of one direction, and the signal that shows it."""

    direction: str  # read, write or both
    period: Period
    signal: Signal


def is_minor(period: Period) -> bool:
    """Whether a period moves so few bytes that it is a detail of the I/O, not the answer."""
    return period.bytes_share is not None and period.bytes_share < MIN_BYTES_SHARE


def options_of_direction(options: Options) -> Options:
    """Each direction is a test of its own, so they divide the false-alarm level (Bonferroni)."""
    level = options.max_false_alarm / len(DIRECTIONS)
    return replace(options, max_false_alarm=level, maybe=False)


def best_direction(
    whole: Signal, period: Period | None, directions: Sequence[DirectionPeriod]
) -> DirectionPeriod | None:
    """Return the direction that explains more than all I/O together, or None if none does.

    A period beyond doubt comes before a possible one; among those the bytes of the job that it
    explains count, times the share of the time in which it holds.

    Args:
        whole: all I/O.
        period: of all I/O, if it has one.
        directions: the periods of reads and of writes.
    """
    worthy = [one for one in directions if not is_minor(one.period)]
    best = max(worthy, key=lambda one: _rank(one, whole), default=None)
    if best is None or period is None or is_minor(period):
        return best
    return None if _rank_of_whole(whole, period, worthy) >= _rank(best, whole) else best


def offline_answer(
    signals: dict[str, Signal], options: Options
) -> tuple[str, Period | None, Signal]:
    """The direction, its period and its signal that answer for a job, as `ioprism period` does.

    Args:
        signals: of `both` directions, and of `read` and `write` where they are known apart.
        options: how to look for the period.
    """
    whole = signals["both"]
    period = _periodic(detect(whole, options=options))
    found = []
    for direction in DIRECTIONS:
        if direction in signals:
            try:
                own = _periodic(detect(signals[direction], options=options_of_direction(options)))
            except AnalysisError:
                continue
            if own is not None:
                found.append(DirectionPeriod(direction, own, signals[direction]))
    best = best_direction(whole, period, found)
    if best is not None:
        return best.direction, best.period, best.signal
    return "both", None if period is None or is_minor(period) else period, whole


def _periodic(found: Period | None) -> Period | None:
    return None if found is None or found.pattern == "slotted" else found


def _rank(one: DirectionPeriod, whole: Signal) -> tuple[bool, float]:
    """How well the period of a direction explains all I/O of the job."""
    total, own = (_moved(signal) for signal in (whole, one.signal))
    bytes_share = (one.period.bytes_share or 0.0) * own / total if total > 0.0 else 0.0
    return one.period.certainty == "sure", bytes_share * (one.period.time_share or 0.0)


def _rank_of_whole(
    whole: Signal, period: Period, directions: Sequence[DirectionPeriod]
) -> tuple[bool, float]:
    """The same for all I/O; directions that share its period count, too."""
    same = [one for one in directions if abs(one.period.seconds / period.seconds - 1.0) <= SAME]
    own = (period.bytes_share or 0.0) * (period.time_share or 0.0)
    return period.certainty == "sure", max(own, sum(_rank(one, whole)[1] for one in same))


def _moved(signal: Signal) -> float:
    return float(signal.values.sum()) * signal.interval
