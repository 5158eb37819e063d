"""What the periodicity analyses answer with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from ioprism.model.arrays import Signal
from ioprism.model.result import Result, pick
from ioprism.periodicity.limits import MAX_MAYBE_CONFIDENCE, MIN_BYTES_SHARE, SAME_PERIOD
from ioprism.periodicity.sampling import is_coarse
from ioprism.units import format_seconds

if TYPE_CHECKING:  # a signal is looked at without a table library
    import polars as pl

Certainty = Literal["sure", "maybe"]
Pattern = Literal["periodic", "slotted"]
TOO_COARSE = "; sampled too coarsely: phases are shorter than the samples"
Ranges = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Period:
    """A repetition found in a signal, where it holds, and how easily chance would fake it."""

    seconds: float  # mean distance of two repetitions
    frequency: float  # Hz, 1 / seconds
    confidence: float  # 0 to 1, the method's own measure: see the method's docstring
    false_alarm_probability: float  # how often a signal without a period gives as much evidence
    valid_ranges: Ranges  # seconds, where the period holds
    amplitude: float  # of the cosine at this frequency, in the signal's unit
    phase: float  # radians; the cosine is amplitude * cos(2 pi frequency t + phase)
    spread: float  # seconds, standard deviation of the distance of two repetitions
    method: str
    repetitions: int  # periods seen in the valid ranges
    alike: bool = False  # whether its phases are all as long as each other: a loop, most likely
    chance_of_random_bursts: float = 1.0  # how often bursts at random times are as even
    certainty: Certainty = "sure"  # maybe: only two repetitions, or a loop that jitters strongly
    confirmed: int | None = None  # how many of its phases `ioprism phases` shows; null live
    # slotted: phases begin at multiples of the period, but which multiples is random
    pattern: Pattern = "periodic"
    bytes_share: float | None = None  # of the signal's bytes that its phases move, 0 to 1
    time_share: float | None = None  # of the signal's time in which it holds, 0 to 1
    # Start and end of its phases, in seconds; none where only a spectrum was looked at.
    phases: Ranges = field(default=(), repr=False, compare=False)

    @property
    def seconds_held(self) -> float:
        """How long the period holds, in seconds."""
        return sum(end - start for start, end in self.valid_ranges)

    @property
    def is_minor(self) -> bool:
        """Whether it moves so few bytes that it is a detail of the I/O, not the answer."""
        return self.bytes_share is not None and self.bytes_share < MIN_BYTES_SHARE

    def is_near(self, other: Period, *, tolerance: float) -> bool:
        """Whether another period is equal up to a share of it."""
        return abs(self.seconds / other.seconds - 1.0) <= tolerance

    def as_maybe(self) -> Period:
        """Return the period as a possibility."""
        confidence = min(self.confidence, MAX_MAYBE_CONFIDENCE)
        return replace(self, certainty="maybe", confidence=confidence)

    def to_dict(self) -> dict[str, Any]:
        """Return all but the list of its phases."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "phases"}


def only_periodic(period: Period | None) -> Period | None:
    """Return the period, or None if its phases come at random slots."""
    return None if period is None or period.pattern == "slotted" else period


@dataclass(frozen=True, slots=True)
class FrequencyCandidate:
    """A frequency that stands out of the spectrum."""

    frequency: float  # Hz
    power_share: float  # of the signal's variance, 0 to 1
    score: float  # how far it stands out: standard deviations for the z-score
    confidence: float  # 0 to 1, the paper's


@dataclass(frozen=True, slots=True)
class Component:
    """One cosine wave: ``amplitude * cos(2 pi frequency t + phase)``, t in seconds."""

    frequency: float  # Hz; 0 for the mean
    amplitude: float  # in the signal's unit, not negative
    phase: float  # radians


@dataclass(frozen=True, slots=True)
class WaveFit:
    """Cosine waves fitted to a signal, and what the fitting gained."""

    components: tuple[Component, ...]
    mse_before: float  # of the strongest bins of the spectrum, squared unit of the signal
    mse_after: float  # never above mse_before


@dataclass(frozen=True, slots=True)
class Burst:
    """The typical phase of a periodic signal."""

    width: float  # seconds in which nearly all of it is moved
    duty_cycle: float  # share of the period, 0 to 1
    bytes: float  # integral of the signal over the width


