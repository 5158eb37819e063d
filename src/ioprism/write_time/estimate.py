"""How long one write will take, which stages decide it, and how far to trust the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ioprism.errors import NotEnoughDetailError
from ioprism.model.result import Result, pick
from ioprism.model.samples import WritePattern
from ioprism.write_time import limits
from ioprism.write_time.features import feature_table
from ioprism.write_time.fitting import LinearFit
from ioprism.write_time.loads import SYMBOLS, check_pattern, loads_of, parameters, stage_loads
from ioprism.write_time.model import WriteTimeModel

START = "start-up"
STRAGGLERS = "slowest process"


@dataclass(frozen=True, slots=True)
class StagePart:
    """The seconds of one stage."""

    stage: str
    loads: tuple[str, ...]  # what the stage has to carry; empty for fixed costs
    seconds: float
    # Stages with the same load in all samples: the time may be theirs.
    same_as: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; `feature` is what the stage carries."""
        return {
            "stage": self.stage,
            "feature": ", ".join(self.loads) or self.stage,
            "seconds": self.seconds,
            "same_as": list(self.same_as),
        }


def stage_parts(
    pattern: WritePattern, *, model: WriteTimeModel, seconds: float
) -> tuple[StagePart, ...]:
    """Split a predicted time over the stages, largest first; the parts add up to it."""
    fit = model.stages
    loads = loads_of(model.system, model.facts.access)
    start, by_load, waiting = fit.parts(stage_loads([pattern], system=model.system)[0])
    whole = start + float(by_load.sum()) + waiting
    parts = {START: StagePart(START, (), start), STRAGGLERS: StagePart(STRAGGLERS, (), waiting)}
    for number, load in enumerate(loads):
        known = parts.get(load.stage, StagePart(load.stage, (), 0.0))
        same = tuple(loads[left_out].stage for left_out, kept in fit.tied if kept == number)
        parts[load.stage] = StagePart(
            load.stage,
            (*known.loads, load.name),
            known.seconds + float(by_load[number]),
            (*known.same_as, *(stage for stage in same if stage != load.stage)),
        )
    scaled = [
        replace(part, seconds=part.seconds * seconds / whole)
        for part in parts.values()
        if part.seconds > limits.MIN_STAGE_SHARE * whole
    ]
    return tuple(sorted(scaled, key=lambda part: -part.seconds))


def leading_stages(parts: tuple[StagePart, ...]) -> tuple[str, ...]:
    """Name the stages that lead: more than one where they are too close to tell apart."""
    carrying = [part for part in parts if part.loads] or list(parts)
    if not carrying:
        return ()
    limit = (1.0 - limits.CLOSE) * carrying[0].seconds
    close = [part for part in carrying if part.seconds >= limit]
    return tuple(dict.fromkeys(name for part in close for name in (part.stage, *part.same_as)))


def stages_that_may_lead(
    pattern: WritePattern, *, model: WriteTimeModel, parts: tuple[StagePart, ...]
) -> tuple[str, ...]:
    """Name the stages that no sample shows to be fast enough not to take most of this write.

    Far beyond the training scales that is often so: a service that small scales never load.
    """
    most = max((part.seconds for part in parts if part.loads), default=0.0)
    loads = loads_of(model.system, model.facts.access)
    carried = model.stages.shape.carried_loads(stage_loads([pattern], system=model.system))[0]
    slowest = carried * model.stages.bounds
    known = leading_stages(parts)
    return tuple(
        dict.fromkeys(
            load.stage
            for load, seconds in zip(loads, slowest, strict=True)
            if seconds > most and load.stage not in known
        )
    )


