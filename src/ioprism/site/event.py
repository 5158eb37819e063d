"""Something that happened to a centre, and how certain it must be to be named."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CERTAIN = 0.001  # probability of chance, after correction for how many were asked


@dataclass(frozen=True, slots=True)
class SiteEvent:
    """Something that began, and perhaps ended, at a time."""

    kind: str  # slow-target, slow-node, changed-application, noisy-neighbour, busy-servers
    subject: str
    start: float  # seconds since 1970
    end: float | None
    evidence: dict[str, Any] = field(default_factory=dict)
    probability: float = 0.0  # that chance alone looks like this
    node_hours: float = 0.0  # that jobs lost to it

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "kind": self.kind,
            "subject": self.subject,
            "from": self.start,
            "to": self.end,
            "evidence": self.evidence,
            "probability": self.probability,
            "node_hours": self.node_hours,
        }
