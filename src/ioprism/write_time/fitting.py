"""Choose the best fit of one kind from the training scales alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ioprism.write_time.forward import forward_splits
from ioprism.write_time.gram import Subset, TrainingData, search
from ioprism.write_time.kinds import Kind
from ioprism.write_time.lasso import FloatArray

TIE = 0.05  # of the score: differences below come from which samples were held out


@dataclass(frozen=True, slots=True)
class Fit:
    """A linear function of features, and how it was chosen."""

    kind: str
    scales: tuple[int, ...]  # the training set
    penalty: float
    penalty_share: float | None
    intercept: float
    coefficients: FloatArray

    def predict(self, table: FloatArray, loads: FloatArray) -> FloatArray:
        """Return seconds, unclipped."""
        del loads
        predicted: FloatArray = self.intercept + table @ self.coefficients
        return predicted


def choose(data: TrainingData, kind: Kind, *, validation: TrainingData) -> Fit:
    """Search training sets and penalties for the least error on the validation samples.

    Kinds that look ahead add how well each penalty, trained on small scales, predicts larger
    training scales: interpolating well is no proof of extrapolating well. Among fits that are
    about as good, they take one of the training sets with most scales.
    """
    subsets = None if kind.every_subset else [tuple(range(len(data.scales)))]
    candidates = search(
        data,
        kind.objective,
        penalties=kind.penalties,
        relative_penalties=kind.relative_penalties,
        subsets=subsets,
    )
    errors = candidates.squared_errors(validation, kind.objective)
    score = errors / max(float(errors.min()), np.finfo(float).tiny)
    if kind.looks_ahead:
        score = score + _forward_score(data, kind)[:, None]
        score = _prefer_many_scales(score, [len(subset) for subset in candidates.subsets])
    penalty, subset = np.unravel_index(int(np.argmin(score)), score.shape)
    intercept, coefficients = candidates.raw(int(penalty), int(subset))
    return Fit(
        kind.name,
        tuple(data.scales[position] for position in candidates.subsets[subset]),
        float(candidates.penalties[penalty, subset]),
        kind.penalties[penalty] if kind.relative_penalties else None,
        intercept,
        coefficients,
    )


def _prefer_many_scales(score: FloatArray, sizes: Sequence[int]) -> FloatArray:
    """Among scores too close to tell apart, rank the training sets with most scales first."""
    close = score <= (1.0 + TIE) * float(score.min())
    most = max(size for column, size in enumerate(sizes) if close[:, column].any())
    return np.where(close & (np.array(sizes) == most), score, np.inf)


def _forward_score(data: TrainingData, kind: Kind) -> FloatArray:
    """Error of every penalty on scales larger than it was trained on, least = 1; else zeros."""
    total = np.zeros(len(kind.penalties))
    for seen, ahead in forward_splits(data):
        everything: list[Subset] = [tuple(range(len(seen.scales)))]
        candidates = search(
            seen,
            kind.objective,
            penalties=kind.penalties,
            relative_penalties=kind.relative_penalties,
            subsets=everything,
        )
        total += candidates.squared_errors(ahead, kind.objective)[:, 0]
    return total / total.min() if total.any() else total


def refit(data: TrainingData, kind: Kind, fit: Fit) -> Fit:
    """Fit other samples with the penalty that was chosen."""
    penalty = fit.penalty if fit.penalty_share is None else fit.penalty_share
    candidates = search(
        data,
        kind.objective,
        penalties=(penalty,),
        relative_penalties=kind.relative_penalties,
        subsets=[tuple(range(len(data.scales)))],
    )
    intercept, coefficients = candidates.raw(0, 0)
    return replace(fit, scales=data.scales, intercept=intercept, coefficients=coefficients)
