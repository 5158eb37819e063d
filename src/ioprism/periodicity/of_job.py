"""The periods of a job: of all its I/O, of reads and writes, and of each file or application."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload

import numpy as np
import numpy.typing as npt

from ioprism.engine.base import Engine
from ioprism.errors import AnalysisError, SignalTooShortError, UsageError
from ioprism.formats.signals.tmio import read_asynchronous
from ioprism.model.arrays import Signal, StepFunction
from ioprism.model.result import pick
from ioprism.model.trace import Trace
from ioprism.periodicity.counting import count_common_starts, is_confirmed, needs_confirmation
from ioprism.periodicity.detect import Options, detect, period_of_arrays
from ioprism.periodicity.of_signal import (
    answer_of_directions,
    describe_periodicity,
    main_period,
    with_period,
)
from ioprism.periodicity.results import NamedPeriod, Period, Periodicity
from ioprism.periodicity.sampling import FrequencyFilter, apply_filter, sample
from ioprism.views.bandwidth import (
    DIRECTIONS,
    bandwidth,
    bandwidth_by,
    bandwidth_by_direction,
    metric,
    steps_of_intervals,
)


@dataclass(frozen=True, slots=True)
class PeriodSettings:
    """What to look for, and how."""

    direction: str = "both"
    layer: str | None = None  # the deepest of the trace if None
    metric: str | None = None  # a series of the trace instead of its bandwidth
    frequency: float | None = None  # samples per second; chosen if None
    start: float | None = None  # seconds
    end: float | None = None
    options: Options = field(default_factory=Options)
    chosen_filter: FrequencyFilter | None = None
    components: int = 0
    fit: bool = False
    by: str | None = None  # also find the period of each of these


@dataclass(frozen=True, slots=True)
class PartPeriodicity:
    """The periodicity of one file, rank, directory or application."""

    name: str
    bytes: float
    periodicity: Periodicity

    def to_dict(self) -> dict[str, Any]:
        """Return its name, bytes and period."""
        period = self.periodicity.period
        known = None if period is None else period.to_dict()
        return {"name": self.name, "bytes": self.bytes, "period": known}


@dataclass(frozen=True, slots=True, eq=False)
class RequiredBandwidth:
    """How fast the file system must be so that asynchronous I/O of one direction stays hidden.

    TMIO measures for every asynchronous request how long it took, and how long it might have
    taken: until the program waited for it. Its bytes over the first are the throughput T, over
    the second the bandwidth B that it required. Added up over all ranks at every moment, the
    highest B is what the file system must deliver so that no rank waits (Tarraf et al., TMIO).
    """

    direction: str  # read or write
    requests: int
    bytes: float
    required: StepFunction  # B: bytes per second over time
    measured: StepFunction  # T
    waited: float  # seconds that ranks waited for requests, summed over them
    hidden: float  # share of the requests that ended before they were waited for, 0 to 1

    @property
    def required_peak(self) -> float:
        """The lowest bandwidth at which every request stays hidden."""
        return float(self.required.values.max())

    @property
    def measured_peak(self) -> float:
        """The highest bandwidth that was measured."""
        return float(self.measured.values.max())

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, without the signals."""
        return {
            **pick(self, "direction", "requests", "bytes", "waited", "hidden"),
            "required": {"peak": self.required_peak, "mean": _mean_while_busy(self.required)},
            "measured": {"peak": self.measured_peak, "mean": _mean_while_busy(self.measured)},
        }


def _mean_while_busy(steps: StepFunction) -> float:
    lengths = np.diff(steps.edges)
    busy = float(lengths[steps.values > 0.0].sum())
    return float((steps.values * lengths).sum()) / busy if busy > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class JobPeriodicity:
    """The periodicity of a job and of its parts, those that move most first."""

    whole: Periodicity
    parts: tuple[PartPeriodicity, ...] = ()
    asynchronous: tuple[RequiredBandwidth, ...] = ()  # of formats that record waits

    def to_dict(self, by: str | None) -> dict[str, Any]:
        """Return what `ioprism period --json` prints, with the parts if they were asked for."""
        whole = {
            **self.whole.to_dict(),
            "asynchronous": [one.to_dict() for one in self.asynchronous],
        }
        parts = {"by": by, "parts": [part.to_dict() for part in self.parts]}
        return whole if by is None else {**whole, **parts}


