"""The judgement of a job: plain data in base units, which every command and page renders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ioprism.model.result import Result, pick
from ioprism.units import HOUR

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class AchievedRate:
    """Data that a job moved in one way: one operation, class of request sizes, file system."""

    operation: str  # read or write
    size_class: int  # place in `SIZE_BINS` of the mean request
    shared: bool  # whether several ranks use each file
    file_system: str  # mount point
    ranks: int  # that move it
    targets: int | None  # storage targets of its files; None unknown
    requests: int
    bytes: int
    seconds: float  # of the slowest rank, syncs of the files written included
    synced: bool  # whether written data was forced to storage

    @property
    def request_bytes(self) -> float:
        """Bytes of the mean request."""
        return self.bytes / max(1, self.requests)

    @property
    def rate(self) -> float | None:
        """Bytes per second of all ranks together."""
        return self.bytes / self.seconds if self.seconds > 0 else None


@dataclass(frozen=True, slots=True)
class ReachedByOthers:
    """What jobs of similar scale reached on the same file system, beside this run."""

    operation: str
    file_system: str
    jobs: int  # others
    rate: float  # of this run, bytes per second
    median: float  # of the others
    upper: float  # that one tenth of the others exceed; the best one, of fewer than ten


@dataclass(frozen=True, slots=True)
class HistoryDecision:
    """What others' rates decide about one cause."""

    code: str
    decision: str  # cause, bounded, ruled-out
    jobs: int  # others that were compared
    seconds: float  # potential saving that they allow
    text: str


@dataclass(frozen=True, slots=True)
class MetricHistory:
    """One number of this run among those of its earlier runs."""

    name: str
    unit: str  # s, B, B/s, share, count
    value: float
    median: float  # of the earlier runs
    lower_tenth: float
    upper_tenth: float
    above: int  # earlier runs with a smaller number
    unusual: bool  # beyond what earlier runs explain
    earlier: tuple[tuple[float, float], ...]  # start (since 1970) and number, oldest first


