"""Which stage of the write path takes how much of a predicted time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ioprism.model.samples import WritePattern
from ioprism.write_time.model import WriteTimeModel
from ioprism.write_time.stage_loads import LOADS, stage_loads

START = "start-up"
STRAGGLERS = "slowest process"
TIE = 0.2  # stages within this share of the largest lead together
SMALLEST = 1e-6  # of the time; less is nothing


@dataclass(frozen=True, slots=True)
class StagePart:
    """The seconds of one stage."""

    stage: str
    loads: tuple[str, ...]  # what the stage has to carry; empty for fixed costs
    seconds: float
    same_as: tuple[str, ...] = ()  # stages with the same load in all samples: it may be theirs

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
    loads = LOADS[model.system.filesystem]
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
        StagePart(part.stage, part.loads, part.seconds * seconds / whole, part.same_as)
        for part in parts.values()
        if part.seconds > SMALLEST * whole
    ]
    return tuple(sorted(scaled, key=lambda part: -part.seconds))


def leading(parts: tuple[StagePart, ...]) -> tuple[str, ...]:
    """Name the stages that lead: more than one where they are too close to tell apart."""
    carrying = [part for part in parts if part.loads] or list(parts)
    if not carrying:
        return ()
    limit = (1.0 - TIE) * carrying[0].seconds
    close = [part for part in carrying if part.seconds >= limit]
    return tuple(dict.fromkeys(name for part in close for name in (part.stage, *part.same_as)))


def may_lead(
    pattern: WritePattern, *, model: WriteTimeModel, parts: tuple[StagePart, ...]
) -> tuple[str, ...]:
    """Name the stages that no sample shows to be fast enough not to take most of this write.

    Far beyond the training scales that is often so: a service that small scales never load.
    """
    most = max((part.seconds for part in parts if part.loads), default=0.0)
    loads = LOADS[model.system.filesystem]
    carried = model.stages.shape.carried(stage_loads([pattern], system=model.system))[0]
    slowest = carried * model.stages.bounds
    known = leading(parts)
    return tuple(
        dict.fromkeys(
            load.stage
            for load, seconds in zip(loads, slowest, strict=True)
            if seconds > most and load.stage not in known
        )
    )
