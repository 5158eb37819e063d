"""One thing worth telling the user, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


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
            "interface": self.interface,
            "title": self.title,
            "subject": {"kind": self.subject.kind, "name": self.subject.name},
            "evidence": dict(self.evidence),
            "threshold": dict(self.threshold),
            "details": [dict(row) for row in self.details],
            "recommendations": [
                {"text": one.text, "snippet": one.snippet} for one in self.recommendations
            ],
            "seconds_at_stake": self.seconds_at_stake,
            "aliases": list(self.aliases),
            "cause": self.cause,
        }
