"""The rhythms of a job: of all its I/O, of reads and writes, and of each file or application."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ioprism.engine.base import Engine
from ioprism.errors import AnalysisError, SignalTooShortError
from ioprism.model.signal import Signal, StepFunction
from ioprism.model.trace import Trace
from ioprism.periodicity.detect import Options, detect
from ioprism.periodicity.headline import (
    DIRECTIONS,
    DirectionPeriod,
    best_direction,
    options_of_direction,
)
from ioprism.periodicity.onsets.confirmation import (
    beginning_with,
    is_confirmed,
    needs_confirmation,
)
from ioprism.periodicity.results import NamedPeriod, Period, Rhythm
from ioprism.periodicity.rhythm import answered, every_second, rhythm, take_turns
from ioprism.periodicity.sampling import sample
from ioprism.periodicity.spectral.filters import Filter, apply
from ioprism.views.time.bandwidth import bandwidth, bandwidth_by, metric, only_direction

if TYPE_CHECKING:
    from ioprism.periodicity.asynchronous import RequiredBandwidth


@dataclass(frozen=True, slots=True)
class RhythmSettings:
    """What to look for, and how."""

    direction: str = "both"
    layer: str | None = None  # the deepest of the trace if None
    metric: str | None = None  # a series of the trace instead of its bandwidth
    frequency: float | None = None  # samples per second; chosen if None
    start: float | None = None  # seconds
    end: float | None = None
    options: Options = field(default_factory=Options)
    chosen_filter: Filter | None = None
    components: int = 0
    fit: bool = False
    by: str | None = None  # also the rhythm of each of these


@dataclass(frozen=True, slots=True)
class PartRhythm:
    """The rhythm of one file, rank, directory or application."""

    name: str
    bytes: float
    rhythm: Rhythm


@dataclass(frozen=True, slots=True)
class JobRhythm:
    """The rhythm of a job and of its parts, those that move most first."""

    whole: Rhythm
    parts: tuple[PartRhythm, ...] = ()
    asynchronous: tuple[RequiredBandwidth, ...] = ()  # where the trace tells waits apart


def job_rhythm(trace: Trace, engine: Engine, settings: RhythmSettings) -> JobRhythm:
    """Find all rhythms of a job.

    Raises:
        NotEnoughDetailError: nothing in the trace tells bandwidth over time.
        SignalTooShortError: there is too little of it.
    """
    if settings.metric is not None:
        whole = _rhythm(metric(trace, settings.metric), settings)
    else:
        whole = _rhythm(_bandwidth(trace, engine, settings), settings)
        whole = _confirmed(whole, trace, engine)
        if settings.direction == "both":
            whole = _best_of_directions(whole, trace, engine, settings)
    waits = _asynchronous(trace)
    if settings.by is None:
        return JobRhythm(whole, asynchronous=waits)
    parts = _parts(trace, engine, settings.by, settings)
    named = [
        NamedPeriod(part.rhythm.period, settings.direction, part.name)
        for part in parts
        if part.rhythm.period is not None
    ]
    return JobRhythm(replace(whole, rhythms=(*whole.rhythms, *named)), tuple(parts), waits)


def _asynchronous(trace: Trace) -> tuple[RequiredBandwidth, ...]:
    """Required and measured bandwidth of asynchronous I/O, which only TMIO tells."""
    if trace.format != "tmio" or len(trace.paths) != 1:
        return ()
    from ioprism.formats.signals.tmio import read_asynchronous
    from ioprism.periodicity.asynchronous import required_bandwidth

    return tuple(
        required_bandwidth(direction, start=one.start, end=one.end, wait=one.wait, moved=one.bytes)
        for direction, one in read_asynchronous(trace.paths[0]).items()
    )


def _bandwidth(trace: Trace, engine: Engine, settings: RhythmSettings) -> StepFunction:
    return bandwidth(trace, engine, direction=settings.direction, layer=settings.layer)


def _sampled(steps: StepFunction, settings: RhythmSettings) -> Signal:
    signal = sample(steps, frequency=settings.frequency, start=settings.start, end=settings.end)
    chosen = settings.chosen_filter
    return signal if chosen is None else apply(signal, chosen=chosen)


def _rhythm(steps: StepFunction, settings: RhythmSettings) -> Rhythm:
    return _rhythm_of(_sampled(steps, settings), settings)


def _rhythm_of(signal: Signal, settings: RhythmSettings, *, found: Period | None = None) -> Rhythm:
    return rhythm(
        signal,
        options=replace(settings.options, resample=settings.frequency is None),
        components=settings.components,
        fit=settings.fit,
        direction=settings.direction,
        found=found,
    )


def _confirmed(found: Rhythm, trace: Trace, engine: Engine) -> Rhythm:
    """Drop a period of few phases within a longer job unless `ioprism phases` shows them."""
    if found.period is None:
        return found
    period = _shown(found.signal, found.period, trace, engine)
    if period is None:
        return replace(found, period=None, rhythms=(), burst=None, next_phase=None)
    return replace(found, period=period)


def _shown(signal: Signal, period: Period, trace: Trace, engine: Engine) -> Period | None:
    """The period with the number of its phases that `ioprism phases` shows, if they are enough."""
    if not needs_confirmation(signal, period):
        return period
    from ioprism.phase_detection.find import phases  # it loads polars

    try:
        layers = phases(trace, engine).layers.values()
    except AnalysisError:  # a signal alone: it was asked for its phases already
        return period
    shown = [np.array([phase.start for phase in layer.phases]) for layer in layers]
    most = max((beginning_with(period, starts) for starts in shown), default=0)
    period = replace(period, confirmed=most)
    return period if is_confirmed(period) else None


def _best_of_directions(
    both: Rhythm, trace: Trace, engine: Engine, settings: RhythmSettings
) -> Rhythm:
    """Answer with the period of all I/O, of reads or of writes that explains most."""
    found = _by_direction(both, trace, engine, settings)
    named = tuple(NamedPeriod(one.period, one.direction) for one in found)
    every = (*both.rhythms, *named)
    if both.period is not None and len(found) == len(DIRECTIONS):
        read, write = (one.period for one in found)
        if take_turns(both.period, read, write):
            both = answered(both, every_second(both.signal, both.period))
            return replace(both, takes_turns=True, rhythms=every)
    best = best_direction(both.signal, both.period, found)
    if best is None:
        return replace(both, rhythms=every)
    own = replace(settings, direction=best.direction)
    first = [one for one in every if one.period is best.period and one.direction == own.direction]
    others = [one for one in every if one not in first]
    answer = _rhythm_of(best.signal, own, found=best.period)
    return replace(answer, rhythms=(*first, *others))


def _by_direction(
    both: Rhythm, trace: Trace, engine: Engine, settings: RhythmSettings
) -> list[DirectionPeriod]:
    resample = settings.frequency is None
    options = replace(options_of_direction(settings.options), resample=resample)
    only = only_direction(trace)
    if only in DIRECTIONS:
        whole = both.period
        if whole is None or whole.false_alarm_probability > options.max_false_alarm:
            return []
        return [DirectionPeriod(only, whole, both.signal)]
    directions = []
    for direction in DIRECTIONS:
        own = replace(settings, direction=direction)
        try:
            signal = _sampled(_bandwidth(trace, engine, own), own)
        except AnalysisError:
            continue
        found = detect(signal, options=options)
        periodic = found is not None and found.pattern == "periodic"
        period = _shown(signal, found, trace, engine) if found is not None and periodic else None
        if period is not None:
            directions.append(DirectionPeriod(direction, period, signal))
    return directions


def _parts(trace: Trace, engine: Engine, key: str, settings: RhythmSettings) -> list[PartRhythm]:
    """The rhythm of each part, those that move most first; parts too short for one are left out."""
    every = bandwidth_by(trace, engine, key=key, direction=settings.direction, layer=settings.layer)
    parts = []
    for name, steps in _labelled(trace, key, every).items():
        try:
            rhythm = _rhythm(steps, settings)
        except SignalTooShortError:
            continue
        moved = float((steps.values * np.diff(steps.edges)).sum())
        parts.append(PartRhythm(name, moved, rhythm))
    return sorted(parts, key=lambda part: -part.bytes)


def _labelled(
    trace: Trace, key: str, every: Mapping[object, StepFunction]
) -> dict[str, StepFunction]:
    paths = dict(trace.files.select("file", "path").iter_rows()) if key == "file" else {}
    return {str(paths.get(name, name)): steps for name, steps in every.items()}
