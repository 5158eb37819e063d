"""What the periodicity analyses answer with."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from ioprism.model.signal import Signal
from ioprism.records import dataclass

Certainty = Literal["sure", "maybe"]
Ranges = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Period:
    """A repetition found in a signal, where it holds, and how easily chance would fake it."""

    seconds: float  # mean distance of two repetitions
    frequency: float  # Hz, 1 / seconds
    confidence: float  # 0 to 1, the method's own measure: see the method's docstring
    false_alarm_probability: float  # how often a signal without rhythm gives as much evidence
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
    # Start and end of its phases, in seconds; none where only a spectrum was looked at.
    phases: Ranges = field(default=(), repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Candidate:
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
class Fit:
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
class NamedPeriod:
    """One of the rhythms of a job: in which direction, and of which part of it."""

    period: Period
    direction: str  # read, write or both
    part: str | None = None  # the file, rank or application that was asked for


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Everything about the rhythm of one signal."""

    signal: Signal
    period: Period | None
    candidates: tuple[Candidate, ...]
    components: tuple[Component, ...]
    fit: Fit | None
    burst: Burst | None
    next_phase: NextPhase | None
    rhythms: tuple[NamedPeriod, ...] = ()  # all of them, the dominant one first
    takes_turns: bool = False  # reads and writes alternate: each repeats half as often
