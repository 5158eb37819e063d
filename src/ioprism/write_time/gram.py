"""Fit every combination of training scales and penalties from one Gram matrix for each scale.

The Gram matrix of a training set is the sum of those of its scales, and the squared error on
the validation samples is a quadratic form of theirs, so no fit and no score touches a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ioprism.write_time.lasso import BoolArray, FloatArray, Problems, solve_path

CONSTANT = 1e-12  # variance, of a feature scaled to one, below which it is constant
MOST_SCALES = 10  # beyond, only unbroken ranges of scales are combined

Subset = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TrainingData:
    """Converged samples of the training scales; some are held out to choose the model."""

    table: FloatArray  # sample x feature
    seconds: FloatArray
    nodes: npt.NDArray[np.int64]
    held_out: BoolArray
    loads: FloatArray = field(default_factory=lambda: np.empty((0, 0)))  # sample x stage load
    short: TrainingData | None = None  # too short to count; they show what every write costs

    @property
    def scales(self) -> tuple[int, ...]:
        """The node counts, ascending."""
        return tuple(int(n) for n in np.unique(self.nodes))

    def part(self, wanted: BoolArray) -> TrainingData:
        """Return some of the samples."""
        return TrainingData(
            self.table[wanted],
            self.seconds[wanted],
            self.nodes[wanted],
            self.held_out[wanted],
            self.loads[wanted] if len(self.loads) else self.loads,
            self.short,
        )

    def up_to(self, nodes: int) -> TrainingData:
        """Return the samples of at most so many nodes."""
        short = self.short.up_to(nodes) if self.short else None
        return replace(self.part(self.nodes <= nodes), short=short)

    def with_short(self) -> TrainingData:
        """Return these samples and the short ones."""
        if self.short is None:
            return self
        mine, short = self, self.short
        return TrainingData(
            np.concatenate([mine.table, short.table]),
            np.concatenate([mine.seconds, short.seconds]),
            np.concatenate([mine.nodes, short.nodes]),
            np.concatenate([mine.held_out, short.held_out]),
            np.concatenate([mine.loads, short.loads]),
        )


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
    if count > MOST_SCALES:
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
    means, covariance = _centred(sums)
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


def _centred(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and covariances of features and seconds, from sums over a training set."""
    total = np.maximum(sums[:, 0, 0], np.finfo(float).tiny)
    means = sums[:, 0, 1:] / total[:, None]
    covariance = sums[:, 1:, 1:] / total[:, None, None] - means[:, :, None] * means[:, None, :]
    return means, covariance


def _deviations(covariance: FloatArray) -> tuple[FloatArray, BoolArray]:
    variances = np.diagonal(covariance, axis1=1, axis2=2)[:, :-1]
    usable = variances > CONSTANT
    return np.where(usable, np.sqrt(np.maximum(variances, CONSTANT)), 1.0), usable


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
