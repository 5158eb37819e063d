"""Gradient boosting on the logarithm of the time: accurate, but it explains little."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from ioprism.errors import MissingPackageError
from ioprism.write_time.gram import TrainingData
from ioprism.write_time.lasso import FloatArray

TREES = 100
RATE = 0.1
DEPTH = 3
LEAF = -1.0  # as a node's left child


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
        learning_rate=RATE,
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
            RATE * tree.value[:, 0, 0],
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
