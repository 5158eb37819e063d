"""How long a storage target is held by one call alone, read from calls that wait for others.

Each target serves one call after another. A call that arrives while the target is busy ends one
service time after the call before it; one that arrives at an idle target takes the service time
and what is not exclusive (the way through the node and the network).
"""

from __future__ import annotations

import numpy as np

from ioprism.analyses.diagnosis.calls import Calls, Flags, Floats, Ints
from ioprism.analyses.diagnosis.limits import LEAST, LIKELY, MOST
from ioprism.analyses.diagnosis.target_pieces import TargetPieces
from ioprism.records import dataclass

ENOUGH = 12  # calls of a kind for a median that can be trusted
SURE = (0.85, 1.15)  # where waiting calls tell it


@dataclass(frozen=True, slots=True, eq=False)
class QueueFit:
    """Service times at targets."""

    service: Floats  # seconds that each call holds its targets, as observed; NaN unknown
    work: Floats  # the same, summed over its targets: 0 unknown
    idle: Flags  # calls that found all their targets idle
    lone: Floats  # seconds that a call of this class takes when it need not wait
    held: Floats  # seconds that a call of this class holds its targets
    doubt: tuple[float, float]  # `held` may be as small and as large as this many times itself
    classes: Ints  # calls of equal kind and size


def size_classes(calls: Calls) -> Ints:
    """Number calls by kind and size, sizes within a factor of two together."""
    size = np.where(calls.bytes > 0, np.log2(np.maximum(calls.bytes, 1)).round(), 0)
    return calls.kind * 128 + size.astype(np.int64)


def fit_queues(calls: Calls, pieces: TargetPieces) -> QueueFit:
    """Read service times from the order in which calls end at each target."""
    count = len(calls)
    service, idle = np.full(count, np.inf), np.ones(count, np.bool_)
    work = np.zeros(count)
    order = np.lexsort((calls.end[pieces.call], pieces.target))
    rows, targets = pieces.call[order], pieces.target[order]
    if len(rows):
        before = np.concatenate(([-np.inf], calls.end[rows][:-1]))
        before[np.concatenate(([True], targets[1:] != targets[:-1]))] = -np.inf
        alone = calls.end[rows] - np.maximum(calls.start[rows], before)
        np.minimum.at(service, rows, alone)
        work += np.bincount(rows, alone, minlength=count)
        busy = before > calls.start[rows]
        idle[rows[busy]] = False
    service[~np.isfinite(service)] = np.nan
    classes = size_classes(calls)
    lone, held = np.empty(count), np.empty(count)
    told = 0.0  # seconds in calls of classes whose service time waiting calls tell
    for name in np.unique(classes):
        some = classes == name
        duration = calls.duration[some]
        lone[some], held[some], known = _class_costs(
            duration, service[some], idle[some], pieces.group[some]
        )
        told += float(duration.sum()) if known else 0.0
    moved = calls.duration[calls.moves_data].sum()
    doubt = SURE if told >= 0.5 * moved else (LEAST / LIKELY, MOST / LIKELY)
    return QueueFit(service, work, idle, lone, held, doubt, classes)


def _class_costs(
    duration: Floats, service: Floats, idle: Flags, group: Ints
) -> tuple[float, float, bool]:
    """Seconds of a lone call, seconds that it holds its targets, and whether that is known."""
    waited = ~idle & np.isfinite(service)
    served = service_seconds(service[waited], group[waited]) if waited.sum() >= ENOUGH else None
    if idle.sum() >= ENOUGH:
        # A lone call takes no longer than others: else it waited for what the trace does not show.
        alone = float(min(np.median(duration[idle]), np.median(duration)))
        return (
            alone,
            min(alone, served) if served is not None else LIKELY * alone,
            served is not None,
        )
    if served is not None:
        return served / LIKELY, served, True
    alone = float(np.quantile(duration, 0.1))
    return alone, LIKELY * alone, False


def service_seconds(service: Floats, group: Ints) -> float:
    """Seconds that a call holds its targets: the mean at each set of targets, the median of all.

    The mean, as targets may serve several calls at a time: then those end together, and only
    all seconds over all calls tell what one call costs.
    """
    names, place, counts = np.unique(group, return_inverse=True, return_counts=True)
    means = np.bincount(place, service) / counts
    return float(np.median(np.repeat(means, counts))) if len(names) > 1 else float(means[0])
