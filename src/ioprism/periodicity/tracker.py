"""What is the period of a job that still runs, and when is its next phase due?

Every batch of requests is added to a `Ring`; an answer costs an analysis only when the signal
has moved on by a part of the period. Looking often gives chance many opportunities, so that
every look at a stretch of time is allowed only a share of the false-alarm level: all looks
together stay within it.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field, replace

from ioprism.model.arrays import FloatArray, Signal
from ioprism.periodicity import limits, looks
from ioprism.periodicity.describe import first_due, predict_next_phase
from ioprism.periodicity.detect import Options
from ioprism.periodicity.of_signal import answer_of_directions, main_period
from ioprism.periodicity.results import ExpectedPhase, Period
from ioprism.periodicity.sampling import MIN_SAMPLES, is_coarse
from ioprism.periodicity.segments import Segmentations, segments
from ioprism.periodicity.spectrum import has_line
from ioprism.periodicity.stream_buffers import Codes, Grain, RequestHistory, Ring

# Seconds of the signal between two analyses; one takes 2 to 6 ms (measured), and more than a few
# answers per second are of no use to a scheduler, however short the period.
MIN_ANALYSIS_STEP = 0.25
ANALYSES_PER_SPAN = 32  # of the window, until a period is known


@dataclass(frozen=True, slots=True)
class TrackerSettings:
    """How to follow a period."""

    max_false_alarm: float = limits.LEVEL  # of announcing a period without one, over all looks
    equal_answers: int = 3  # in a row, after which only the last periods count
    last_periods: int = 16


@dataclass(frozen=True, slots=True)
class PeriodChange:
    """A period began, changed or ended."""

    time: float  # seconds, since when the new one holds
    before: float | None  # seconds, the period until then
    after: float | None


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is known of a running job at one moment since its start."""

    time: float  # seconds, the end of the latest request
    window: tuple[float, float]  # seconds, the stretch that the period was found in
    period: Period | None
    next_phase: ExpectedPhase | None
    probabilities: tuple[looks.FrequencyRange, ...]
    change: PeriodChange | None = None  # announced with this prediction
    direction: str = "both"  # of the requests that the period is of: read, write or both
    phase_distance: float | None = None  # seconds between phases so far, period or not
    final: bool = False  # whether it is the answer for the whole job, after its last request


@dataclass(frozen=True, slots=True)
class Look:
    """One analysis: the signal, its phases, and the period that stands out."""

    signal: Signal
    parts: Segmentations
    period: Period | None