@dataclass(frozen=True, slots=True)
class FeaturePart:
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
    parts: tuple[FeaturePart, ...]  # the same by feature, of linear models only; largest first
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism write-time estimate --json` says."""
        return {
            "pattern": self.pattern.to_dict(),
            "seconds": self.seconds,
            "interval": {"low": self.low, "high": self.high, "level": self.level},
            "noisy_interval": {"low": self.noisy[0], "high": self.noisy[1], "level": self.level},
            **pick(self, "warnings", "leading", "may_lead"),
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


def estimate_write(pattern: WritePattern, *, model: WriteTimeModel) -> Estimate:
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
        leading=leading_stages(stages),
        may_lead=stages_that_may_lead(pattern, model=model, parts=stages),
        parts=_feature_parts(pattern, model, seconds),
        warnings=tuple(_warnings(pattern, model, seconds)),
    )


def _feature_parts(
    pattern: WritePattern, model: WriteTimeModel, seconds: float
) -> tuple[FeaturePart, ...]:
    if not isinstance(model.fit, LinearFit):
        return ()
    values = feature_table([pattern], system=model.system, chosen=model.features)[0]
    added = values * model.fit.coefficients
    parts = [
        FeaturePart(feature.name, feature.stage, float(part))
        for feature, part in zip(model.features, added, strict=True)
        if abs(part) >= limits.MIN_FEATURE_SHARE * seconds
    ]
    return tuple(sorted(parts, key=lambda part: -part.seconds))


def _warnings(pattern: WritePattern, model: WriteTimeModel, seconds: float) -> Iterator[str]:
    values = {
        name: float(value[0]) for name, value in parameters([pattern], system=model.system).items()
    }
    yield from model.facts.notes
    largest = model.facts.scales[-1][0]
    if pattern.nodes > largest:
        how = "as far as checks on the larger training scales suggest"
        if not model.calibration.measured_ahead:
            how = "by a guess, as too few scales were sampled to check"
        yield (
            f"{pattern.nodes} nodes are beyond the {largest} of training: the interval is widened, "
            f"{how}"
        )
    for name, value in values.items():
        low, high = model.ranges.get(name, (value, value))
        if value < low or (value > high and name != "n"):  # more nodes are warned about above
            yield f"{SYMBOLS[name]} {value:g} is outside the {low:g} to {high:g} of training"
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
    if seconds <= limits.LEAST_SHARE * model.facts.shortest:
        yield "the model predicts zero or less here: the time is a lower bound, not a prediction"


def _collinearity_warnings(pattern: WritePattern, model: WriteTimeModel) -> Iterator[str]:
    row = feature_table([pattern], system=model.system, chosen=model.features)[0]
    values = dict(zip((f.name for f in model.features), row, strict=True))
    for pair in model.together:
        ratio = values[pair.first] / values[pair.second]
        margin = 1.0 + limits.SAME
        inside = pair.ratio_low / margin <= ratio <= pair.ratio_high * margin
        if not (inside and np.isfinite(ratio)):
            yield (
                f"{pair.first} and {pair.second} changed together in training but not here: the "
                "model cannot know which of them matters"
            )


@dataclass(frozen=True, slots=True)
class PhaseEstimate:
    """A write phase of a trace, as measured and as predicted."""

    start: float  # seconds since the job started
    end: float
    estimate: Estimate

    @property
    def duration(self) -> float:
        """Seconds from the first write to the last."""
        return self.end - self.start

    @property
    def ratio(self) -> float:
        """Measured over predicted."""
        return self.duration / self.estimate.seconds

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        measured = {"measured": self.duration, "ratio": self.ratio}
        return {"start": self.start, "end": self.end, **measured, **self.estimate.to_dict()}


def compare_phases(
    intervals: Sequence[Mapping[str, Any]],
    *,
    model: WriteTimeModel,
    nodes: int | None = None,
    node_list: tuple[int, ...] | None = None,
    stripe_count: int | None = None,
) -> tuple[PhaseEstimate, ...]:
    """Predict every interval of busy writing (start, end, ranks, hosts, bytes).

    Raises:
        NotEnoughDetailError: no interval was given.
        AnalysisError: the model's system cannot run such a write.
    """
    if not intervals:
        raise NotEnoughDetailError(
            needed="phases in which each process writes a separate file",
            has="none",
            hint="give a per-call trace of a job that writes one file per process "
            "(for Darshan: DXT enabled).",
        )
    phases = []
    for interval in intervals:
        ranks = int(interval["ranks"])
        # The hosts that wrote, or else the fewest nodes whose cores hold all ranks.
        used = nodes or int(interval["hosts"] or 0) or -(-ranks // model.system.cores_per_node)
        used = min(used, ranks)
        pattern = WritePattern(
            nodes=used,
            cores_per_node=-(-ranks // used),
            burst_bytes=max(1, round(int(interval["bytes"]) / ranks)),
            stripe_count=stripe_count,
            node_list=node_list if node_list and len(node_list) == used else None,
        )
        estimated = estimate_write(pattern, model=model)
        phases.append(PhaseEstimate(float(interval["start"]), float(interval["end"]), estimated))
    return tuple(phases)
