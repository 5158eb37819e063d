"""How well a model predicts measured writes, and how much the same write varies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from ioprism.errors import AnalysisError
from ioprism.model.result import Result
from ioprism.model.samples import Sample
from ioprism.write_time import limits
from ioprism.write_time.estimate import stage_parts
from ioprism.write_time.fitting import Predictor
from ioprism.write_time.loads import parameters
from ioprism.write_time.model import WriteTimeModel, shares_within
from ioprism.write_time.system import FloatArray, System
from ioprism.write_time.training_data import fingerprint, sort_samples

UNCONVERGED = "unconverged"  # its intervals are those of writes whose repetitions disagree


@dataclass(frozen=True, slots=True)
class Variability:
    """The ratios of all patterns that were run more than once, ascending."""

    ratios: FloatArray

    def quantile(self, share: float) -> float | None:
        """The ratio that this share of the patterns stays below; None without patterns."""
        return float(np.quantile(self.ratios, share)) if len(self.ratios) else None

    def distribution(self, points: int = 50) -> list[tuple[float, float]]:
        """The cumulative distribution: ratios, and the share of patterns up to each."""
        if not len(self.ratios):
            return []
        shares = np.linspace(0.0, 1.0, min(points, len(self.ratios)) + 1)[1:]
        ratios = np.quantile(self.ratios, shares, method="inverted_cdf")
        return [(float(ratio), float(share)) for ratio, share in zip(ratios, shares, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Return quantiles and the distribution."""
        return {
            "samples": len(self.ratios),
            "median": self.quantile(0.5),
            "ninth_decile": self.quantile(0.9),
            "distribution": [
                {"max_over_min": ratio, "share": share} for ratio, share in self.distribution()
            ],
        }


def variability(samples: Sequence[Sample]) -> Variability:
    """Compare the slowest and the fastest run of every pattern."""
    repeated = [s.times for s in samples if len(s.times) > 1]
    return Variability(np.sort([max(times) / min(times) for times in repeated]))


