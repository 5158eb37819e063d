"""How well a model predicts measured writes, by set of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ioprism.errors import AnalysisError
from ioprism.model.result import Result
from ioprism.model.samples import Sample
from ioprism.write_time.choice import Predictor
from ioprism.write_time.lasso import FloatArray
from ioprism.write_time.model import WriteTimeModel
from ioprism.write_time.preparation import fingerprint, sort_samples
from ioprism.write_time.system import System
from ioprism.write_time.underestimation import Underestimation, underestimation
from ioprism.write_time.variability import Variability, variability

# The paper's test scales.
SMALL = (200, 256)
MEDIUM = (400, 512)
UNCONVERGED = "unconverged"  # its intervals are those of writes whose repetitions disagree


@dataclass(frozen=True, slots=True)
class SampleSet:
    """Measured and predicted seconds of the samples of one set, shortest first."""

    name: str
    measured: FloatArray
    predicted: FloatArray
    low: FloatArray
    high: FloatArray
    beside: Mapping[str, FloatArray]  # seconds that the other kinds of model predict
    underestimated: Underestimation

    @property
    def errors(self) -> FloatArray:
        """Return (predicted - measured) / measured."""
        return self.predicted / self.measured - 1.0

    def within(self, limit: float) -> float | None:
        """Share of samples whose prediction is off by at most `limit`; None without samples."""
        return _share(np.abs(self.errors) <= limit)

    def within_beside(self, kind: str) -> tuple[float | None, float | None]:
        """The same shares, 20 % and 30 %, of another kind of model."""
        if kind not in self.beside:
            return None, None
        errors = np.abs(self.beside[kind] / self.measured - 1.0)
        return _share(errors <= 0.2), _share(errors <= 0.3)

    @property
    def coverage(self) -> float | None:
        """Share of samples whose measured time lies in the predicted interval."""
        return _share((self.measured >= self.low) & (self.measured <= self.high))

    def to_dict(self) -> dict[str, Any]:
        """Return the scores, not the samples."""
        return {
            "name": self.name,
            "samples": len(self.measured),
            "within_20": self.within(0.2),
            "within_30": self.within(0.3),
            "coverage": self.coverage,
            "beside": {
                kind: dict(zip(("within_20", "within_30"), self.within_beside(kind), strict=True))
                for kind in self.beside
            },
            "underestimated": self.underestimated.to_dict(),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation(Result):
    """A model's scores on all sets."""

    model: WriteTimeModel
    sets: tuple[SampleSet, ...]
    excluded: int  # samples the model was validated on
    variability: Variability  # of the runs themselves

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism write-time evaluate --json` says."""
        return {
            "model": {"kind": self.model.fit.kind, "validation": self.model.facts.validation},
            "level": self.model.calibration.level,
            "excluded": self.excluded,
            "sets": [sample_set.to_dict() for sample_set in self.sets],
            "variability": self.variability.to_dict(),
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row per sample."""
        return pl.concat(
            pl.DataFrame(
                {
                    "set": [sample_set.name] * len(sample_set.measured),
                    "measured": sample_set.measured,
                    "predicted": sample_set.predicted,
                    "low": sample_set.low,
                    "high": sample_set.high,
                }
            )
            for sample_set in self.sets
        )

    def summary(self) -> str:
        """Return the answer in one line."""
        scores = (
            f"{sample_set.name} {sample_set.within(0.2) or 0.0:.0%}"
            for sample_set in self.sets
            if len(sample_set.measured)
        )
        return f"predicted within 20 %: {', '.join(scores)}"


def evaluate(samples: Sequence[Sample], *, model: WriteTimeModel, system: System) -> Evaluation:
    """Compare measured with predicted times.

    Raises:
        AnalysisError: there are no samples, or they are of another system than the model.
    """
    if system.text != model.system.text:
        raise AnalysisError(
            f"the runs are of the system {system.name!r} and the model is of "
            f"{model.system.name!r}, or their descriptions differ.\n"
            "Hint: train a model on this store, or evaluate the model's own store."
        )
    if not samples:
        raise AnalysisError(
            "there are no runs to evaluate.\nHint: add some with `ioprism write-time import`."
        )
    leaked = set(model.facts.validation_samples)
    kept = [s for s in samples if fingerprint(s.pattern) not in leaked]
    groups = _groups(kept, system, model)
    sets = tuple(_sample_set(name, members, model) for name, members in groups.items())
    excluded = len(samples) - len(kept)
    return Evaluation(model, sets, excluded, variability(samples))


def _groups(
    samples: Sequence[Sample], system: System, model: WriteTimeModel
) -> dict[str, list[Sample]]:
    sorted_samples = sort_samples(samples, system)
    beyond = [s for s in sorted_samples.converged if s.pattern.nodes > model.facts.max_nodes]
    groups = {
        "small": [s for s in beyond if SMALL[0] <= s.pattern.nodes <= SMALL[1]],
        "medium": [s for s in beyond if MEDIUM[0] <= s.pattern.nodes <= MEDIUM[1]],
    }
    named = {id(s) for members in groups.values() for s in members}
    rest = [s for s in beyond if id(s) not in named]
    others = {
        **{f"{n} nodes": [s for s in rest if s.pattern.nodes == n] for n in _scales(rest)},
        UNCONVERGED: list(sorted_samples.unconverged),
        "training scales": [
            s for s in sorted_samples.converged if s.pattern.nodes <= model.facts.max_nodes
        ],
    }
    always = ("small", "medium", UNCONVERGED)
    return {n: members for n, members in (groups | others).items() if members or n in always}


def _scales(samples: Sequence[Sample]) -> list[int]:
    return sorted({s.pattern.nodes for s in samples})


def _sample_set(name: str, samples: Sequence[Sample], model: WriteTimeModel) -> SampleSet:
    ordered = sorted(samples, key=lambda s: s.seconds)
    measured = np.array([s.seconds for s in ordered])
    predicted = _predict(ordered, model, model.fit)
    noisy = name == UNCONVERGED
    low, high = measured, measured
    if ordered:
        low, high = model.intervals([s.pattern for s in ordered], noisy=noisy)
    others = model.beside if ordered else ()
    beside = {fit.kind: _predict(ordered, model, fit) for fit in others}
    missed = underestimation(ordered, predicted, system=model.system)
    return SampleSet(name, measured, predicted, low, high, beside, missed)


def _predict(samples: Sequence[Sample], model: WriteTimeModel, fit: Predictor) -> FloatArray:
    if not samples:
        return np.empty(0)
    return model.predict_samples([s.pattern for s in samples], fit=fit)


def _share(hits: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float | None:
    return float(np.mean(hits)) if len(hits) else None
