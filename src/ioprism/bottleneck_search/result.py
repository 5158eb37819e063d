"""What to look at, what a bottleneck is, and how severe each record is.

How far a record's share of the I/O time is out of proportion to its share of the work.

The angle of (share of time / share of work), from 0 to 90 degrees: 45 is in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.errors import UsageError
from ioprism.model.result import Result, pick, whole_numbers
from ioprism.views.call_class import check_views
from ioprism.views.main_view import Assignment, MainView

METRICS = ("operations", "bytes", "time")
# Share of the job's I/O time below which a record is trivia.
FLOOR_OF_METHOD = {"excess": 0.02, "slope": 0.001}
VIEWS_OF_METHOD = {
    "excess": ("application", "directory", "file", "process", "time"),
    "slope": ("process", "file", "time"),  # the paper's three
}


class BottleneckChoices(TypedDict, total=False):
    """Fields of `Settings` that are seldom chosen."""

    threshold: float
    percentile: float | None
    floor: float
    bucket: float
    combine: Literal["drill", "cross"]
    across: Literal["max", "sum"]
    layer: str


@dataclass(frozen=True, slots=True)
class Settings:
    """How to look for bottlenecks. Defaults are those of the WisIO paper, and a floor.

    `ioprism bottlenecks` and its function take `excess` unless told otherwise, with five views
    (application, directory, file, process, time) and a floor of 0.02.
    """

    views: tuple[str, ...] = ("process", "file", "time")  # the paper's three
    # slope: the paper's angles, view by view; excess: one list by seconds above peers
    method: Literal["excess", "slope"] = "slope"
    metric: str = "operations"  # the paper's; one of METRICS, or the text behind `work`
    work: pl.Expr | None = None  # of a metric of one's own: what the time is compared with
    threshold: float = 45.0  # degrees: more than its share of time (paper)
    percentile: float | None = None  # 0 to 1: only the worst, instead of the threshold
    floor: float = FLOOR_OF_METHOD["slope"]
    bucket: float = 1.0  # seconds (paper)
    combine: Literal["drill", "cross"] = "drill"  # the paper's is drill
    across: Literal["max", "sum"] = "max"  # time over processes; the paper's is max
    layer: str = "deepest"  # deepest, all, or the name of an interface
    assignment: Assignment = "split"
    origin: float = 0.0  # seconds; where bucket 0 begins
    compatible: bool = False  # classify as WisIO 0.2.2 does

    def __post_init__(self) -> None:
        check_views(self.views)
        if self.metric not in METRICS and self.work is None:
            raise UsageError(
                f"there is no metric {self.metric!r}.\n"
                f"Hint: metrics are {', '.join(METRICS)}, or an expression over record fields."
            )
        _check(0 <= self.threshold <= 90, "the threshold", self.threshold, "0 to 90 degrees")
        share = self.percentile
        _check(share is None or 0 <= share <= 1, "the percentile", share, "0 to 1")
        _check(0 <= self.floor <= 1, "the floor", self.floor, "0 to 1")
        finite = math.isfinite(self.bucket) and self.bucket >= 1e-6
        _check(finite, "the time bucket", self.bucket, "a microsecond or more, in seconds")

    @property
    def main_view(self) -> MainView:
        """The main view that these settings need."""
        after = 0.0 if self.compatible else None
        return MainView(self.bucket, self.assignment, after, self.origin)

    def to_dict(self) -> dict[str, Any]:
        """Return what was chosen, for the report."""
        return {
            **pick(self, "views", "method", "metric", "threshold", "percentile", "floor"),
            "time_bucket": self.bucket,
            **pick(self, "combine", "across", "layer"),
            "compatible": "wisio" if self.compatible else None,
        }

    def like_wisio(self, *, trace_format: str) -> Settings:
        """Return the settings under which WisIO 0.2.2's numbers come out."""
        middle = trace_format == "recorder-parquet"
        return replace(
            self,
            method="slope",
            floor=0.0,
            combine="drill",
            across="max" if "process" in self.views else "sum",
            layer="posix",
            assignment="middle" if middle else "start",
            compatible=True,
        )


def _check(sound: bool, what: str, value: float | None, allowed: str) -> None:
    if not sound:
        raise UsageError(f"{what} cannot be {value}.\nHint: it may be {allowed}.")


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
        views = [view.split("+") for view in self.views]
        return {**pick(self, *self.__dataclass_fields__), "views": views}


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
        plain = {
            "settings": dict(self.settings),
            "totals": dict(self.totals),
            **pick(self, "views"),
            "bottlenecks": [bottleneck.to_dict() for bottleneck in self.bottlenecks],
            **pick(self, "groups", "found", "unexplained", "coverage"),
        }
        return dict(whole_numbers(plain))

    def summary(self) -> str:
        """Return the answer in one line."""
        seen = ", ".join("+".join(view.view) for view in self.views)
        return f"{self.found} bottlenecks, {self.unexplained} unexplained, seen from {seen}"


