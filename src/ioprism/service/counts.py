"""What came in, what was dropped and why, and how long answers took."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # seconds


@dataclass(slots=True)
class Counts:
    """Running totals; the comments are their help texts in /metrics."""

    messages: int = 0  # messages and lines received
    received_bytes: int = 0  # bytes of messages received
    intervals: int = 0  # requests and samples added to signals
    predictions: int = 0  # predictions made
    announcements: int = 0  # rhythms that began, changed or ended
    malformed: int = 0  # messages dropped: of no known form, or cut off
    oversized: int = 0  # messages dropped: larger than allowed
    duplicates: int = 0  # messages dropped: received before
    unsound: int = 0  # intervals dropped: not finite, ending before they begin, negative
    out_of_range: int = 0  # intervals dropped: implausibly far from the others
    restarted: int = 0  # signals begun anew, as their clock had been
    jobs_created: int = 0  # jobs heard of for the first time
    jobs_expired: int = 0  # jobs forgotten after silence
    jobs_evicted: int = 0  # silent jobs forgotten because there were too many
    refused: int = 0  # records dropped: one job too many, or too long a name
    unsaved: int = 0  # times that the state could not be saved
    files_replaced: int = 0  # followed files replaced, rotated or truncated
    listeners_lagging: int = 0  # events dropped for listeners that read too slowly

    def state(self) -> dict[str, int]:
        """Return everything as plain values."""
        return asdict(self)

    def restore(self, state: Mapping[str, int]) -> None:
        """Go on from saved totals."""
        for known in fields(self):
            setattr(self, known.name, int(state.get(known.name, 0)))

    @property
    def dropped(self) -> int:
        """Messages and intervals that did not count."""
        return (
            self.malformed
            + self.oversized
            + self.duplicates
            + self.unsound
            + self.out_of_range
            + self.refused
        )


@dataclass(slots=True)
class Latency:
    """How long messages waited for a prediction that counts them in."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0  # seconds
    longest: float = 0.0

    def record(self, seconds: float, *, messages: int = 1) -> None:
        """Count messages that waited equally long."""
        self.buckets[bisect_left(BOUNDS, seconds)] += messages
        self.total += seconds * messages
        self.longest = max(self.longest, seconds)

    @property
    def count(self) -> int:
        """How many messages."""
        return sum(self.buckets)
