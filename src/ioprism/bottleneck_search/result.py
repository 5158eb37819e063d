"""What was found: views, bottlenecks, and what explains them, as frozen objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from ioprism.model.result import Result, whole_numbers

Name = str | int | float | None
INITIALS = {"critical": "CR", "very high": "VH", "high": "HI", "medium": "MD", "low": "LO",
            "very low": "VL", "trivial": "TR", "none": "NA"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reason:
    """A rule that explains a bottleneck."""

    rule: str
    message: str
    evidence: Mapping[str, float]  # in base units


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A record whose share of the I/O time is out of proportion to its share of the work."""

    id: str
    view: tuple[str, ...]
    record: Mapping[str, Name]
    severity: float  # degrees
    label: str
    time: float  # seconds at stake, joined over processes as the settings say
    time_share: float  # of the view
    job_share: float  # of the job's I/O time
    operations: float
    operations_share: float
    bytes: int
    bytes_share: float
    function: str | None  # the call that takes most of the time
    excess_seconds: float  # of the run, above what peers cost
    views: tuple[str, ...]  # the perspectives in which it stands out
    fields: Mapping[str, float]  # everything that rules may speak of
    peers: Mapping[str, Any] = field(default_factory=dict)  # what it is compared with
    # records that it stands for, itself included: name, seconds, excess_seconds
    members: tuple[Mapping[str, Any], ...] = ()
    title: str = ""  # one sentence: who, where, when, and how it compares
    reasons: tuple[Reason, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON holds."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        plain["view"] = list(self.view)
        plain["record"] = dict(self.record)
        plain["views"] = [view.split("+") for view in self.views]
        plain["peers"] = dict(self.peers)
        plain["members"] = [dict(member) for member in self.members]
        plain["fields"] = dict(self.fields)
        plain["reasons"] = [asdict(reason) for reason in self.reasons]
        return plain


@dataclass(frozen=True, slots=True)
class AlikeGroup:
    """Bottlenecks of one view that one of them can stand for."""

    view: tuple[str, ...]
    label: str
    ids: tuple[str, ...]  # costliest first
    rules: tuple[str, ...]  # that hold for all of them


@dataclass(frozen=True, slots=True)
class ViewSummary:
    """How many records a view has and how many are bottlenecks."""

    view: tuple[str, ...]  # its perspectives, from the outermost
    records: int
    bottlenecks: int  # beyond the threshold
    below_floor: int  # of them, how many cost too little to be listed
    labels: Mapping[str, int]  # of the bottlenecks, those below the floor included
    explained: int = 0  # bottlenecks that a rule explains


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Bottlenecks(Result):
    """Bottlenecks from every combination of views, worst first."""

    totals: Mapping[str, float | None]
    views: tuple[ViewSummary, ...]
    bottlenecks: tuple[Bottleneck, ...]  # sorted by severity, then time; `top` of each view
    found: int  # bottlenecks above the floor, told or not
    unexplained: int  # of them, how many no rule explains
    groups: tuple[AlikeGroup, ...] = ()  # of the paper's views; one list has `members` instead
    settings: Mapping[str, Any] = field(default_factory=dict)
    table: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)

    @property
    def coverage(self) -> float | None:
        """The share of bottlenecks that a rule explains."""
        return 1 - self.unexplained / self.found if self.found else None

    def worst_label_at_least(self, label: str) -> bool:
        """Whether a bottleneck that is told about has this label or a worse one."""
        order = list(INITIALS)
        present = self.table["label"].cast(pl.String).unique().to_list() if self.found else []
        return any(order.index(label_of_one) <= order.index(label) for label_of_one in present)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per bottleneck above the floor, with every field."""
        return self.table

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON holds."""
        plain: dict[str, Any] = whole_numbers(self._plain())
        return plain

    def _plain(self) -> dict[str, Any]:
        return {
            "settings": dict(self.settings),
            "totals": dict(self.totals),
            "views": [
                {**asdict(view), "view": list(view.view), "labels": dict(view.labels)}
                for view in self.views
            ],
            "bottlenecks": [bottleneck.to_dict() for bottleneck in self.bottlenecks],
            "groups": [asdict(group) for group in self.groups],
            "found": self.found,
            "unexplained": self.unexplained,
            "coverage": self.coverage,
        }

    def summary(self) -> str:
        """Return the answer in one line."""
        seen = ", ".join("+".join(view.view) for view in self.views)
        return f"{self.found} bottlenecks, {self.unexplained} unexplained, seen from {seen}"