@dataclass(slots=True, eq=False)
class Tracker:
    """Follows the period of one job in bounded memory."""

    settings: TrackerSettings = TrackerSettings()
    ring: Ring = field(default_factory=Ring)
    grain: Grain = field(default_factory=Grain)
    record: looks.PredictionRecord = field(default_factory=looks.PredictionRecord)
    history: RequestHistory = field(default_factory=RequestHistory)
    latest: Prediction | None = None
    _window: float = -math.inf  # where the stretch begins that is looked at
    _period: Period | None = None
    _answers: deque[float | None] = field(default_factory=lambda: deque(maxlen=looks.KEPT_ANSWERS))
    _equal: int = 0  # answers in a row
    _suspected: float | None = None  # when a change may have happened
    _last_beat: float | None = None  # when the latest phase of the period began
    _rival: float | None = None  # seconds, another period that was found once
    _seen: tuple[int, ...] = ()  # what the latest look depended on
    _due: float = -math.inf  # when the next analysis is worth its cost
    _spectrum_due: float = 0.0  # length of the window, in seconds
    _spectrum_looks: int = 0

    def add(
        self, start: FloatArray, end: FloatArray, amount: FloatArray, codes: Codes | None = None
    ) -> None:
        """Add requests in any order: start and end in seconds, bytes, directions if known."""
        if len(start):
            self.grain.observe(start, end)
            self.ring.add(start, end, amount)
            self.history.add(start, end, amount, codes)

    @property
    def due(self) -> bool:
        """Whether the signal has moved on so far that an analysis is worth its cost."""
        return self.ring.end >= self._due and math.isfinite(self.ring.end)

    def predict(self, *, analyse: bool = True) -> Prediction | None:
        """Answer with all that was added so far, or None if there is nothing yet.

        If no analysis may be made now, the last one counts, even if one is due.
        """
        now = self.ring.end
        if analyse and self.due:
            self._analyse(now)
        elif self.latest is None and math.isfinite(now):
            self.latest = Prediction(now, (self.ring.start, now), None, None, ())
        elif self.latest is not None and now > self.latest.time:
            self.latest = self._moved_on(self.latest, now)
        return self.latest

    def conclude(self) -> Prediction | None:
        """Answer for the whole job after its last request, as `ioprism period` would.

        It is one more look at the false-alarm level, so that both together may be wrong twice as
        often. Of a job with very many requests their bins are judged.
        """
        now = self.ring.end
        if not math.isfinite(now):
            return None
        signals = self.history.signals(samples=self.grain.seconds > 0.0)
        signals = signals or {"both": self.ring.signal()}
        if len(signals["both"].values) < MIN_SAMPLES:
            return self.latest
        options = Options(max_false_alarm=self.settings.max_false_alarm)
        answer = answer_of_directions(signals, options)
        period = main_period(answer)
        expected = None
        if period is not None:
            phase = predict_next_phase(answer.signal, period)
            expected = None if phase is None else self.record.expect(phase, period)
        self.latest = Prediction(
            time=now,
            window=(answer.signal.start, now),
            period=period,
            next_phase=expected,
            probabilities=looks.frequency_ranges(self._answers),
            direction=self.history.direction or answer.direction,
            phase_distance=None if self.latest is None else self.latest.phase_distance,
            final=True,
        )
        return self.latest

    def signal(self) -> Signal:
        """The stretch that is looked at."""
        return self._since_moment(self._window)

    def _since_moment(self, moment: float) -> Signal:
        length = self.grain.seconds
        if length == 0.0:
            return self.ring.signal(start=moment)
        return self.ring.samples(start=moment, length=length, edge=self.grain.edge)

    def _analyse(self, now: float) -> None:
        signal = self.signal()
        self._due = now + max((now - signal.start) / ANALYSES_PER_SPAN, MIN_ANALYSIS_STEP)
        if len(signal.values) < MIN_SAMPLES:
            return
        before = self._period
        parts = segments(signal, known=before)
        if before is None:
            look = self._search(signal, parts)
        else:
            look = self._follow(signal, parts, before)
        self._remember(look, before)
        change = self._change(before, look)
        if self._period is not None and self._equal >= self.settings.equal_answers:
            # After enough equal answers only the last periods count.
            recent = now - self.settings.last_periods * self._period.seconds
            self._window = max(self._window, recent)
            # A job with a period needs no more memory the longer it runs: twice what is looked at.
            self.ring.forget_before(2 * self._window - now)
        self._due = now + max(self._step(look, now), MIN_ANALYSIS_STEP)
        self.latest = Prediction(
            time=now,
            window=(look.signal.start, now),
            period=self._period,
            next_phase=self._expect_next(look, now),
            probabilities=looks.frequency_ranges(self._answers),
            change=change,
            phase_distance=looks.usual_distance(parts),
        )

    def _search(self, signal: Signal, parts: Segmentations) -> Look:
        """Look for a period where none is known; chance is held against every look."""
        level, period = self.settings.max_false_alarm, None
        seen = looks.what_is_seen(parts)
        if (
            max(parts.counts) >= limits.MIN_SURE_PHASES
            and seen != self._seen
            and not is_coarse(signal)
        ):
            period = looks.by_phases(signal, parts, level=limits.LIVE_PHASES_WEIGHT * level)
        self._seen = seen
        span = signal.end - signal.start
        if period is None and span >= self._spectrum_due:
            self._spectrum_due = limits.SPECTRUM_GROWTH * span
            if not has_line(signal):
                return Look(signal, parts, None)
            self._spectrum_looks += 1
            share = (1.0 - limits.LIVE_PHASES_WEIGHT) * looks.share_of_look(self._spectrum_looks)
            period = looks.with_spectrum(signal, parts, level=share * level)
        return Look(signal, parts, period)

    def _follow(self, signal: Signal, parts: Segmentations, known: Period) -> Look:
        """Look whether the known period goes on, or another one has taken its place."""
        newer = self._after_change(signal, parts, known)
        if newer is not None:
            return newer
        level = self.settings.max_false_alarm
        period = looks.by_phases(signal, parts, level=level, known=known)
        if period is None or looks.silence(signal, period) > limits.MAX_SILENT_PERIODS:
            period = (
                looks.with_spectrum(signal, parts, level=level)
                if known.method != "phases"
                else None
            ) or period
        if period is None or looks.silence(signal, period) > limits.MAX_LOST_PERIODS:
            # One look that finds nothing may be that of a phase half reported.
            return Look(
                signal,
                parts,
                known if looks.silence(signal, known) <= limits.MAX_LOST_PERIODS else None,
            )
        if looks.relative_difference(period.seconds, known.seconds) <= limits.SAME_PERIOD:
            self._rival = None
            return Look(signal, parts, period)
        confirmed = (
            self._rival is not None
            and looks.relative_difference(period.seconds, self._rival) <= limits.SAME_PERIOD
        )
        self._rival = period.seconds
        return Look(signal, parts, period if confirmed else known)

    def _after_change(self, signal: Signal, parts: Segmentations, known: Period) -> Look | None:
        """The period since the distances of phases changed, if they did and there is one."""
        starts = looks.phase_starts(parts, known)
        if starts is not None and (place := looks.change_point(starts)) is not None:
            self._suspected = float(starts[place])
        elif looks.silence(signal, known) > limits.MAX_SILENT_PERIODS:
            self._suspected = self._suspected or self._last_beat
        if self._suspected is None:
            return None
        recent = self._since_moment(self._suspected)
        if len(recent.values) < MIN_SAMPLES:
            return None
        new_parts = segments(recent)
        period = looks.by_phases(recent, new_parts, level=self.settings.max_false_alarm)
        if period is None or looks.silence(recent, period) > limits.MAX_SILENT_PERIODS:
            return None
        if looks.relative_difference(period.seconds, known.seconds) <= limits.SAME_PERIOD:
            self._suspected = None
            return None
        return Look(recent, new_parts, period)

    def _remember(self, look: Look, before: Period | None) -> None:
        period = look.period
        self._answers.append(None if period is None else period.frequency)
        same = (
            period is not None
            and before is not None
            and looks.relative_difference(period.seconds, before.seconds) <= limits.SAME_PERIOD
        )
        self._equal = self._equal + 1 if same else int(period is not None)
        self._period = period
        if period is not None and period.phases:
            start = period.phases[-1][0]
            self._last_beat = start - look.signal.interval
            self.record.observe(start, now=look.signal.end)

    def _change(self, before: Period | None, look: Look) -> PeriodChange | None:
        """What to announce; a new period also begins a new stretch to look at."""
        period = look.period
        if period is None and before is not None:
            # The last beat may be the first of another period, so it stays in sight.
            last = before.valid_ranges[-1][1]
            self._begin(last if self._last_beat is None else min(last, self._last_beat))
            return PeriodChange(last, before.seconds, None)
        if period is None:
            return None
        if before is None:
            return PeriodChange(period.valid_ranges[-1][0], None, period.seconds)
        if looks.relative_difference(period.seconds, before.seconds) <= limits.SAME_PERIOD:
            return None
        changed = self._suspected is not None
        since = look.signal.start if changed else period.valid_ranges[-1][0]
        self._begin(since)
        return PeriodChange(since, before.seconds, period.seconds)

    def _begin(self, moment: float) -> None:
        """Forget what was before a moment: another period holds from there on."""
        self._window = moment
        self._suspected = self._rival = self._last_beat = None
        self._spectrum_due, self._spectrum_looks = 0.0, 0
        self.record.forget()

    def _step(self, look: Look, now: float) -> float:
        """How far the signal must move on before another analysis is worth its cost."""
        if look.period is not None and look.period.method != "phases":
            return look.period.seconds
        if look.period is not None:
            step = min(
                look.period.seconds / looks.LOOKS_PER_PERIOD, looks.latest_distance(look.parts) / 2
            )
            # Where the next phase may have begun, its first requests were too few to tell.
            due = now - look.period.phases[-1][0] > (1.0 - limits.QUARTER) * look.period.seconds
            return step / looks.LOOKS_PER_PERIOD if due else step
        return max((now - look.signal.start) / ANALYSES_PER_SPAN, look.signal.interval)

    def _expect_next(self, look: Look, now: float) -> ExpectedPhase | None:
        if self._period is None or look.period is None:
            self.record.forget()
            return None
        phase = predict_next_phase(look.signal, look.period, now=now)
        return None if phase is None else self.record.expect(phase, self._period)

    def _moved_on(self, latest: Prediction, now: float) -> Prediction:
        """The same answer for a later moment, with the first phase after it as the next one."""
        phase, period = latest.next_phase, latest.period
        if phase is not None and period is not None:
            late = min(period.spread, limits.QUARTER * period.seconds)
            start = first_due(phase.start, period.seconds, now=now, late=late)
            phase = replace(phase, start=start, end=phase.end + start - phase.start)
        return replace(
            latest,
            time=now,
            window=(latest.window[0], now),
            next_phase=phase,
            change=None,
            final=False,
        )