@dataclass(frozen=True, slots=True)
class History:
    """This run against a site's history."""

    program: str | None
    runs: int  # earlier runs of the program at similar scale
    since: float | None  # start of the first of them, since 1970
    lines: tuple[str, ...] = ()  # what is worth reading, as sentences
    metrics: tuple[MetricHistory, ...] = ()
    reached: tuple[ReachedByOthers, ...] = ()
    decisions: tuple[HistoryDecision, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


COUNTS = ("requests", "reads", "syncs", "calls", "copies")  # facts that a longer run has more of
# What JSON holds of them.
CAUSE_KEYS = ("code", "title", "culprit", "saving", "core_hours", "confidence", "contrast",
              "symptoms", "advice")  # fmt: skip
POSSIBLE_KEYS = ("code", "title", "culprit", "upper", "decide")


@dataclass(frozen=True, slots=True)
class Saving:
    """Seconds by which the run would be shorter, and the 90 % interval."""

    seconds: float
    low: float
    high: float
    share: float  # of the run time

    def scale(self, factor: float) -> Saving:
        """Return the saving in a run that is this many times as long; the share stays."""
        return Saving(self.seconds * factor, self.low * factor, self.high * factor, self.share)


@dataclass(frozen=True, slots=True)
class CallGroup:
    """Calls that are compared with others; None where the log does not show it."""

    count: int
    bytes: int | None = None
    median_seconds: float | None = None
    rate: float | None = None  # bytes per second

    def scale(self, factor: float) -> CallGroup:
        """Return the group that these calls are a sample of."""
        moved = None if self.bytes is None else round(self.bytes * factor)
        return replace(self, count=round(self.count * factor), bytes=moved)


@dataclass(frozen=True, slots=True)
class Contrast:
    """The affected calls beside peers that do the same work."""

    what: str  # the property in which they differ
    slow: CallGroup
    peers: CallGroup | None = None

    def scale(self, factor: float) -> Contrast:
        """Return the contrast of the calls that these are a sample of."""
        peers = self.peers and self.peers.scale(factor)
        return replace(self, slow=self.slow.scale(factor), peers=peers)


@dataclass(frozen=True, slots=True)
class Cause:
    """A change that would make the run shorter, and how sure that is."""

    code: str
    culprit: Mapping[str, Any]
    saving: Saving
    confidence: float  # 0 to 1
    contrast: Contrast
    core_hours: float | None = None  # that the change would save; None without a number of ranks
    facts: Mapping[str, Any] = field(default_factory=dict)  # values that advice is made of
    symptoms: tuple[str, ...] = ()  # codes of the findings on its calls
    title: str = ""
    advice: tuple[Recommendation, ...] = ()

    def scale(self, factor: float) -> Cause:
        """Return the cause in a run that is this many times as long; shares stay."""
        counts = {key: round(self.facts[key] * factor) for key in COUNTS if key in self.facts}
        return replace(
            self,
            saving=self.saving.scale(factor),
            contrast=self.contrast.scale(factor),
            core_hours=None if self.core_hours is None else self.core_hours * factor,
            facts={**self.facts, **counts},
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """The one recording or run that would decide whether something is a cause."""

    text: str
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Possible:
    """Something that may be a cause: the log does not exclude that it costs nothing."""

    code: str
    title: str
    upper: float  # seconds that it may save at most
    decide: Decision
    culprit: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StallTime:
    """Wall time during which the job cannot go on because of I/O."""

    seconds: float
    share: float  # of the run time
    core_hours: float | None
    basis: str  # phases, ranks, alone, counters, heatmap, exposed, nothing


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """Part of the stall time."""

    # A cause's code, `transfer`, `library`, `programs`, `first-reads`, `untraced`, `unexplained`.
    what: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Opportunity:
    """Healthy I/O that could overlap with computation; an upper bound."""

    code: str
    seconds: float


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A cause or finding that the log cannot show, and what to record for it."""

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
class Verdict(Result):
    """One judgement per job: stall time, causes, what may be one, and findings."""

    status: str  # cause, possible, none, cannot-judge
    runtime: float
    io_stall: StallTime
    line: str = ""  # the verdict in one sentence
    causes: tuple[Cause, ...] = ()
    possible: tuple[Possible, ...] = ()
    ledger: tuple[LedgerLine, ...] = ()
    opportunities: tuple[Opportunity, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    stages: tuple[Stage, ...] = ()  # of a training run, where the application records them
    findings: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()  # data that the log lacks
    history: History | None = None  # what a site's other jobs say; None where none was given

    @property
    def first(self) -> str | None:
        """The code of the main cause."""
        real = (cause.code for cause in self.causes if cause.saving.seconds > 0)
        return next(real, None)

    @property
    def share(self) -> float:
        """What all causes together cost, as a share of the run time."""
        return sum(cause.saving.share for cause in self.causes)

    def scale(self, factor: float) -> Verdict:
        """Return the verdict on a run that is this many times as long; shares stay."""
        stall, hours = self.io_stall, self.io_stall.core_hours
        return replace(
            self,
            runtime=self.runtime * factor,
            io_stall=replace(
                stall,
                seconds=stall.seconds * factor,
                core_hours=None if hours is None else hours * factor,
            ),
            causes=tuple(cause.scale(factor) for cause in self.causes),
            possible=tuple(replace(one, upper=one.upper * factor) for one in self.possible),
            ledger=tuple(LedgerLine(line.what, line.seconds * factor) for line in self.ledger),
            opportunities=tuple(
                Opportunity(one.code, one.seconds * factor) for one in self.opportunities
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism diagnose --json` holds."""
        return {
            "verdict": {"status": self.status, "line": self.line, "first": self.first},
            **pick(self, "io_stall", "runtime"),
            "causes": [pick(cause, *CAUSE_KEYS) for cause in self.causes],
            "possible": [pick(one, *POSSIBLE_KEYS) for one in self.possible],
            **pick(self, "ledger", "opportunities", "not_checked"),
            **(pick(self, "stages") if self.stages else {}),
            **({} if self.history is None else {"history": self.history.to_dict()}),
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
        """Return the verdict in one line."""
        return self.line


def core_hours(seconds: float, ranks: int | None) -> float | None:
    """Core-hours that all ranks spend in these seconds."""
    return None if not ranks else seconds * ranks / HOUR


class Severity(StrEnum):
    """How much a finding matters, worst first."""

    HIGH = "high"
    WARN = "warn"
    INFO = "info"
    OK = "ok"


SERIOUS = (Severity.HIGH, Severity.WARN)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a finding is about: a file, a rank, a phase, a view record, or the whole job."""

    kind: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Something to do about a finding."""

    text: str
    snippet: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth telling the user. Wording and colour belong to reports/."""

    code: str  # stable, never reused
    severity: Severity
    subject: Subject
    evidence: Mapping[str, float] = field(default_factory=dict)  # what triggered it, base units
    threshold: Mapping[str, float] = field(default_factory=dict)  # what it was compared with
    seconds_at_stake: float | None = None  # measured I/O time it concerns; ranks the findings
    interface: str | None = None  # the layer it is about
    aliases: tuple[str, ...] = ()  # what other tools call it
    title: str = ""  # one sentence, from the texts beside the rules
    details: tuple[Mapping[str, object], ...] = ()  # the worst files, ranks or phases
    recommendations: tuple[Recommendation, ...] = ()
    cause: str | None = None  # code of the cause that explains it, where a diagnosis names one

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "code": self.code,
            "level": self.severity.value,
            **pick(
                self, "interface", "title", "subject", "evidence", "threshold", "details",
                "recommendations", "seconds_at_stake", "aliases", "cause",
            ),
        }  # fmt: skip
