"""Solve many small Lasso problems together, exactly, from their Gram matrices.

Each problem keeps a set of coefficients with known signs. It goes to the minimum for these
signs, drops a coefficient that becomes zero on the way, and lets in the feature that is pulled
hardest, until none is pulled harder than its penalty. Every step lowers the objective. All
problems of a batch take their steps side by side.

Every combination of training scales and penalties is fitted from one Gram matrix for each scale:
the Gram matrix of a training set is the sum of those of its scales, and the squared error on the
validation samples is a quadratic form of theirs, so no fit and no score touches a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ioprism.write_time.system import BoolArray, FloatArray
from ioprism.write_time.training_data import TrainingData

MAX_STEPS = 500
TOLERANCE = 1e-9  # of the largest correlation, for the optimality conditions
RIDGE = 1e-11  # keeps the solve defined when columns are equal to the last digits
MIN_VARIANCE = 1e-12  # variance, of a feature scaled to one, below which it is constant
MAX_SCALES = 10  # beyond, only unbroken ranges of scales are combined

Subset = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Problems:
    """A batch of problems: minimise u·R·u/2 - r·u + sum(penalty·|u|), R with unit diagonal."""

    correlations: FloatArray  # R, problem x feature x feature
    targets: FloatArray  # r, problem x feature
    usable: BoolArray  # problem x feature; false where a feature is constant
    non_negative: bool = False


def solve_path(problems: Problems, penalties: FloatArray) -> FloatArray:
    """Solve for every penalty in turn, each from the solution before.

    Args:
        problems: the batch.
        penalties: step x problem x feature, largest first.

    Returns:
        Coefficients, step x problem x feature.
    """
    path = np.zeros_like(penalties)
    current = np.zeros_like(problems.targets)
    for step, penalty in enumerate(penalties):
        current = _solve(problems, penalty, current)
        path[step] = current
    return path


def _solve(problems: Problems, penalty: FloatArray, start: FloatArray) -> FloatArray:
    coefficients, signs = start.copy(), np.sign(start)
    barred = ~problems.usable
    rows = np.arange(len(start))
    part = problems
    for _ in range(MAX_STEPS):
        here = coefficients[rows], signs[rows]
        moved, kept, settled = _towards_minimum(part, penalty[rows], *here)
        # A feature pushed out in the step it came in cannot be distinguished from those inside.
        pushed_out = (here[1] != 0) & (kept == 0) & (here[0] == 0)
        barred[rows] |= pushed_out
        entering = _entering(part, penalty[rows], moved, kept, barred[rows]) * settled[:, None]
        coefficients[rows], signs[rows] = moved, kept + entering
        going_on = entering.any(axis=1) | ~settled
        if not going_on.any():
            break
        rows, part = rows[going_on], _subset(part, going_on)
    return coefficients


def _subset(problems: Problems, wanted: BoolArray) -> Problems:
    if wanted.all():
        return problems
    return Problems(
        problems.correlations[wanted],
        problems.targets[wanted],
        problems.usable[wanted],
        problems.non_negative,
    )


def _towards_minimum(
    problems: Problems, penalty: FloatArray, current: FloatArray, signs: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Go to the minimum for these signs, or to the first coefficient that becomes zero.

    Returns:
        Coefficients, signs, and which problems reached their minimum.
    """
    target = _minimum(problems, penalty, signs)
    crossing = (signs != 0) & (target * signs <= 0)
    distance = np.where(crossing & (current != target), current - target, 1.0)
    share = np.where(crossing, current / distance, 1.0)
    step = np.clip(share.min(axis=1, keepdims=True), 0.0, 1.0)
    dropped = crossing & (share <= step)
    moved = np.where(dropped, 0.0, current + step * (target - current))
    settled = ~crossing.any(axis=1)
    moved = np.where(settled[:, None], target, moved)
    return moved, np.where(dropped, 0.0, signs), settled


