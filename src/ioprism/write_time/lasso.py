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
from dataclasses import dataclass, replace
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
    """Solve for penalties (step x problem x feature, largest first), each from the one before."""
    path = np.zeros_like(penalties)
    current = np.zeros_like(problems.targets)
    for step, penalty in enumerate(penalties):
        _solve(problems, penalty, current)
        path[step] = current
    return path


def _solve(problems: Problems, penalty: FloatArray, coefficients: FloatArray) -> None:
    """Move coefficients, those of another penalty, to the minimum for this one."""
    signs, barred = np.sign(coefficients), ~problems.usable
    rows, part = np.arange(len(coefficients)), problems
    for _ in range(MAX_STEPS):
        here = coefficients[rows], signs[rows]
        moved, kept, settled = _towards_minimum(part, penalty[rows], *here)
        # A feature pushed out in the step it came in cannot be distinguished from those inside.
        barred[rows] |= (here[1] != 0) & (kept == 0) & (here[0] == 0)
        entering = _entering(part, penalty[rows], moved, kept, barred[rows]) * settled[:, None]
        coefficients[rows], signs[rows] = moved, kept + entering
        going_on = entering.any(axis=1) | ~settled
        if not going_on.any():
            break
        rows = rows[going_on]
        if not going_on.all():
            names = ("correlations", "targets", "usable")
            part = replace(part, **{name: getattr(part, name)[going_on] for name in names})


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
    rows, hardest = np.arange(len(excess)), excess.argmax(axis=1)
    entering = np.zeros_like(signs)
    entering[rows, hardest] = np.where(excess[rows, hardest] > 0, np.sign(pull[rows, hardest]), 0.0)
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
    """Fit the samples that are not held out, for every training set and penalty, largest first.

    Relative penalties are shares of the smallest that makes all coefficients zero. Training sets
    are positions in `data.scales`; all combinations by default.
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
    sums = np.array([by_scale[list(subset)].sum(axis=0) for subset in subsets])
    total = np.maximum(sums[:, 0, 0], np.finfo(float).tiny)
    means = sums[:, 0, 1:] / total[:, None]
    covariance = sums[:, 1:, 1:] / total[:, None, None] - means[:, :, None] * means[:, None, :]
    variances = np.diagonal(covariance, axis1=1, axis2=2)[:, :-1]
    usable = variances > MIN_VARIANCE
    deviations = np.where(usable, np.sqrt(np.maximum(variances, MIN_VARIANCE)), 1.0)
    correlations = covariance[:, :-1, :-1] / deviations[:, :, None] / deviations[:, None, :]
    diagonal = np.arange(deviations.shape[1])
    correlations[:, diagonal, diagonal] = 1.0
    targets = np.where(usable, covariance[:, :-1, -1] / deviations, 0.0)
    problems = Problems(correlations, targets, usable, objective.non_negative)
    largest = np.abs(targets).max(axis=1)
    absolute = np.outer(penalties, largest if relative_penalties else np.ones_like(largest))
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
