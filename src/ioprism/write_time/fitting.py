"""The kinds of write-time models, how each is fitted, and how well it extrapolates.

Linear functions of features are chosen from the training scales alone. Gradient boosting works on
the logarithm of the time: it is accurate, but explains little.

No sample beyond the training scales is ever looked at. A forward check trains on the scales up to
one of them and predicts the others, up to sixteen times larger. Intervals are conformal: they
contain the asked share of the errors that the model made on samples it did not see. There is one
for every distance from the training scales, measured by the forward checks, and one for writes
whose repetitions disagree. Errors far out are mostly shared by all samples of a scale, so the worst
check at a distance counts, not their mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import ClassVar

import numpy as np

from ioprism.errors import MissingPackageError
from ioprism.write_time import limits
from ioprism.write_time.lasso import Candidates, Objective, search
from ioprism.write_time.stage_model import StageFit
from ioprism.write_time.system import FloatArray
from ioprism.write_time.training_data import TrainingData


@dataclass(frozen=True, slots=True)
class ForwardCheck:
    """One training scale as predicted from smaller ones: log(measured / predicted)."""

    doublings: float  # of the node count, beyond the largest scale that was seen
    logarithms: FloatArray
    weight: float = 1.0  # in the mean over cells


Checks = tuple[ForwardCheck, ...]


def forward_splits(data: TrainingData) -> list[tuple[TrainingData, TrainingData]]:
    """Split the training scales into small ones, and those up to sixteen times larger."""
    scales = data.scales
    cuts = scales[limits.MIN_SCALES - 1 : -1][-limits.MAX_CHECKS :]
    return [
        (data.up_to(cut), data.part((data.nodes > cut) & (data.nodes <= limits.MAX_FACTOR * cut)))
        for cut in cuts
        if scales[scales.index(cut) + 1] <= limits.MAX_FACTOR * cut
    ]


def forward_checks(data: TrainingData, recipe: Recipe) -> Checks:
    """Fit every split's small scales, and compare with its larger ones."""
    cells: list[ForwardCheck] = []
    for seen, ahead in forward_splits(data):
        logarithms = log_ratios(recipe(seen), ahead, known=seen)
        cells += [
            ForwardCheck(
                float(np.log2(scale / seen.scales[-1])),
                logarithms[ahead.nodes == scale],
                len(seen.scales) / len(ahead.scales),
            )
            for scale in ahead.scales
        ]
    return tuple(cells)


def forward_error(checks: Checks) -> float:
    """Mean of |log(measured / predicted)|; a check counts by the number of scales it saw."""
    return float(np.average(_cell_errors(checks), weights=[cell.weight for cell in checks]))


def _cell_errors(checks: Checks) -> FloatArray:
    return np.array([np.mean(np.abs(cell.logarithms)) for cell in checks])


def first_as_good(checks: Mapping[str, Checks]) -> str:
    """Return the first kind that is not clearly worse than the best, in order of preference.

    That is, by no more than one standard error (Breiman et al. 1984) of the difference, check by
    check: all kinds meet the same noise, which is most of a good one's error.
    """
    best = min(checks, key=lambda name: forward_error(checks[name]))
    shares = np.array([cell.weight for cell in checks[best]])
    shares /= shares.sum()
    for name, cells in checks.items():
        worse = _cell_errors(cells) - _cell_errors(checks[best])
        mean = float(worse @ shares)
        spread = float((shares**2) @ (worse - mean) ** 2) * len(worse) / max(len(worse) - 1, 1)
        if mean <= math.sqrt(spread):
            return name
    return best


def log_ratios(fit: Predictor, data: TrainingData, *, known: TrainingData) -> FloatArray:
    """Return log(measured / predicted) of every sample.

    Predictions that a linear function drove to or below zero count as a small share of the
    shortest known sample.
    """
    least = limits.LEAST_SHARE * float(known.seconds.min())
    logarithms: FloatArray = np.log(
        data.seconds / np.maximum(fit.predict(data.table, data.loads), least)
    )
    return logarithms