def _minimum(problems: Problems, penalty: FloatArray, signs: FloatArray) -> FloatArray:
    """Solve for the coefficients with a sign; the others are zero."""
    width = max(1, int(np.count_nonzero(signs, axis=1).max()))
    chosen = np.argsort(signs == 0, axis=1, kind="stable")[:, :width]
    rows = np.arange(len(signs))[:, None]
    inside = signs[rows, chosen] != 0
    matrix = problems.correlations[rows[:, :, None], chosen[:, :, None], chosen[:, None, :]]
    matrix *= inside[:, :, None] & inside[:, None, :]
    diagonal = np.arange(width)
    matrix[:, diagonal, diagonal] = 1.0 + RIDGE
    wanted = (problems.targets - penalty * signs)[rows, chosen] * inside
    minimum = np.zeros_like(signs)
    minimum[rows, chosen] = np.linalg.solve(matrix, wanted[:, :, None])[:, :, 0]
    return minimum


def _entering(
    problems: Problems,
    penalty: FloatArray,
    current: FloatArray,
    signs: FloatArray,
    barred: BoolArray,
) -> FloatArray:
    """Return the sign of the feature that is pulled hardest beyond its penalty, if any."""
    explained = (problems.correlations @ current[:, :, None])[:, :, 0]
    pull = problems.targets - explained
    strength = pull if problems.non_negative else np.abs(pull)
    limit = TOLERANCE * np.abs(problems.targets).max(axis=1, keepdims=True)
    excess = np.where((signs != 0) | barred, -np.inf, strength - penalty - limit)
    hardest = excess.argmax(axis=1)[:, None]
    entering = np.zeros_like(signs)
    sign = np.where(np.take_along_axis(excess, hardest, axis=1) > 0, 1.0, 0.0)
    np.put_along_axis(
        entering, hardest, sign * np.sign(np.take_along_axis(pull, hardest, axis=1)), axis=1
    )
    return entering