@dataclass(frozen=True, slots=True)
class NextPhase:
    """When the next phase is due, and how much it moves."""

    start: float  # seconds since the job started
    end: float
    bytes: float


@dataclass(frozen=True, slots=True)
class ExpectedPhase(NextPhase):
    """When the next phase is due, how much it moves, and how sure that is."""

    confidence: float  # probability that it begins within a tenth of the period of `start`


@dataclass(frozen=True, slots=True)
class NamedPeriod:
    """One of the periods of a job: in which direction, and of which part."""

    period: Period
    direction: str  # read, write or both
    part: str | None = None  # the file, rank or application that was asked for

    def to_dict(self) -> dict[str, Any]:
        """Return what tells the periods of a job from each other."""
        return {
            **pick(self.period, "seconds"),
            **pick(self, "direction", "part"),
            **pick(
                self.period, "valid_ranges", "false_alarm_probability", "confidence", "certainty",
                "repetitions", "pattern", "bytes_share", "time_share",
            ),
        }  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Periodicity(Result):
    """Everything about the period of one signal."""

    signal: Signal
    period: Period | None
    candidates: tuple[FrequencyCandidate, ...]
    components: tuple[Component, ...]
    fit: WaveFit | None
    burst: Burst | None
    next_phase: NextPhase | None
    periods: tuple[NamedPeriod, ...] = ()  # all of them, the dominant one first
    takes_turns: bool = False  # reads and writes alternate: each repeats half as often
    direction: str = "both"  # read, write or both: what the signal is
    slotted: Period | None = None  # the slots at random multiples of which phases begin

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism period` prints with `--json`, without `by` and its parts."""
        return {
            "signal": {
                "samples": len(self.signal.values),
                **pick(self.signal, "frequency", "start", "end"),
                "direction": self.direction,
            },
            "period": None if self.period is None else self.period.to_dict(),
            "rhythms": [one.to_dict() for one in self.periods],
            "takes_turns": self.takes_turns,
            "slotted": None if self.slotted is None else self.slotted.to_dict(),
            **pick(self, "candidates", "components", "fit", "burst", "next_phase"),
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row per period, the dominant one first."""
        import polars as pl

        columns: dict[str, Any] = {
            "seconds": pl.Float64, "direction": pl.String, "part": pl.String,
            "valid_ranges": pl.List(pl.List(pl.Float64)), "false_alarm_probability": pl.Float64,
            "confidence": pl.Float64, "certainty": pl.String, "repetitions": pl.Int64,
            "pattern": pl.String, "bytes_share": pl.Float64, "time_share": pl.Float64,
        }  # fmt: skip
        return pl.DataFrame([one.to_dict() for one in self.periods], schema=columns)

    def summary(self) -> str:
        """Return the answer in one line, with its confidence."""
        subject = {"both": "I/O"}.get(self.direction, f"{self.direction}s")
        return self._answer(subject) + (TOO_COARSE if is_coarse(self.signal) else "")

    def _answer(self, subject: str) -> str:
        if self.period is None:
            return self._without_answer(subject)
        every, sure = format_seconds(self.period.seconds), f"{self.period.confidence:.0%}"
        if self.takes_turns:
            return f"Reads and writes take turns; each repeats every {every} (confidence {sure})"
        possible = self.period.certainty == "maybe" or self.period.confidence < MAX_MAYBE_CONFIDENCE
        verb = f"{'possibly ' if possible else ''}repeat{'s' if self.direction == 'both' else ''}"
        if possible and self.period.spread > SAME_PERIOD * self.period.seconds:
            every = f"{every} on average, ± {format_seconds(self.period.spread)}"
        return f"The {subject} {verb} every {every} (confidence {sure})"

    def _without_answer(self, subject: str) -> str:
        if self.slotted is not None:
            slot = format_seconds(self.slotted.seconds)
            return (
                f"Not periodic: {subject} phases begin at a few distances in random order "
                f"(slotted, {slot} on average)"
                if self.slotted.method == "phases"
                else f"Not periodic: {subject} phases begin at random multiples of {slot} (slotted)"
            )
        minor = self.periods[0].period if self.periods else None
        if minor is None or minor.bytes_share is None:
            return f"No period: the {subject} may be irregular"
        return (
            f"No period of the {subject}: what repeats every {format_seconds(minor.seconds)} "
            f"moves {minor.bytes_share:.1%} of the bytes"
        )