def job_periodicity(trace: Trace, engine: Engine, settings: PeriodSettings) -> JobPeriodicity:
    """Find all periods of a job.

    Raises:
        NotEnoughDetailError: the trace has no bandwidth over time.
        SignalTooShortError: there is too little of it.
    """
    job = _JobPeriods(trace, engine, settings)
    waits = tuple(_asynchronous(trace))
    whole, parts = job.whole(), [] if settings.by is None else job.parts(settings.by)
    named = [
        NamedPeriod(part.periodicity.period, settings.direction, part.name)
        for part in parts
        if part.periodicity.period is not None
    ]
    return JobPeriodicity(replace(whole, periods=(*whole.periods, *named)), tuple(parts), waits)


def other_directions(
    trace: Trace, engine: Engine, settings: PeriodSettings, *, answered: str
) -> list[Periodicity]:
    """The periodicity of the directions that an answer is not about; for a page that shows all."""
    if settings.metric is not None:
        return []
    job = _JobPeriods(trace, engine, replace(settings, direction="both"))
    return [one for one in job.every_direction() if one.direction != answered]


def _asynchronous(trace: Trace) -> Iterator[RequiredBandwidth]:
    """Required and measured bandwidth of asynchronous I/O, which only TMIO records."""
    if trace.format == "tmio" and len(trace.paths) == 1 and trace.paths[0].is_file():
        for direction, one in read_asynchronous(trace.paths[0]).items():
            late = np.maximum(one.end - one.wait, 0.0)
            yield RequiredBandwidth(
                direction=direction,
                requests=len(one.start),
                bytes=float(one.bytes.sum()),
                required=steps_of_intervals(one.start, one.wait, one.bytes),
                measured=steps_of_intervals(one.start, one.end, one.bytes),
                waited=float(late.sum()),
                hidden=float(np.mean(late <= 0.0)),
            )


@dataclass(frozen=True, slots=True)
class _JobPeriods:
    """What all steps of one analysis share."""

    trace: Trace
    engine: Engine
    settings: PeriodSettings

    def whole(self) -> Periodicity:
        """The periodicity of all I/O, or of the direction that explains most."""
        if self.settings.metric is not None:
            signal = self._sample(metric(self.trace, self.settings.metric))
            return self._describe(signal, detect(signal, options=self._options))
        answer = answer_of_directions(self._signals(), self._options, confirm=self._confirm)
        whole = self._describe(answer.signal, answer.period, direction=answer.direction)
        periods = (*whole.periods, *answer.others)
        if answer.takes_turns and (period := main_period(answer)) is not None:
            whole = with_period(whole, period)
        return replace(whole, periods=periods, takes_turns=answer.takes_turns)

    def every_direction(self) -> list[Periodicity]:
        """The periodicity of reads, of writes and of both together; none where there is one."""
        signals = self._signals()
        if set(signals) != {"both", *DIRECTIONS}:
            return []
        answers = [
            answer_of_directions({name: signal}, self._options, confirm=self._confirm)
            for name, signal in signals.items()
        ]
        return [self._describe(one.signal, one.period, direction=one.direction) for one in answers]

    def parts(self, key: str) -> list[PartPeriodicity]:
        """The periodicity of each part, without those that are too short for a period."""
        direction, layer = self.settings.direction, self.settings.layer
        every = bandwidth_by(self.trace, self.engine, key=key, direction=direction, layer=layer)
        files = self.trace.files.select("file", "path") if key == "file" else None
        paths = {} if files is None else dict(files.iter_rows())
        parts = []
        for name, steps in every.items():
            try:
                signal = self._sample(steps)
                periodicity = self._describe(signal, detect(signal, options=self._options))
            except SignalTooShortError:
                continue
            moved = float((steps.values * np.diff(steps.edges)).sum())
            parts.append(PartPeriodicity(str(paths.get(name, name)), moved, periodicity))
        return sorted(parts, key=lambda part: -part.bytes)

    def _signals(self) -> dict[str, Signal]:
        direction, layer = self.settings.direction, self.settings.layer
        if direction != "both":
            steps = bandwidth(self.trace, self.engine, direction=direction, layer=layer)
            return {direction: self._sample(steps)}
        every = bandwidth_by_direction(self.trace, self.engine, layer=layer)
        signals = {"both": self._sample(every["both"])}
        for name in DIRECTIONS:
            with suppress(SignalTooShortError):
                if name in every:
                    signals[name] = self._sample(every[name])
        return signals

    def _sample(self, steps: StepFunction) -> Signal:
        asked = self.settings
        signal = sample(steps, frequency=asked.frequency, start=asked.start, end=asked.end)
        return signal if asked.chosen_filter is None else apply_filter(signal, asked.chosen_filter)

    @property
    def _options(self) -> Options:
        return replace(self.settings.options, resample=self.settings.frequency is None)

    def _describe(
        self, signal: Signal, period: Period | None, *, direction: str | None = None
    ) -> Periodicity:
        return describe_periodicity(
            signal,
            period,
            options=self._options,
            components=self.settings.components,
            fit=self.settings.fit,
            direction=direction or self.settings.direction,
        )

    def _confirm(self, signal: Signal, period: Period) -> Period | None:
        """Drop a period of few phases within a longer job unless `ioprism phases` shows them."""
        if not needs_confirmation(signal, period):
            return period
        from ioprism.phase_detection.find import phases

        try:
            layers = phases(self.trace, self.engine).layers.values()
        except AnalysisError:  # the trace is a signal, which was asked for its phases already
            return period
        starts = [np.array([phase.start for phase in layer.phases]) for layer in layers]
        most = max((count_common_starts(period, one) for one in starts), default=0)
        period = replace(period, confirmed=most)
        return period if is_confirmed(period) else None


