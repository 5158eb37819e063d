"""What can be chosen about bottlenecks; every default names its source."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl

from ioprism.errors import UsageError
from ioprism.model.result import pick
from ioprism.views.perspectives.codes import check_views
from ioprism.views.perspectives.main_view import Assignment, MainView

METRICS = ("operations", "bytes", "time")
# The share of the job's I/O time below which a record is not told.
FLOOR_OF_METHOD = {"excess": 0.02, "slope": 0.001}
VIEWS_OF_METHOD = {
    "excess": ("application", "directory", "file", "process", "time"),
    "slope": ("process", "file", "time"),  # the paper's three
}


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
    floor: float = 0.001  # share of the job's I/O time below which a record is trivia
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
