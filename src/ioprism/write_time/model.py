"""A trained write-time model: what it predicts, and how far off that may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ioprism.model.samples import WritePattern
from ioprism.write_time.choice import Predictor
from ioprism.write_time.columns import Together
from ioprism.write_time.features import Feature, feature_table
from ioprism.write_time.intervals import Calibration
from ioprism.write_time.lasso import FloatArray
from ioprism.write_time.stage_loads import stage_loads
from ioprism.write_time.stage_model import StageFit
from ioprism.write_time.system import System


@dataclass(frozen=True, slots=True)
class Score:
    """How well a fit does on samples it was not trained on."""

    samples: int
    within_20: float  # share of samples whose prediction is off by at most 20 %
    within_30: float
    mean_error: float  # mean of |predicted - measured| / measured
    forward_error: float | None = None  # mean of |log(measured / predicted)| of larger scales


@dataclass(frozen=True, slots=True)
class TrainingFacts:
    """What a model was trained on."""

    samples: int
    runs: int
    scales: tuple[tuple[int, int], ...]  # nodes, samples
    held_out: int
    validation: str
    validation_samples: tuple[str, ...]  # fingerprints, where they are no training samples
    max_nodes: int
    unconverged: int  # left out
    too_short: int  # left out, except by the stage model
    shortest: float  # seconds
    seed: int
    variant: str
    constant_features: tuple[str, ...]
    copied_features: tuple[tuple[str, str], ...]
    unknown_placement: int  # samples without a node list
    short_used: int = 0  # of those too short: converged ones that the stage model learned from
    notes: tuple[str, ...] = ()  # what a person should know about the choice


@dataclass(frozen=True, slots=True)
class WriteTimeModel:
    """Predicts the mean time of file-per-process writes on one system."""

    system: System
    features: tuple[Feature, ...]
    fit: Predictor
    beside: tuple[Predictor, ...]  # the other kinds, for comparison
    stages: StageFit  # says which stage takes how much, whatever kind was chosen
    scores: Mapping[str, Score]  # by kind, on validation samples
    calibration: Calibration
    facts: TrainingFacts
    ranges: Mapping[str, tuple[float, float]]  # of every parameter in training
    together: tuple[Together, ...]

    def predict(
        self, patterns: Sequence[WritePattern], *, fit: Predictor | None = None
    ) -> FloatArray:
        """Return seconds; never less than a tenth of the shortest sample."""
        table = feature_table(patterns, system=self.system, chosen=self.features)
        loads = stage_loads(patterns, system=self.system)
        return np.maximum((fit or self.fit).predict(table, loads), 0.1 * self.facts.shortest)

    def predict_samples(
        self, patterns: Sequence[WritePattern], *, fit: Predictor | None = None
    ) -> FloatArray:
        """Return seconds for writes that count as samples: they last longer than the least."""
        return np.maximum(self.predict(patterns, fit=fit), self.system.sampling.minimum_seconds)

    def intervals(
        self, patterns: Sequence[WritePattern], *, noisy: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Return the two ends around each prediction, in seconds.

        Beyond the training scales a stage may begin to matter that no sample shows, and creating
        files may or may not overlap with writing. Both ends allow for it, as far as samples do.
        """
        predicted = self.predict(patterns)
        factors = [self.calibration.factors(self.doublings(p.nodes), noisy=noisy) for p in patterns]
        low, high = np.array(factors).reshape(-1, 2).T
        loads = stage_loads(patterns, system=self.system)
        usual = self.stages.predict(loads, loads)
        least, most = self.stages.fastest(loads) / usual, self.stages.slowest(loads) / usual
        beyond = np.array([p.nodes > self.facts.scales[-1][0] for p in patterns])
        nearest = self.calibration.factors(0.0, noisy=noisy)
        low = np.where(beyond, np.minimum(low, least * nearest[0]), low)
        high = np.where(beyond, np.maximum(high, most * nearest[1]), high)
        return predicted * low, predicted * high

    def doublings(self, nodes: int) -> float:
        """How many times the node count doubled beyond the training scales."""
        return float(np.log2(nodes / self.facts.scales[-1][0]))