class JobChoices(TypedDict, total=False):
    """The fields of `PeriodSettings`, as keyword arguments."""

    direction: str
    layer: str | None
    metric: str | None
    frequency: float | None
    start: float | None
    end: float | None
    options: Options
    chosen_filter: FrequencyFilter | None
    components: int
    fit: bool
    by: str | None


class ArrayChoices(TypedDict, total=False):
    """What can be chosen for plain arrays."""

    method: str
    frequency: float | None
    max_samples: int
    start: float | None
    end: float | None
    max_false_alarm: float
    outliers: str
    tolerance: float
    wavelet: str
    level: int | None


@overload
def period(
    time: Trace | str | Path,
    values: None = None,
    *,
    engine: Engine | None = None,
    **options: Unpack[JobChoices],
) -> Periodicity: ...


@overload
def period(
    time: npt.ArrayLike,
    values: npt.ArrayLike,
    **options: Unpack[ArrayChoices],
) -> Period | None: ...


def period(
    time: Trace | str | Path | npt.ArrayLike,
    values: npt.ArrayLike | None = None,
    *,
    engine: Engine | None = None,
    **options: Any,
) -> Periodicity | Period | None:
    """Find the period of a job, or of a quantity over time given as plain arrays.

    ``values[i]`` holds from ``time[i]`` to ``time[i + 1]``.

    >>> time = [0, 2, 10, 12, 20, 22, 30, 32, 40, 42, 50, 52, 60, 62, 70, 72]
    >>> round(period(time, [5e8, 0] * 8).seconds, 1)
    10.0

    Args:
        time: what `read` returns, a path, or when each value begins, in ascending seconds.
        values: bandwidth in bytes per second, or any other quantity; not for a trace.
        engine: where to compute a trace; by default on this machine.
        options: of a trace, the fields of ``PeriodSettings`` (direction, by, layer, metric,
            frequency, start, end, options, components, fit); of arrays, method, frequency,
            max_samples, start, end, max_false_alarm, outliers, tolerance, wavelet and level.

    Returns:
        Of a trace all about its periodicity; of arrays the period, or None if nothing is
        periodic at the asked level.
    """
    if isinstance(time, str | Path):
        from ioprism.formats.registry import read_trace

        time = read_trace(Path(time))
    if not isinstance(time, Trace):
        if values is None:
            raise UsageError("period needs values for its times.\nHint: period(time, values).")
        return period_of_arrays(time, values, **options)
    if engine is None:
        from ioprism.engine.base import LocalEngine  # it loads polars

        engine = LocalEngine()
    return job_periodicity(time, engine, PeriodSettings(**options)).whole
