"""How easily does chance alone produce this much regularity?

All answers are natural logarithms of probabilities, because those of clear periods underflow.
"""

from __future__ import annotations

import math

import numpy as np

from ioprism.model.arrays import TINY, FloatArray
from ioprism.periodicity import limits

CERTAIN = 0.0  # log of probability 1
MAX_EXACT_PHASES = 30  # above this Chernoff's bound (1952) is used


def log_regular(*, waits: int, variation: float, shape: float = 1.0) -> float:
    """Chance that as many waits of a gamma law vary as little as this.

    A shape of 1 is the exponential law. If bursts come at random (a Poisson process), then
    whatever their lengths the idle gaps between them follow it. Higher shapes are the laws of
    processes without a period that are not memoryless either: times between the crossings of
    smooth noise, or how long requests take. The coefficient of variation of the law is
    1 / sqrt(shape).

    Waits divided by their sum follow a Dirichlet law, which is densest where all are equal. A
    coefficient of variation below ``variation`` is a ball around that point, so its volume
    times that density bounds the chance; for few waits the bound is tight. For many, the
    squared coefficient has moments known exactly, and is log-normal for the exponential law
    (Greenwood's statistic) and gamma-like for higher shapes.

    The chance of a ball around any other point is smaller, so the same bound holds for
    the distances of phase starts given the lengths of the phases.

    Args:
        waits: how many.
        variation: their standard deviation divided by their mean.
        shape: of the gamma law.
    """
    if waits < 2:
        return CERTAIN
    volume = min(CERTAIN, _log_ball(waits, variation, shape))
    if shape > 1.0:
        return volume if waits < limits.MIN_GAMMA_WAITS else _log_gamma(waits, variation, shape)
    if waits < limits.MIN_GREENWOOD_WAITS:
        return volume
    return min(volume, max(_log_greenwood(waits, variation), -limits.MAX_TAIL_PER_WAIT * waits))


def log_ever_even(waits: FloatArray, *, shape: float, error: float) -> float:
    """Chance that waits of a gamma law look as much like a period's at any moment until now.

    How much likelier they are to be a period's is a martingale if the law is the one given: it
    ever exceeds a number with a chance of one in that number (Ville, 1939), however often one
    looks. Only waits divided by their sum are compared, which follow a Dirichlet law.

    Args:
        waits: all until now, in seconds.
        shape: of the gamma law.
        error: seconds, the standard deviation to which a wait is known.
    """
    count, least = len(waits), error / float(waits.mean())
    logs = float(np.log(waits / waits.sum()).sum())

    def log_density(shape: float) -> float:
        return math.lgamma(count * shape) - count * math.lgamma(shape) + (shape - 1.0) * logs

    periods = [
        log_density(max(variation, least) ** -2.0) for variation in limits.PERIODIC_VARIATIONS
    ]
    mean = float(np.logaddexp.reduce(periods)) - math.log(len(periods))
    return min(CERTAIN, log_density(shape) - mean)


def log_ever_wandering(waits: FloatArray, *, error: float) -> float:
    """Chance that waits which wander look as much like a period's at any moment until now.

    The logarithms of such waits are a random walk. As in `log_ever_even`, how much likelier they
    are to be a period's is a martingale if they wander, whatever the first one was.

    Args:
        waits: all until now, in seconds.
        error: seconds, the standard deviation to which a wait is known.
    """
    logs, count = np.log(waits), len(waits)
    if count < 2:
        return CERTAIN
    least = error / float(waits.mean())
    numbers = np.arange(1, count)
    off = logs[1:] - np.cumsum(logs)[:-1] / numbers  # from the mean of all before
    wider = np.sqrt(1.0 + 1.0 / numbers)

    def log_density(deviations: FloatArray, widths: FloatArray) -> float:
        return float(-np.sum(np.log(widths) + 0.5 * (deviations / widths) ** 2))

    periods = [log_density(off, max(one, least) * wider) for one in limits.PERIODIC_VARIATIONS]
    walks = [
        log_density(np.diff(logs), np.full(count - 1, step)) for step in limits.WANDERING_STEPS
    ]
    even, wandering = (
        float(np.logaddexp.reduce(every)) - math.log(len(every)) for every in (periods, walks)
    )
    return min(CERTAIN, wandering - even)


