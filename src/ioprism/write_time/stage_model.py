"""A model of the write path itself: stages that work at the same time, each at its own speed.

    busy = (sum over stages of (load * cost)^p)^(1/p)
    seconds = (start + (metadata^q + busy^q)^(1/q)) * (1 + straggling * ln(files))

Stages form a pipeline, so their times neither add up (p = 1) nor does only the slowest count
(p = infinity); p is between. Files are created before data flows, or while others write already:
q is 1 for the first, and between both where the sampled scales cannot tell. Every process more may
be the slowest one, which the last factor says. All terms are positive, so every second belongs to
a stage.

A stage that the samples do not show gets no cost: its load is penalised, because a speed that the
training scales hardly touch would decide alone at scales far beyond them. How slow it may still
be is kept as a bound, for the intervals. Two things are known without samples. Creating files is
never free: where the fit finds no cost, it costs the geometric mean of what the samples allow. And
stages that all nodes share are built for one another: those that no sample shows take together as
long as the slowest that a sample does show (`_balance_unseen_stages`).

A component that many streams share may be slower than one stream would find it: its load counts
times streams^crowding, with streams the load in bursts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ioprism.model.arrays import MAD_TO_DEVIATION
from ioprism.write_time import limits
from ioprism.write_time.system import FloatArray

STEPS = 80
BURST = 3  # the load that is one burst's size
TINY = float(np.finfo(float).tiny)
LEAST = -14.0  # logarithm of the smallest cost that counts as one, relative to the largest
SMALLEST_DEVIATION = 1e-3
STARTING_STRAGGLING = 0.02


@dataclass(frozen=True, slots=True)
class Shape:
    """How the stages work together, and how strongly unseen ones are penalised."""

    exponent: float
    penalty: float
    creating: tuple[int, ...] = ()  # loads of creating files
    meeting: float = 1.0  # exponent of creating files and writing: 1 is one after the other
    shared: tuple[int, ...] = ()  # loads of components that several nodes share
    whole: tuple[float, ...] = ()  # the loads when the whole machine writes
    crowding: float = 0.0  # how much slower these are for many streams, as an exponent

    def carried_loads(self, loads: FloatArray) -> FloatArray:
        """Return the loads as heavy as the streams that share a component make them."""
        if not self.crowding:
            return loads
        heavier = loads.copy()
        shared = list(self.shared)
        streams = np.maximum(loads[:, shared] / loads[:, [BURST]], 1.0)
        heavier[:, shared] *= streams**self.crowding
        return heavier


@dataclass(frozen=True, slots=True)
class StageFit:
    """The costs of all stages, in seconds per unit of load."""

    kind: ClassVar[str] = "stages"

    shape: Shape
    start: float
    straggling: float
    costs: FloatArray  # one for each load; 0 where nothing shows the stage
    bounds: FloatArray  # the largest costs that the samples allow
    floors: FloatArray  # the smallest ones
    tied: tuple[tuple[int, int], ...] = ()  # loads left out, and the equal ones that stand for them

    def predict(self, table: FloatArray, loads: FloatArray) -> FloatArray:
        """Return seconds."""
        del table
        return self._seconds(loads, self.costs)

    def parts(self, loads: FloatArray) -> tuple[float, FloatArray, float]:
        """Split the time of one write: the start, every load, and waiting for the slowest process.

        All are non-negative and add up to the prediction.
        """
        by_load = self._busy(self.shape.carried_loads(loads[None, :]) * self.costs)[1][0]
        waiting = self.straggling * float(np.log(max(loads[0], 1.0)))
        return self.start, by_load, (self.start + float(by_load.sum())) * waiting

    def slowest(self, loads: FloatArray) -> FloatArray:
        """Return seconds if the stage that matters most were as slow as the samples allow.

        Files are created before data flows then.
        """
        strict = self._with(1.0)
        longest = strict._seconds(loads, self.costs)
        for number, bound in enumerate(self.bounds):
            if bound > self.costs[number]:
                costs = self.costs.copy()
                costs[number] = bound
                longest = np.maximum(longest, strict._seconds(loads, costs))
        return longest

    def fastest(self, loads: FloatArray) -> FloatArray:
        """Return seconds if the stage that matters most were as fast as the samples allow.

        Files are created while others write then.
        """
        together = self._with(max(self.shape.meeting, limits.TOGETHER))
        seen = np.where(self.floors > 0.0, self.costs, 0.0)
        shortest = together._seconds(loads, seen)
        for number, floor in enumerate(self.floors):
            if floor < seen[number]:
                costs = seen.copy()
                costs[number] = floor
                shortest = np.minimum(shortest, together._seconds(loads, costs))
        return shortest

    def _with(self, meeting: float) -> StageFit:
        return replace(self, shape=replace(self.shape, meeting=meeting))

    def _seconds(self, loads: FloatArray, costs: FloatArray) -> FloatArray:
        waiting = self.straggling * np.log(np.maximum(loads[:, 0], 1.0))
        seconds: FloatArray = (
            self.start + self._busy(self.shape.carried_loads(loads) * costs)[0]
        ) * (1.0 + waiting)
        return seconds

    def _busy(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        return busy_time(times, self.shape, np.arange(times.shape[1]))


def busy_time(
    times: FloatArray, shape: Shape, stages: npt.NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """Return how long stages, by their own times, are busy together, and the part of each."""
    creating, exponent, meeting = np.isin(stages, shape.creating), shape.exponent, shape.meeting
    powers = np.where(creating, 0.0, times) ** exponent
    total = np.maximum(powers.sum(axis=1), TINY)
    data, first = total ** (1.0 / exponent), np.where(creating, times, 0.0).sum(axis=1)
    both = np.maximum(data**meeting + first**meeting, TINY)
    busy = both ** (1.0 / meeting)
    parts = np.where(
        creating,
        times * (first ** (meeting - 1.0))[:, None],
        powers * (data**meeting / total)[:, None],
    )
    return busy, parts * (busy / both)[:, None]


def fit_stages(
    loads: FloatArray, seconds: FloatArray, shape: Shape, *, with_bounds: bool = False
) -> StageFit:
    """Fit costs to the logarithm of the time, with outliers counting less."""
    plain, loads = loads, shape.carried_loads(loads)
    kept, tied = _distinct(loads)
    largest = _largest_costs(loads[:, kept], seconds)
    problem = _Problem(
        loads[:, kept] * largest, np.log(seconds), np.log(loads[:, 0]), np.array(kept), shape
    )
    logarithms = _minimise(problem, float(seconds.min()))
    costs, bounds, floors = np.zeros((3, loads.shape[1]))
    shares = np.exp(logarithms[2:])
    costs[kept] = np.where(logarithms[2:] > LEAST / 2, shares, 0.0) * largest
    if with_bounds:
        floors[kept], bounds[kept] = _bounds(problem, logarithms) * largest
        creating = list(shape.creating)
        if shape.meeting == limits.UNDECIDED:  # files cost least if they are created before
            before = fit_stages(plain, seconds, replace(shape, meeting=1.0))
            costs[creating] = np.sqrt(costs[creating] * before.costs[creating])
        free = [number for number in shape.creating if costs[number] == 0.0]
        costs[free] = np.sqrt(floors[free] * bounds[free])
    fit = StageFit(
        shape=shape,
        start=float(np.exp(logarithms[0])),
        straggling=float(np.exp(logarithms[1])),
        costs=costs,
        bounds=bounds,
        floors=np.minimum(floors, costs),
        tied=tied,
    )
    return _balance_unseen_stages(fit) if with_bounds and shape.whole else fit


def _balance_unseen_stages(fit: StageFit) -> StageFit:
    """Give a cost to shared stages that no sample shows: machines are built without waste."""
    loads = np.array([fit.shape.whole])
    shared = np.isin(np.arange(loads.shape[1]), fit.shape.shared)
    whole = np.where(shared, fit.shape.carried_loads(loads)[0], 0.0)
    unseen = (fit.costs == 0.0) & (whole > 0.0)
    unseen[[left_out for left_out, _ in fit.tied]] = False
    slowest = float((whole * fit.costs).max(initial=0.0))
    each = slowest / max(int(unseen.sum()), 1) ** (1.0 / fit.shape.exponent)
    assumed = np.minimum(each / np.where(unseen, whole, 1.0), fit.bounds)
    return replace(fit, costs=np.where(unseen, assumed, fit.costs))


def _distinct(loads: FloatArray) -> tuple[list[int], tuple[tuple[int, int], ...]]:
    kept: list[int] = []
    tied: list[tuple[int, int]] = []
    for number in range(loads.shape[1]):
        column = loads[:, number]
        if not column.any():
            continue
        same = [
            k for k in kept if np.allclose(column, loads[:, k], rtol=limits.SAME_LOAD, atol=0.0)
        ]
        if same:
            tied.append((number, same[0]))
        else:
            kept.append(number)
    return kept, tuple(tied)


def _largest_costs(loads: FloatArray, seconds: FloatArray) -> FloatArray:
    """The cost of every load if it alone made the fastest writes."""
    positive = np.where(loads > 0, loads, np.nan)
    largest: FloatArray = np.nanquantile(seconds[:, None] / positive, 0.02, axis=0)
    return largest


@dataclass(frozen=True, slots=True)
class _Problem:
    """Unknowns are logarithms: of start, straggling, and each cost relative to its largest."""

    loads: FloatArray  # scaled by the largest costs
    logarithms: FloatArray  # of the seconds
    files: FloatArray  # their logarithm
    stages: npt.NDArray[np.int64]  # the number of each load
    shape: Shape

    def residuals(self, unknowns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log(measured / predicted), and the derivatives of log(predicted)."""
        start, straggling = np.exp(unknowns[:2])
        times = self.loads * np.exp(unknowns[2:])
        together, added = busy_time(times, self.shape, self.stages)
        busy = start + together
        waiting = straggling * self.files
        derivatives = np.column_stack(
            [start / busy, waiting / (1.0 + waiting), added / busy[:, None]]
        )
        return self.logarithms - np.log(busy) - np.log1p(waiting), derivatives

    def loss(self, residuals: FloatArray, unknowns: FloatArray, deviation: float) -> float:
        """Huber's loss, and the penalty on costs."""
        size = np.abs(residuals) / deviation
        misfit = np.where(size < 1.0, size**2 / 2.0, size - 0.5).sum()
        return float(misfit + self.penalties(unknowns).sum())

    def penalties(self, unknowns: FloatArray) -> FloatArray:
        """Return the penalty of each unknown."""
        penalties = self.shape.penalty * len(self.files) * np.exp(unknowns)
        penalties[:2] = 0.0
        penalties[2:][np.isin(self.stages, self.shape.creating)] = 0.0  # no file is made for free
        return penalties