Floats = npt.NDArray[np.float64]

LABELS = tuple(INITIALS)
Label = pl.Enum(LABELS)
# The paper names the first three; the steps of 15 degrees go on below them.
PAPER = (("critical", 75), ("very high", 60), ("high", 45), ("medium", 30), ("low", 15),
         ("trivial", 0))  # fmt: skip
WISIO_DEGREES = (80, 70, 60, 50, 40, 30, 20)  # from these angles on; the rest is `none`
WISIO_PERCENTILES = (0.9, 0.75, 0.5, 0.25, 0.1, 0.01, 0.001)
# Records in exact proportion differ from 45 degrees by rounding only.
TOLERANCE = 1e-9  # degrees


def rate_records(records: pl.DataFrame, settings: Settings, *, io_time: float) -> pl.DataFrame:
    """Add time, time_share, work_share, severity, label and whether the record is a bottleneck.

    Args:
        records: sums of one view, as `summed_records` gives them; `work` too, if the metric
            is one's own.
        settings: the metric, the threshold, and how times of processes are joined.
        io_time: seconds of I/O of the whole job, joined in the same way.
    """
    shares = _shares(records, settings)
    if settings.compatible:
        return _as_wisio(shares, settings, io_time)
    return _as_paper(shares, settings)


def _shares(records: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    longest = settings.across == "max"
    time = pl.col("slowest_process" if longest else "seconds")
    weighed = time
    work = pl.col("count")
    if settings.work is not None:
        work = pl.col("work")
    elif settings.metric == "bytes":
        # Bandwidth is about the time that data took, not about opens and stats.
        weighed = pl.col("slowest_process_data" if longest else "data_seconds")
        work = pl.col("bytes")
    elif settings.metric == "time":
        work = pl.col("count") * 0 + 1  # an equal share each
    return records.with_columns(
        time=time, time_share=_share(weighed), work_share=_share(work),
        count_share=_share(pl.col("count")), size_share=_share(pl.col("bytes")),
    )  # fmt: skip


def _share(column: pl.Expr) -> pl.Expr:
    whole = column.sum()
    return pl.when(whole > 0).then(column / whole).otherwise(0.0)


def angle(time_share: pl.Expr, work_share: pl.Expr) -> pl.Expr:
    """The severity in degrees; time without any work is 90."""
    return pl.arctan2(time_share, work_share).degrees()


def _as_paper(records: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    severity = pl.col("severity")
    angles = records.with_columns(severity=angle(pl.col("time_share"), pl.col("work_share")))
    if settings.percentile is None:
        critical = severity > settings.threshold + TOLERANCE
    else:
        critical = severity.rank("average") / pl.len() >= settings.percentile
    return angles.with_columns(
        label=severity_label(severity), critical=critical & (pl.col("time") > 0)
    )


def severity_label(severity: pl.Expr) -> pl.Expr:
    """The paper's name for an angle."""
    label = pl.lit("trivial")
    for name, edge in reversed(PAPER):
        label = pl.when(severity > edge + TOLERANCE).then(pl.lit(name)).otherwise(label)
    return label.cast(Label)


def identifiers() -> pl.Expr:
    """What records are called: the initials of their label, and their number."""
    initials = pl.lit(pl.Series(list(INITIALS.values())))
    return pl.concat_str(initials.gather(pl.col("label").to_physical().cast(pl.UInt32)), "number")


def _as_wisio(records: pl.DataFrame, settings: Settings, io_time: float) -> pl.DataFrame:
    """Classify as WisIO 0.2.2: by the inverse slope, with the threshold turned round."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if settings.metric == "time":
            slope = order = records["time"].to_numpy() / io_time
        else:
            slope = records["work_share"].to_numpy() / records["time_share"].to_numpy()
            order = pl.Series(1 / slope).rank("average").to_numpy() / max(1, len(slope))
    if settings.percentile is not None:
        critical = order >= settings.percentile
    elif settings.metric == "time":
        critical = np.ones(len(slope), bool)  # it has no threshold for this metric
    else:
        critical = slope <= np.tan(np.deg2rad(settings.threshold))
    if settings.metric == "time" or settings.percentile is not None:
        steps = np.sum([order < edge for edge in WISIO_PERCENTILES], axis=0)
    else:
        edges = [np.tan(np.deg2rad(90 - degrees)) for degrees in WISIO_DEGREES]
        steps = np.sum([~(slope <= edge) for edge in edges], axis=0)
    return records.with_columns(
        severity=angle(pl.col("time_share"), pl.col("work_share")),
        label=pl.Series(np.array(LABELS)[steps], dtype=pl.String).cast(Label),
        critical=pl.Series(critical),
    )