def log_alike(*, phases: int, matching: int, chance_of_match: float) -> float:
    """Chance that as many unrelated phases match the middle one.

    Args:
        phases: how many phases, the middle one included.
        matching: how many of them match it, itself included.
        chance_of_match: that one unrelated phase does.
    """
    others, needed = phases - 1, max(matching - 1, 0)
    if others > MAX_EXACT_PHASES:
        share = needed / others
        if share <= chance_of_match:
            return CERTAIN
        rest = 0.0
        if share < 1.0:
            rest = (1.0 - share) * math.log((1.0 - share) / (1.0 - chance_of_match))
        return -others * (share * math.log(share / chance_of_match) + rest)
    terms = [
        math.comb(others, k) * chance_of_match**k * (1.0 - chance_of_match) ** (others - k)
        for k in range(needed, others + 1)
    ]
    return math.log(min(1.0, max(math.fsum(terms), TINY)))


def log_sum_of_evidence(*, tests: int, evidence: float) -> float:
    """Chance that as many tests give this sum of negative log probabilities (Fisher's method)."""
    if evidence <= 0.0:
        return CERTAIN
    logs = [k * math.log(evidence) - math.lgamma(k + 1) for k in range(tests)]
    largest = max(logs)
    return min(CERTAIN, largest + math.log(sum(math.exp(x - largest) for x in logs)) - evidence)


def probability(log_chance: float) -> float:
    """The probability itself, between 0 and 1."""
    return math.exp(min(log_chance, CERTAIN))


def _log_ball(waits: int, variation: float, shape: float) -> float:
    dimensions = waits - 1
    radius_squared = max(variation * variation / waits, TINY)
    ball = dimensions / 2 * math.log(math.pi * radius_squared) - math.lgamma(dimensions / 2 + 1)
    density = math.lgamma(waits * shape) - waits * math.lgamma(shape)
    density -= (shape - 1.0) * waits * math.log(waits) + 0.5 * math.log(waits)
    return ball + density


def _moments(waits: int, shape: float) -> tuple[float, float]:
    """Mean and variance of the squared coefficient of variation."""
    total = waits * shape
    second, fourth = shape * (shape + 1.0), shape * (shape + 1.0) * (shape + 2.0) * (shape + 3.0)
    squares = waits * second / (total * (total + 1.0))
    products = (waits * fourth + waits * (waits - 1) * second**2) / (
        total * (total + 1.0) * (total + 2.0) * (total + 3.0)
    )
    return waits * squares - 1.0, waits**2 * (products - squares**2)


def _log_greenwood(waits: int, variation: float) -> float:
    mean, variance = _moments(waits, 1.0)
    width = math.log1p(variance / mean**2)
    centre = math.log(mean) - width / 2
    z = (2 * math.log(max(variation, math.sqrt(TINY))) - centre) / math.sqrt(width)
    return math.log(max(0.5 * math.erfc(-z / math.sqrt(2)), TINY))


def _log_gamma(waits: int, variation: float, shape: float) -> float:
    mean, variance = _moments(waits, shape)
    form = mean**2 / variance
    return _log_lower_gamma(form, max(variation**2, TINY) * form / mean)


def _log_lower_gamma(form: float, value: float) -> float:
    """Logarithm of the regularised lower incomplete gamma function, by its series."""
    if value > form + 1.0 + 10.0 * math.sqrt(form):
        return CERTAIN
    term = total = 1.0 / form
    step = 1
    while term > 1e-12 * total:
        term *= value / (form + step)
        total += term
        step += 1
    return min(CERTAIN, form * math.log(value) - value - math.lgamma(form) + math.log(total))