@dataclass(frozen=True, slots=True)
class Step:
    """Factors around a prediction, at this many doublings beyond the training scales."""

    doublings: float
    low: float
    high: float
    samples: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """The factors at rising distance from the training scales, and the level they stand for."""

    level: float
    steps: tuple[Step, ...]  # the first at distance 0
    noisy: Step  # at distance 0, for writes whose repetitions disagree
    measured_ahead: bool  # whether the growth beyond the training scales was measured

    def factors(self, doublings: float, *, noisy: bool = False) -> tuple[float, float]:
        """Return what to multiply a prediction with for its interval's two ends."""
        distance = max(0.0, doublings)
        low = self._at(distance, [math.log(step.low) for step in self.steps])
        high = self._at(distance, [math.log(step.high) for step in self.steps])
        if noisy:
            # The noise of such a write is there at any scale; the model's own error grows.
            low += math.log(self.noisy.low / self.steps[0].low)
            high += math.log(self.noisy.high / self.steps[0].high)
        return math.exp(low), math.exp(high)

    def _at(self, distance: float, ends: Sequence[float]) -> float:
        places = [step.doublings for step in self.steps]
        growth = limits.SAFETY_PER_DOUBLING if self.measured_ahead else limits.UNCHECKED_SAFETY
        safety = 1.0 + distance * growth
        bound = float(np.interp(distance, places, ends))
        if distance > places[-1] > 0:
            bound += (ends[-1] - ends[0]) / places[-1] * (distance - places[-1])
        return safety * bound


def calibrate(
    known: Sequence[FloatArray], ahead: Checks, unconverged: FloatArray, *, level: float
) -> Calibration:
    """Take the factors from errors on samples that the fits did not see.

    Args:
        known: log(measured / predicted) of samples of the training scales: those held out, and
            where there are enough, each of them as predicted from others; the wider ends count.
        ahead: the same for training scales larger than those a fit was trained on.
        unconverged: the same for samples of the training scales that did not converge.
        level: the share of measurements that the interval is to hold.
    """
    steps = [_cover([_step(0.0, errors, level) for errors in known])]
    for distance in sorted({round(cell.doublings) for cell in ahead} - {0}):
        cells = [
            _step(distance, cell.logarithms, level)
            for cell in ahead
            if round(cell.doublings) == distance and len(cell.logarithms) >= limits.MIN_COUNT
        ]
        if cells:
            steps.append(_cover(cells))
    growing = tuple(_cover(steps[: number + 1]) for number in range(len(steps)))
    near, count = growing[0], len(unconverged)
    spread = math.exp(limits.UNKNOWN_NOISE)
    noisy = Step(0.0, near.low / spread, near.high * spread, count)
    if count >= limits.MIN_COUNT:
        noisy = _cover([near, _step(0.0, unconverged, level)])
    return Calibration(level, growing, noisy, len(steps) > 1)


def _step(distance: float, logarithms: FloatArray, level: float) -> Step:
    """The factors between which the middle `level` of new values is: split conformal prediction."""
    low, high, count = -1.0, 1.0, len(logarithms)
    if count:
        ordered = np.sort(logarithms)
        inner = max(math.floor((count + 1) * (1.0 - level) / 2) - 1, 0)
        low, high = float(ordered[inner]), float(ordered[count - 1 - inner])
    return Step(distance, math.exp(min(low, 0.0)), math.exp(max(high, 0.0)), count)


def _cover(steps: Sequence[Step]) -> Step:
    """Cover all of them, at the distance of the last."""
    return Step(
        steps[-1].doublings,
        min(step.low for step in steps),
        max(step.high for step in steps),
        steps[-1].samples,
    )


LEAF = -1.0  # as a node's left child


@dataclass(frozen=True, slots=True)
class FitKind:
    """A way to fit: the objective, the penalties tried, and how one is chosen."""

    name: str
    title: str
    objective: Objective
    penalties: tuple[float, ...]  # largest first
    every_subset: bool = True  # search the training sets, or take all scales
    looks_ahead: bool = False  # penalties are also judged by predicting larger scales

    @property
    def relative_penalties(self) -> bool:
        """Whether they are shares of the smallest that leaves only the intercept."""
        return self.penalties is not PAPER_PENALTIES

    def search(
        self,
        data: TrainingData,
        *,
        every_subset: bool = False,
        penalties: Sequence[float] | None = None,
    ) -> Candidates:
        """Fit all penalties, or these, to all scales together or to every training set."""
        return search(
            data,
            self.objective,
            penalties=penalties or self.penalties,
            relative_penalties=self.relative_penalties,
            subsets=None if every_subset else [tuple(range(len(data.scales)))],
        )