@dataclass(frozen=True, slots=True)
class Underestimation:
    """How many predictions are too low, and the one split of the samples that says most."""

    samples: int
    too_low: int
    parameter: str | None = None
    at_least: bool = True  # the split: values at least this large, or below
    threshold: float = 0.0
    inside: tuple[int, int] = (0, 0)  # too low, all, of the samples in the split
    outside: tuple[int, int] = (0, 0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        body: dict[str, Any] = {"samples": self.too_low, "mostly": None}
        if self.parameter is not None:
            body["mostly"] = {
                "parameter": self.parameter,
                "at_least" if self.at_least else "below": self.threshold,
                "inside": {"too_low": self.inside[0], "samples": self.inside[1]},
                "outside": {"too_low": self.outside[0], "samples": self.outside[1]},
            }
        return body


def underestimation(
    samples: Sequence[Sample], predicted: FloatArray, *, system: System
) -> Underestimation:
    """Find the parameter whose high or low values go with predictions that are too low."""
    measured = np.array([s.seconds for s in samples])
    low = predicted < (1.0 - limits.CLOSE) * measured
    nothing = Underestimation(len(samples), int(low.sum()))
    if not low.any():
        return nothing
    values = parameters([s.pattern for s in samples], system=system)
    candidates = []
    for name, value in values.items():
        for threshold in np.unique(np.quantile(value, limits.SPLITS, method="higher")):
            above = value >= threshold
            for at_least, inside in ((True, above), (False, ~above)):
                split = replace(
                    nothing,
                    parameter=name,
                    at_least=at_least,
                    threshold=float(threshold),
                    inside=(int(low[inside].sum()), int(inside.sum())),
                    outside=(int(low[~inside].sum()), int((~inside).sum())),
                )
                if min(split.inside[1], split.outside[1]) >= limits.MIN_COUNT:
                    candidates.append(split)
    return max(candidates, key=_difference, default=nothing)


def _difference(split: Underestimation) -> float:
    """By how much more often predictions are too low inside, in standard errors."""
    inside, outside = split.inside[0] / split.inside[1], split.outside[0] / split.outside[1]
    mean = split.too_low / split.samples
    spread = mean * (1.0 - mean) * (1.0 / split.inside[1] + 1.0 / split.outside[1])
    return (inside - outside) / float(np.sqrt(max(spread, 1e-12)))


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
    stages: Mapping[str, float] = field(default_factory=dict)  # mean share of each stage

    @property
    def errors(self) -> FloatArray:
        """Return (predicted - measured) / measured."""
        return self.predicted / self.measured - 1.0

    def within(self, limit: float) -> float | None:
        """Share of samples whose prediction is off by at most `limit`; None without samples."""
        return _mean_share(np.abs(self.errors) <= limit)

    def within_beside(self, kind: str) -> tuple[float | None, float | None]:
        """The same shares, close and fair, of another kind of model."""
        if kind not in self.beside:
            return None, None
        return shares_within(self.beside[kind] / self.measured - 1.0)

    @property
    def shares_close(self) -> tuple[float | None, float | None, float | None]:
        """Shares of the samples that are close, fair, and within the predicted interval."""
        return self.within(limits.CLOSE), self.within(limits.FAIR), self.coverage

    @property
    def coverage(self) -> float | None:
        """Share of samples whose measured time is within the predicted interval."""
        return _mean_share((self.measured >= self.low) & (self.measured <= self.high))

    def to_dict(self) -> dict[str, Any]:
        """Return the scores, not the samples."""
        return {
            "name": self.name,
            "samples": len(self.measured),
            "within_20": self.within(limits.CLOSE),
            "within_30": self.within(limits.FAIR),
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
    convergence: tuple[tuple[int, float], ...] = ()  # runs, share of patterns converged by then

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
            f"{sample_set.name} {sample_set.within(limits.CLOSE) or 0.0:.0%}"
            for sample_set in self.sets
            if len(sample_set.measured)
        )
        return f"predicted within 20%: {', '.join(scores)}"


def evaluate_samples(
    samples: Sequence[Sample], *, model: WriteTimeModel, system: System
) -> Evaluation:
    """Compare measured with predicted times.

    Raises:
        AnalysisError: no samples were given, or they are of another system than the model.
    """
    if system.text != model.system.text:
        raise AnalysisError(
            f"the runs are of the system {system.name!r} and the model is of "
            f"{model.system.name!r}, or their descriptions differ.\n"
            "Hint: train a model on this store, or evaluate the model's own store."
        )
    access = model.facts.access
    samples = [s for s in samples if s.pattern.access == access]
    if not samples:
        raise AnalysisError(
            f"the store has no runs of {access} to evaluate.\n"
            "Hint: add some with `ioprism write-time import`."
        )
    leaked = set(model.facts.validation_samples)
    kept = [s for s in samples if fingerprint(s.pattern) not in leaked]
    groups = _groups(kept, system, model)
    sets = tuple(_sample_set(name, members, model) for name, members in groups.items())
    excluded = len(samples) - len(kept)
    return Evaluation(model, sets, excluded, variability(samples), _convergence(samples, system))


def _convergence(samples: Sequence[Sample], system: System) -> tuple[tuple[int, float], ...]:
    """After how many runs of a pattern its mean was known to the asked precision."""
    rule = system.sampling
    repeated = [s.times for s in samples if len(s.times) >= rule.minimum_runs]
    counts = range(rule.minimum_runs, rule.maximum_runs + 1)
    needed = [next((n for n in counts if rule.is_converged(times[:n])), None) for times in repeated]
    return tuple(
        (runs, sum(n is not None and n <= runs for n in needed) / len(needed))
        for runs in counts
        if needed
    )


def _groups(
    samples: Sequence[Sample], system: System, model: WriteTimeModel
) -> dict[str, list[Sample]]:
    sorted_samples = sort_samples(samples, system)
    groups: dict[str, list[Sample]] = {name: [] for name in limits.TEST_SCALES}
    trained = []
    for sample in sorted(sorted_samples.converged, key=lambda s: s.pattern.nodes):
        nodes = sample.pattern.nodes
        if nodes <= model.facts.max_nodes:
            trained.append(sample)
            continue
        named = (name for name, (low, high) in limits.TEST_SCALES.items() if low <= nodes <= high)
        groups.setdefault(next(named, f"{nodes} nodes"), []).append(sample)
    groups[UNCONVERGED] = list(sorted_samples.unconverged)
    return groups | ({"training scales": trained} if trained else {})


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
    stages = _stage_shares(ordered, model)
    return SampleSet(name, measured, predicted, low, high, beside, missed, stages)


def _stage_shares(samples: Sequence[Sample], model: WriteTimeModel) -> dict[str, float]:
    """The mean share of the predicted time that each stage takes, the largest first."""
    shares: dict[str, float] = {}
    for sample in samples:
        for part in stage_parts(sample.pattern, model=model, seconds=1.0 / len(samples)):
            shares[part.stage] = shares.get(part.stage, 0.0) + part.seconds
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _predict(samples: Sequence[Sample], model: WriteTimeModel, fit: Predictor) -> FloatArray:
    if not samples:
        return np.empty(0)
    return model.predict_samples([s.pattern for s in samples], fit=fit)


def _mean_share(hits: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float | None:
    return float(np.mean(hits)) if len(hits) else None
