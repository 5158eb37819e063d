"""Which candidates are causes: no second is counted twice, and the ledger adds up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ioprism.analyses.diagnosis.result import Cause, Contrast, LedgerLine, Saving
from ioprism.analyses.diagnosis.significance import SIGNIFICANT, WORTH
from ioprism.records import dataclass

if TYPE_CHECKING:  # counters are diagnosed without an array library
    from ioprism.analyses.diagnosis.calls import Floats

LEAST = 1e-12  # seconds: less is rounding
NOTICED = 0.05  # seconds: the same job's run times differ by more
LEAST_PART = 0.02  # of the held-up time
DOUBT = 0.07  # no saving is known better than this: the next run has its own noise


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A possible cause and what it would save."""

    code: str
    culprit: dict[str, Any]
    seconds: Floats | list[float]  # saved in each phase
    low: float  # of the sum
    high: float
    p_value: float
    contrast: Contrast
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def saving(self) -> float:
        """Seconds saved in all phases."""
        return float(sum(self.seconds))


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """The causes, largest saving first, and what is left of each phase."""

    causes: tuple[Cause, ...]
    left: list[float]


def attributed(
    candidates: Iterable[Candidate], held: Floats | list[float], runtime: float
) -> Attribution:
    """Take candidates in the order given; each removes its part of what earlier ones leave.

    A change that takes a part of a phase away takes the same part of what is left of the phase
    when other changes were made before.
    """
    left, whole = [float(seconds) for seconds in held], float(sum(held))
    causes: list[Cause] = []
    for candidate in candidates:
        if candidate.p_value > SIGNIFICANT:
            continue
        taken = [
            rest * min(1.0, max(0.0, float(saved) / of)) if of > LEAST else 0.0
            for rest, saved, of in zip(left, candidate.seconds, held, strict=True)
        ]
        seconds = sum(taken)
        if seconds <= max(WORTH * runtime, NOTICED, LEAST_PART * whole):
            continue
        left = [rest - gone for rest, gone in zip(left, taken, strict=True)]
        causes.append(_cause(candidate, seconds, whole, runtime))
    causes.sort(key=lambda cause: -cause.saving.seconds)
    return Attribution(tuple(causes), left)


def _cause(candidate: Candidate, seconds: float, held: float, runtime: float) -> Cause:
    scale = seconds / max(candidate.saving, 1e-12)
    low = max(0.0, min((1 - DOUBT) * seconds, candidate.low * scale))
    high = min(held, max((1 + DOUBT) * seconds, candidate.high * scale))
    width = (high - low) / max(high, 1e-12)
    return Cause(
        code=candidate.code,
        culprit=candidate.culprit,
        saving=Saving(seconds, low, high, seconds / runtime if runtime > 0 else 0.0),
        confidence=min(1.0, max(0.0, float((1 - candidate.p_value) * (1 - width / 2)))),
        contrast=candidate.contrast,
        facts=candidate.facts,
    )


def ledger(
    causes: Sequence[Cause], left: float, transfer: float, library: float = 0.0,
    first_reads: float = 0.0, programs: float = 0.0,
) -> tuple[LedgerLine, ...]:  # fmt: skip
    """Lines that add up to the held-up time: causes, transfer at a sound rate, the rest.

    `library` are the seconds inside MPI-IO and libraries in which nothing reaches storage,
    `first_reads` those in which data is read for the first time, slower than again, `programs`
    those in which programs and their libraries are loaded.
    """
    loading = min(left, programs)
    left -= loading
    sound = min(left, transfer)
    inside = min(left - sound, library)
    first = min(left - sound - inside, first_reads)
    unexplained = left - sound - inside - first
    rest = {
        "library": inside, "programs": loading, "first-reads": first, "unexplained": unexplained
    }  # fmt: skip
    lines = [LedgerLine(cause.code, cause.saving.seconds) for cause in causes]
    lines.append(LedgerLine("transfer", sound))
    lines.extend(LedgerLine(what, seconds) for what, seconds in rest.items() if seconds > 0)
    return tuple(lines)