# Five to a decade from 10 down, so that the paper's 0.01 is among them.
PAPER_PENALTIES = tuple(10.0 ** (1 - step / 5) for step in range(20))
SHARES = tuple(float(share) for share in np.geomspace(1.0, 1e-5, 20))
IN_UNITS, SCALED = Objective(relative=False, scaled=False), Objective(relative=False)
POSITIVE = Objective(non_negative=True)

_KINDS = (
    FitKind("relative-lasso", "Lasso on relative errors", Objective(), SHARES, looks_ahead=True),
    FitKind("lasso", "plain Lasso, as in the paper", IN_UNITS, PAPER_PENALTIES),
    FitKind("non-negative", "Lasso on relative errors, no negative coefficients", POSITIVE,
            SHARES, looks_ahead=True),
    FitKind("lasso-base", "plain Lasso on all scales (Lasso-base)", IN_UNITS, PAPER_PENALTIES,
            every_subset=False),
    FitKind("linear-best", "linear regression on the best training set (Linear-best)", SCALED,
            (0.0,)),
    FitKind("linear", "linear regression on all scales", SCALED, (0.0,), every_subset=False),
)  # fmt: skip
KINDS: Mapping[str, FitKind] = {kind.name: kind for kind in _KINDS}
BOOSTING = "boosting"
STAGES = "stages"


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
    candidates = kind.search(data, every_subset=kind.every_subset)
    errors = candidates.squared_errors(validation, kind.objective)
    score = errors / max(float(errors.min()), np.finfo(float).tiny)
    if kind.looks_ahead:
        score = score + _forward_score(data, kind)[:, None]
        # Among scores too close to tell apart, the training sets with most scales come first.
        sizes = np.array([len(subset) for subset in candidates.subsets])
        close = score <= (1.0 + limits.SAME) * float(score.min())
        most = sizes[close.any(axis=0)].max()
        score = np.where(close & (sizes == most), score, np.inf)
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


def _forward_score(data: TrainingData, kind: FitKind) -> FloatArray:
    """Error of every penalty on scales larger than it was trained on, least = 1; else zeros."""
    total = np.zeros(len(kind.penalties))
    for seen, ahead in forward_splits(data):
        total += kind.search(seen).squared_errors(ahead, kind.objective)[:, 0]
    return total / total.min() if total.any() else total


def refit(data: TrainingData, kind: FitKind, fit: LinearFit) -> LinearFit:
    """Fit other samples with the penalty that was chosen."""
    penalty = fit.penalty if fit.penalty_share is None else fit.penalty_share
    intercept, coefficients = kind.search(data, penalties=(penalty,)).raw(0, 0)
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


Predictor = LinearFit | Trees | StageFit
Recipe = Callable[[TrainingData], Predictor]  # fits samples with everything else already chosen


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
    model = ensemble.GradientBoostingRegressor(subsample=0.7, random_state=seed)
    logarithms = np.log(data.seconds)
    fitted = model.fit(data.table, logarithms)
    trees = []
    for (estimator,) in fitted.estimators_:
        tree = estimator.tree_
        parts = (tree.children_left, tree.children_right, tree.feature, tree.threshold)
        values = fitted.learning_rate * tree.value[:, 0, 0]
        trees.append(np.column_stack([*parts, values]).astype(np.float64))
    return Trees(float(np.mean(logarithms)), tuple(trees))


def _leaf_values(tree: FloatArray, table: FloatArray) -> FloatArray:
    at = np.zeros(len(table), dtype=np.int64)
    rows = np.arange(len(table))
    for _ in range(len(tree)):  # as deep as a tree can be, should its file be damaged
        inner = tree[at, 0] != LEAF
        if not inner.any():
            break
        # scikit-learn compares in single precision.
        values = table[rows, np.where(inner, tree[at, 2], 0).astype(np.int64)].astype(np.float32)
        branch = np.where(values <= tree[at, 3], tree[at, 0], tree[at, 1])
        at = np.where(inner, branch, at).astype(np.int64)
    leaves: FloatArray = tree[at, 4]
    return leaves
