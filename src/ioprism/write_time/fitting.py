"""The kinds of write-time models, and how each of them is fitted.

Linear functions of features are chosen from the training scales alone. Gradient boosting works on
the logarithm of the time: it is accurate, but explains little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol

import numpy as np

from ioprism.errors import MissingPackageError
from ioprism.write_time.extrapolation import forward_splits
from ioprism.write_time.lasso import Objective, Subset, search
from ioprism.write_time.system import FloatArray
from ioprism.write_time.training_data import TrainingData

SCORE_TIE = 0.05  # of the score: differences below come from which samples were held out
TREES = 100  # defaults of scikit-learn 1.x (Friedman 2001), with subsample as below
LEARNING_RATE = 0.1
DEPTH = 3
LEAF = -1.0  # as a node's left child


@dataclass(frozen=True, slots=True)
class FitKind:
    """A way to fit: the objective, the penalties tried, and how one is chosen."""

    name: str
    title: str
    objective: Objective
    penalties: tuple[float, ...]  # largest first
    relative_penalties: bool  # as shares of the smallest that leaves only the intercept
    every_subset: bool = True  # search the training sets, or take all scales
    looks_ahead: bool = True  # penalties are also judged by predicting larger scales


# Five to a decade from 10 down, so that the paper's 0.01 is among them.
PAPER_PENALTIES = tuple(10.0 ** (1 - step / 5) for step in range(20))
SHARES = tuple(float(share) for share in np.geomspace(1.0, 1e-5, 20))

KINDS: Mapping[str, FitKind] = {
    kind.name: kind
    for kind in (
        FitKind(
            "relative-lasso",
            "Lasso on relative errors",
            Objective(),
            SHARES,
            relative_penalties=True,
        ),
        FitKind(
            "lasso",
            "plain Lasso, as in the paper",
            Objective(relative=False, scaled=False),
            PAPER_PENALTIES,
            relative_penalties=False,
            looks_ahead=False,
        ),
        FitKind(
            "non-negative",
            "Lasso on relative errors, no negative coefficients",
            Objective(non_negative=True),
            SHARES,
            relative_penalties=True,
        ),
        FitKind(
            "lasso-base",
            "plain Lasso on all scales (Lasso-base)",
            Objective(relative=False, scaled=False),
            PAPER_PENALTIES,
            relative_penalties=False,
            every_subset=False,
            looks_ahead=False,
        ),
        FitKind(
            "linear-best",
            "linear regression on the best training set (Linear-best)",
            Objective(relative=False),
            (0.0,),
            relative_penalties=True,
            looks_ahead=False,
        ),
        FitKind(
            "linear",
            "linear regression on all scales",
            Objective(relative=False),
            (0.0,),
            relative_penalties=True,
            every_subset=False,
            looks_ahead=False,
        ),
    )
}
BOOSTING = "boosting"
STAGES = "stages"
BLEND = "blend"


class Predictor(Protocol):
    """Predicts from features and loads."""

    @property
    def kind(self) -> str:
        """What sort of model it is."""
        ...

    def predict(self, table: FloatArray, loads: FloatArray) -> FloatArray:
        """Return seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Blend:
    """The geometric mean of what several models predict."""

    members: tuple[Predictor, ...]

    @property
    def kind(self) -> str:
        """Both names, such as ``blend: stages, boosting``."""
        return f"{BLEND}: {', '.join(member.kind for member in self.members)}"

    def predict(self, table: FloatArray, loads: FloatArray) -> FloatArray:
        """Return seconds."""
        logarithms = [np.log(np.maximum(m.predict(table, loads), 1e-9)) for m in self.members]
        seconds: FloatArray = np.exp(np.mean(logarithms, axis=0))
        return seconds


@dataclass(frozen=True, slots=True)
class LinearFit:
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


def choose_fit(data: TrainingData, kind: FitKind, *, validation: TrainingData) -> LinearFit:
    """Search training sets and penalties for the least error on the validation samples.

    Kinds that look ahead add how well each penalty, trained on small scales, predicts larger
    training scales: interpolating well does not prove extrapolating well. Among fits that are
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
    return LinearFit(
        kind.name,
        tuple(data.scales[position] for position in candidates.subsets[subset]),
        float(candidates.penalties[penalty, subset]),
        kind.penalties[penalty] if kind.relative_penalties else None,
        intercept,
        coefficients,
    )


def _prefer_many_scales(score: FloatArray, sizes: Sequence[int]) -> FloatArray:
    """Among scores too close to tell apart, rank the training sets with most scales first."""
    close = score <= (1.0 + SCORE_TIE) * float(score.min())
    most = max(size for column, size in enumerate(sizes) if close[:, column].any())
    return np.where(close & (np.array(sizes) == most), score, np.inf)


def _forward_score(data: TrainingData, kind: FitKind) -> FloatArray:
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


def refit(data: TrainingData, kind: FitKind, fit: LinearFit) -> LinearFit:
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


@dataclass(frozen=True, slots=True)
class Trees:
    """A sum of regression trees that give log(seconds); needs no package to predict."""

    kind: ClassVar[str] = "boosting"

    start: float
    trees: tuple[FloatArray, ...]  # each: node x (left, right, feature, threshold, value)

    def predict(self, table: FloatArray, loads: FloatArray) -> FloatArray:
        """Return seconds."""
        del loads
        total = np.full(len(table), self.start)
        for tree in self.trees:
            total += _leaf_values(tree, table)
        seconds: FloatArray = np.exp(total)
        return seconds


def can_boost() -> bool:
    """Whether the package that fits trees is installed."""
    return find_spec("sklearn") is not None


def fit_trees(data: TrainingData, *, seed: int) -> Trees:
    """Fit trees to all samples.

    Raises:
        MissingPackageError: scikit-learn is not installed.
    """
    try:
        ensemble = import_module("sklearn.ensemble")
    except ImportError as error:
        raise MissingPackageError(
            needed_by="the boosting model", package="scikit-learn", install="'ioprism[boosting]'"
        ) from error
    fitted = ensemble.GradientBoostingRegressor(
        n_estimators=TREES,
        learning_rate=LEARNING_RATE,
        max_depth=DEPTH,
        subsample=0.7,
        random_state=seed,
    ).fit(data.table, np.log(data.seconds))
    start = float(np.mean(np.log(data.seconds)))
    return Trees(start, tuple(_nodes(estimator.tree_) for (estimator,) in fitted.estimators_))


def _nodes(tree: Any) -> FloatArray:  # noqa: ANN401 - scikit-learn has no types
    return np.column_stack(
        [
            tree.children_left,
            tree.children_right,
            tree.feature,
            tree.threshold,
            LEARNING_RATE * tree.value[:, 0, 0],
        ]
    ).astype(np.float64)


def _leaf_values(tree: FloatArray, table: FloatArray) -> FloatArray:
    at = np.zeros(len(table), dtype=np.int64)
    rows = np.arange(len(table))
    for _ in range(DEPTH):
        inner = tree[at, 0] != LEAF
        # scikit-learn compares in single precision.
        values = table[rows, np.where(inner, tree[at, 2], 0).astype(np.int64)].astype(np.float32)
        branch = np.where(values <= tree[at, 3], tree[at, 0], tree[at, 1])
        at = np.where(inner, branch, at).astype(np.int64)
    leaves: FloatArray = tree[at, 4]
    return leaves
