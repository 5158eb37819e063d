"""The answer of a diagnosis: plain data, in base units, without wording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field, replace
from typing import TYPE_CHECKING, Any

from ioprism.model.finding import Recommendation
from ioprism.model.result import Result
from ioprism.records import dataclass
from ioprism.units import format_seconds

if TYPE_CHECKING:  # counters are diagnosed without a table library
    import polars as pl

COUNTS = ("requests", "syncs", "calls", "copies")  # facts that a longer run has more of


@dataclass(frozen=True, slots=True)
class Saving:
    """Seconds that the run would be shorter, and the 90 % interval of it."""

    seconds: float
    low: float
    high: float
    share: float  # of the run time


@dataclass(frozen=True, slots=True)
class CallGroup:
    """Calls that are compared with others; None where the trace does not tell."""

    count: int
    bytes: int | None = None
    median_seconds: float | None = None
    rate: float | None = None  # bytes per second

    def scaled(self, factor: float) -> CallGroup:
        """Return the group that these calls are a sample of."""
        moved = None if self.bytes is None else round(self.bytes * factor)
        return replace(self, count=round(self.count * factor), bytes=moved)


@dataclass(frozen=True, slots=True)
class Contrast:
    """The calls concerned beside peers that do the same work."""

    what: str  # the property in which they differ
    slow: CallGroup
    peers: CallGroup | None = None

    def scaled(self, factor: float) -> Contrast:
        """Return the contrast of the calls that these are a sample of."""
        peers = self.peers and self.peers.scaled(factor)
        return replace(self, slow=self.slow.scaled(factor), peers=peers)


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that holds the job up."""

    code: str
    culprit: Mapping[str, Any]
    saving: Saving
    confidence: float  # 0 to 1
    contrast: Contrast
    facts: Mapping[str, Any] = field(default_factory=dict)  # values that advice is made of
    symptoms: tuple[str, ...] = ()  # codes of the findings that it explains
    title: str = ""
    advice: tuple[Recommendation, ...] = ()

    def scaled(self, factor: float) -> Cause:
        """Return the cause in a run that is so many times as long; shares stay."""
        saving = self.saving
        seconds, low, high = (n * factor for n in (saving.seconds, saving.low, saving.high))
        counts = {key: round(self.facts[key] * factor) for key in COUNTS if key in self.facts}
        return replace(
            self,
            saving=Saving(seconds, low, high, saving.share),
            contrast=self.contrast.scaled(factor),
            facts={**self.facts, **counts},
        )


@dataclass(frozen=True, slots=True)
class HeldUp:
    """Seconds of the run that would go away if every I/O call took no time."""

    seconds: float
    share: float  # of the run time
    how: str  # phases, ranks, alone, counters, heatmap, uncovered, nothing


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """Part of the held-up time."""

    # A cause's code, `transfer`, `library`, `programs`, `first-reads`, `untraced` or `unexplained`.
    what: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Opportunity:
    """Time that is well spent but could be hidden; an upper bound."""

    code: str
    seconds: float


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A cause that the trace cannot show, and what to record for it."""

    code: str
    needs: str


@dataclass(frozen=True, slots=True)
class EpochShare:
    """One stage in one epoch."""

    seconds: float
    unoverlapped: float
    share: float  # of the epoch


@dataclass(frozen=True, slots=True)
class Stage:
    """What all functions of one kind took; seconds in which at least one process is in it."""

    name: str
    functions: tuple[str, ...]
    seconds: float
    unoverlapped: float  # of them, outside the process's own computing
    share: float  # of the application
    epochs: tuple[EpochShare, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis(Result):
    """What holds a job up, largest saving first."""

    runtime: float
    held_up: HeldUp
    causes: tuple[Cause, ...] = ()
    ledger: tuple[LedgerLine, ...] = ()
    opportunities: tuple[Opportunity, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    stages: tuple[Stage, ...] = ()  # of a training run, where the application tells them

    @property
    def share(self) -> float:
        """What all causes together cost, as a share of the run time."""
        return sum(cause.saving.share for cause in self.causes)

    def scaled(self, factor: float) -> Diagnosis:
        """Return the diagnosis of a run that is so many times as long; shares stay."""
        return replace(
            self,
            runtime=self.runtime * factor,
            held_up=replace(self.held_up, seconds=self.held_up.seconds * factor),
            causes=tuple(cause.scaled(factor) for cause in self.causes),
            ledger=tuple(LedgerLine(line.what, line.seconds * factor) for line in self.ledger),
            opportunities=tuple(
                Opportunity(chance.code, chance.seconds * factor) for chance in self.opportunities
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON holds."""
        return {
            "held_up": asdict(self.held_up),
            "runtime": self.runtime,
            "causes": [_cause_dict(cause) for cause in self.causes],
            "ledger": [asdict(line) for line in self.ledger],
            "opportunities": [asdict(chance) for chance in self.opportunities],
            "not_checked": [asdict(missing) for missing in self.not_checked],
            **({"stages": [asdict(stage) for stage in self.stages]} if self.stages else {}),
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row per cause."""
        import polars as pl

        numbers = ("saving", "low", "high", "share", "confidence")
        schema = {"code": pl.String, "culprit": pl.String, **dict.fromkeys(numbers, pl.Float64)}
        rows = [
            {
                "code": cause.code,
                "culprit": ", ".join(f"{key} {value}" for key, value in cause.culprit.items()),
                "saving": cause.saving.seconds,
                "low": cause.saving.low,
                "high": cause.saving.high,
                "share": cause.saving.share,
                "confidence": cause.confidence,
            }
            for cause in self.causes
        ]
        return pl.DataFrame(rows, schema=schema)

    def summary(self) -> str:
        """Return the answer in one line."""
        held = f"I/O holds the job up for {format_seconds(self.held_up.seconds)}"
        if not self.causes:
            return f"{held}; no cause is worth removing"
        first = self.causes[0]
        saved = format_seconds(first.saving.seconds)
        return f"{held}; {first.title or first.code}, {saved} of it ({first.code})"


def _cause_dict(cause: Cause) -> dict[str, Any]:
    return {
        "code": cause.code,
        "title": cause.title,
        "culprit": dict(cause.culprit),
        "saving": asdict(cause.saving),
        "confidence": cause.confidence,
        "contrast": asdict(cause.contrast),
        "symptoms": list(cause.symptoms),
        "advice": [{"text": item.text, "snippet": item.snippet} for item in cause.advice],
    }