def _minimise(problem: _Problem, shortest: float) -> FloatArray:
    """Levenberg and Marquardt's method, with weights that follow the residuals."""
    stages = problem.loads.shape[1]
    unknowns = np.concatenate(
        [[np.log(0.2 * shortest), np.log(STARTING_STRAGGLING)], np.full(stages, -0.4)]
    )
    least = np.concatenate([unknowns[:2] - 10.0, np.full(stages, LEAST)])
    residuals, derivatives = problem.residuals(unknowns)
    damping = 1e-2
    for _ in range(STEPS):
        deviation = _deviation(residuals)
        weights = np.minimum(1.0, deviation / np.maximum(np.abs(residuals), 1e-12)) / deviation**2
        penalties = problem.penalties(unknowns)
        curvature = (derivatives * weights[:, None]).T @ derivatives + np.diag(penalties)
        slope = derivatives.T @ (weights * residuals) - penalties
        before = problem.loss(residuals, unknowns, deviation)
        for _ in range(8):
            damped = curvature + np.diag(damping * np.diag(curvature) + 1e-9 * len(residuals))
            step = np.clip(np.linalg.solve(damped, slope), -2.0, 2.0)
            tried = np.maximum(unknowns + step, least)
            residuals_tried, derivatives_tried = problem.residuals(tried)
            after = problem.loss(residuals_tried, tried, deviation)
            if after < before:
                break
            damping *= 4.0
        else:
            break
        unknowns, residuals, derivatives = tried, residuals_tried, derivatives_tried
        damping = max(damping / 5.0, 1e-8)
        if before - after < 1e-6 * before:
            break
    return unknowns


