"""What a site's other jobs say about one job: rates they reached, and its own earlier runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


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
