"""How long one write will take, what decides it, and how far to trust the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from ioprism.model.result import Result
from ioprism.model.samples import WritePattern
from ioprism.write_time.explanation import StagePart, leading, may_lead, stage_parts
from ioprism.write_time.features import feature_table
from ioprism.write_time.fitting import Fit
from ioprism.write_time.model import WriteTimeModel
from ioprism.write_time.parameters import check_pattern, parameters

PARAMETERS = {"n": "nodes", "m": "cores per node", "K": "burst size in MB"}
RATIO_MARGIN = 1.05  # how far a ratio may leave its range in training before it matters
SMALLEST_PART = 0.01  # of the predicted time, for a feature to count as deciding


@dataclass(frozen=True, slots=True)
class Part:
    """What one feature adds to the predicted time."""

    feature: str
    stage: str
    seconds: float


@dataclass(frozen=True, slots=True, repr=False)
class Estimate(Result):
    """A predicted write time with its interval."""

    pattern: WritePattern
    seconds: float
    low: float
    high: float
    level: float
    noisy: tuple[float, float]  # the interval's ends where repeated writes disagree
    stages: tuple[StagePart, ...]  # largest first; they add up to the seconds
    leading: tuple[str, ...]  # the stages that take most; several where they are close
    may_lead: tuple[str, ...]  # others that the samples do not exclude
    parts: tuple[Part, ...]  # the same by feature, of linear models only; largest first
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism write-time estimate --json` says."""
        return {
            "pattern": self.pattern.to_dict(),
            "seconds": self.seconds,
            "interval": {"low": self.low, "high": self.high, "level": self.level},
            "noisy_interval": {"low": self.noisy[0], "high": self.noisy[1], "level": self.level},
            "warnings": list(self.warnings),
            "leading": list(self.leading),
            "may_lead": list(self.may_lead),
            "dominant_stages": [part.to_dict() for part in self.stages],
            "features": [asdict(part) for part in self.parts],
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row per stage."""
        rows = [(part.stage, part.to_dict()["feature"], part.seconds) for part in self.stages]
        schema = {"stage": pl.String(), "load": pl.String(), "seconds": pl.Float64()}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def summary(self) -> str:
        """Return the answer in one line."""
        return (
            f"{self.seconds:.4g} s ({self.low:.4g} to {self.high:.4g} at {self.level:.0%}), "
            f"mostly {' or '.join(self.leading)}"
        )


def estimate(pattern: WritePattern, *, model: WriteTimeModel) -> Estimate:
    """Predict the time of one write.

    Raises:
        AnalysisError: the system cannot run the pattern.
    """
    check_pattern(pattern, model.system)
    seconds = float(model.predict([pattern])[0])
    (low,), (high,) = model.intervals([pattern])
    (least,), (most,) = model.intervals([pattern], noisy=True)
    stages = stage_parts(pattern, model=model, seconds=seconds)
    return Estimate(
        pattern=pattern,
        seconds=seconds,
        low=float(low),
        high=float(high),
        level=model.calibration.level,
        noisy=(float(least), float(most)),
        stages=stages,
        leading=leading(stages),
        may_lead=may_lead(pattern, model=model, parts=stages),
        parts=_parts(pattern, model, seconds),
        warnings=tuple(_warnings(pattern, model, seconds)),
    )


def _parts(pattern: WritePattern, model: WriteTimeModel, seconds: float) -> tuple[Part, ...]:
    if not isinstance(model.fit, Fit):
        return ()
    values = feature_table([pattern], system=model.system, chosen=model.features)[0]
    added = values * model.fit.coefficients
    parts = [
        Part(feature.name, feature.stage, float(part))
        for feature, part in zip(model.features, added, strict=True)
        if abs(part) >= SMALLEST_PART * seconds
    ]
    return tuple(sorted(parts, key=lambda part: -part.seconds))


def _warnings(pattern: WritePattern, model: WriteTimeModel, seconds: float) -> Iterator[str]:
    values = {
        name: float(value[0]) for name, value in parameters([pattern], system=model.system).items()
    }
    yield from model.facts.notes
    yield from _scale_warning(pattern, model)
    yield from _range_warnings(values, model)
    yield from _collinearity_warnings(pattern, model)
    if pattern.stripe_count is not None and model.system.filesystem != "lustre":
        yield f"a stripe count has no meaning on {model.system.filesystem}: it is ignored"
    if pattern.node_list is None and model.system.stages:
        yield "no node list was given: the nodes are assumed to be the first ones"
    if model.facts.unknown_placement and model.system.stages:
        yield (
            f"{model.facts.unknown_placement} of {model.facts.samples} training samples had no "
            "node list: the effect of placement is uncertain"
        )
    if seconds < model.facts.shortest:
        yield f"this is shorter than any training sample ({model.facts.shortest:.3g} s)"
    if seconds <= 0.1 * model.facts.shortest:
        yield "the model predicts zero or less here: the time is a lower bound, not a prediction"


def _scale_warning(pattern: WritePattern, model: WriteTimeModel) -> Iterator[str]:
    largest = model.facts.scales[-1][0]
    if pattern.nodes > largest:
        how = "as far as checks on the larger training scales suggest"
        if not model.calibration.measured_ahead:
            how = "by a guess, as too few scales were sampled to check"
        yield (
            f"{pattern.nodes} nodes are beyond the {largest} of training: the interval is widened, "
            f"{how}"
        )


def _range_warnings(values: dict[str, float], model: WriteTimeModel) -> Iterator[str]:
    for name, meaning in PARAMETERS.items():
        low, high = model.ranges[name]
        below, above = values[name] < low, values[name] > high
        if below or (above and name != "n"):
            yield f"{meaning} {values[name]:g} is outside the {low:g} to {high:g} of training"
    for name, value in values.items():
        low, high = model.ranges.get(name, (value, value))
        if name not in PARAMETERS and not low <= value <= high:
            yield f"{name} = {value:g} is outside the {low:g} to {high:g} of training"


def _collinearity_warnings(pattern: WritePattern, model: WriteTimeModel) -> Iterator[str]:
    row = feature_table([pattern], system=model.system, chosen=model.features)[0]
    values = dict(zip((f.name for f in model.features), row, strict=True))
    for pair in model.together:
        ratio = values[pair.first] / values[pair.second]
        inside = pair.ratio_low / RATIO_MARGIN <= ratio <= pair.ratio_high * RATIO_MARGIN
        if not (inside and np.isfinite(ratio)):
            yield (
                f"{pair.first} and {pair.second} changed together in training but not here: the "
                "model cannot know which of them matters"
            )