def _deviation(residuals: FloatArray) -> float:
    spread = MAD_TO_DEVIATION * float(np.median(np.abs(residuals)))
    return limits.SHARPNESS * max(spread, SMALLEST_DEVIATION)


def _bounds(problem: _Problem, unknowns: FloatArray) -> FloatArray:
    """Lower and raise one cost at a time until the samples contradict it."""
    residuals, _ = problem.residuals(unknowns)
    deviation = _deviation(residuals)
    free = replace(problem, shape=replace(problem.shape, penalty=0.0))
    limit = free.loss(residuals, unknowns, deviation) + max(
        limits.LEAST_EVIDENCE, limits.EVIDENCE * len(residuals)
    )

    def furthest(number: int, logarithms: FloatArray) -> float:
        """The first of these that the samples allow, or the fitted one."""
        for logarithm in logarithms:
            moved = unknowns.copy()
            moved[2 + number] = logarithm
            if free.loss(free.residuals(moved)[0], moved, deviation) <= limit:
                return float(logarithm)
        return float(unknowns[2 + number])

    ends = [
        (
            furthest(number, np.arange(LEAST / 2, fitted, 0.1)),
            furthest(number, np.arange(0.0, max(LEAST / 2, fitted), -0.1)),
        )
        for number, fitted in enumerate(unknowns[2:])
    ]
    bounds: FloatArray = np.exp(np.array(ends).reshape(-1, 2).T)
    return bounds