@dataclass(frozen=True, slots=True)
class Objective:
    """What a fit minimises: mean squared error, and the penalty on coefficients."""

    relative: bool = True  # weights 1/t²: the error counts as a share of the time
    scaled: bool = True  # the penalty is on features of unit variance, not in their own units
    non_negative: bool = False

    def weights(self, seconds: FloatArray) -> FloatArray:
        """Return each sample's weight."""
        return 1.0 / seconds**2 if self.relative else np.ones_like(seconds)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The fits of all penalties and training sets: penalty x training set x feature."""

    subsets: tuple[Subset, ...]  # each names positions in the scales
    penalties: FloatArray  # absolute, penalty x training set
    coefficients: FloatArray  # for features scaled by the two below
    intercepts: FloatArray
    centre: FloatArray
    spread: FloatArray

    def raw(self, penalty: int, subset: int) -> tuple[float, FloatArray]:
        """Return the intercept and the coefficients of the unscaled features."""
        coefficients = self.coefficients[penalty, subset] / self.spread
        return float(self.intercepts[penalty, subset] - coefficients @ self.centre), coefficients

    def squared_errors(self, data: TrainingData, objective: Objective) -> FloatArray:
        """Return the weighted mean squared error of every candidate on these samples."""
        scaled = (data.table - self.centre) / self.spread
        moments = _moments(scaled, data.seconds, objective.weights(data.seconds))
        ones = np.ones((*self.intercepts.shape, 1))
        vectors = np.concatenate([-self.intercepts[..., None], -self.coefficients, ones], axis=2)
        flat = vectors.reshape(-1, vectors.shape[2])
        errors = np.einsum("ki,ki->k", flat @ moments, flat) / moments[0, 0]
        positive: FloatArray = np.maximum(errors, 0.0)
        return positive.reshape(self.intercepts.shape)


def all_subsets(scales: Sequence[int]) -> tuple[Subset, ...]:
    """Every non-empty combination of scales; unbroken ranges only where there are too many."""
    count = len(scales)
    if count > MAX_SCALES:
        return tuple(
            tuple(range(low, high)) for low in range(count) for high in range(low + 1, count + 1)
        )
    sizes = range(1, count + 1)
    return tuple(chosen for size in sizes for chosen in combinations(range(count), size))


def search(
    data: TrainingData,
    objective: Objective,
    *,
    penalties: Sequence[float],
    relative_penalties: bool = True,
    subsets: Sequence[Subset] | None = None,
) -> Candidates:
    """Fit the samples that are not held out, for every training set and penalty.

    Args:
        data: the samples.
        objective: what to minimise.
        penalties: largest first.
        relative_penalties: as shares of the smallest penalty that makes all coefficients zero.
        subsets: training sets as positions in `data.scales`; all combinations by default.
    """
    subsets = tuple(subsets if subsets is not None else all_subsets(data.scales))
    fitted = data.part(~data.held_out)
    weights = objective.weights(fitted.seconds)
    centre, spread = _scaling(fitted.table, weights)
    scaled = (fitted.table - centre) / spread
    by_scale = np.array(
        [
            _moments(scaled[rows], fitted.seconds[rows], weights[rows])
            for rows in (fitted.nodes == scale for scale in data.scales)
        ]
    )
    sums = np.tensordot(_membership(subsets, len(data.scales)), by_scale, axes=1)
    means, covariance = _means_and_covariances(sums)
    deviations, usable = _deviations(covariance)
    problems = _problems(covariance, deviations, usable, objective.non_negative)
    absolute = _absolute(np.asarray(penalties), problems, relative_penalties)
    unit = 1.0 if objective.scaled else 1.0 / (deviations * spread)
    solved = solve_path(problems, absolute[:, :, None] * np.broadcast_to(unit, deviations.shape))
    coefficients = solved / deviations
    intercepts = means[:, -1] - np.einsum("lbp,bp->lb", coefficients, means[:, :-1])
    return Candidates(subsets, absolute, coefficients, intercepts, centre, spread)


def _scaling(table: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    centre = np.average(table, axis=0, weights=weights)
    spread = np.sqrt(np.average((table - centre) ** 2, axis=0, weights=weights))
    # A constant column keeps a rest of rounding; scaled up it would look like a feature.
    constant = spread <= 1e-9 * np.abs(centre)
    return centre, np.where(constant | (spread == 0.0), np.maximum(np.abs(centre), 1.0), spread)


def _moments(scaled: FloatArray, seconds: FloatArray, weights: FloatArray) -> FloatArray:
    """Sum w·z·z over samples, with z = (1, features, seconds)."""
    columns = np.column_stack([np.ones_like(seconds), scaled, seconds])
    moments: FloatArray = (columns * weights[:, None]).T @ columns
    return moments


def _membership(subsets: Sequence[Subset], scales: int) -> FloatArray:
    member = np.zeros((len(subsets), scales))
    for row, subset in enumerate(subsets):
        member[row, list(subset)] = 1.0
    return member


def _means_and_covariances(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and covariances of features and seconds, from sums over a training set."""
    total = np.maximum(sums[:, 0, 0], np.finfo(float).tiny)
    means = sums[:, 0, 1:] / total[:, None]
    covariance = sums[:, 1:, 1:] / total[:, None, None] - means[:, :, None] * means[:, None, :]
    return means, covariance


def _deviations(covariance: FloatArray) -> tuple[FloatArray, BoolArray]:
    variances = np.diagonal(covariance, axis1=1, axis2=2)[:, :-1]
    usable = variances > MIN_VARIANCE
    return np.where(usable, np.sqrt(np.maximum(variances, MIN_VARIANCE)), 1.0), usable


def _problems(
    covariance: FloatArray, deviations: FloatArray, usable: BoolArray, non_negative: bool
) -> Problems:
    correlations = covariance[:, :-1, :-1] / deviations[:, :, None] / deviations[:, None, :]
    diagonal = np.arange(deviations.shape[1])
    correlations[:, diagonal, diagonal] = 1.0
    targets = np.where(usable, covariance[:, :-1, -1] / deviations, 0.0)
    return Problems(correlations, targets, usable, non_negative)


def _absolute(penalties: FloatArray, problems: Problems, relative: bool) -> FloatArray:
    largest = np.abs(problems.targets).max(axis=1)
    unit: FloatArray = largest if relative else np.ones_like(largest)
    absolute: FloatArray = penalties[:, None] * unit[None, :]
    return absolute
