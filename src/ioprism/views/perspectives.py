"""Who did what to which file when: the main view, from which every perspective is derived.

One row per process, file, time bucket, class of call and function. It is small, made in one
pass, and everything later is sums and maxima over its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.errors import TooManyPiecesError
from ioprism.model.schema import EVENTS
from ioprism.views.access_order import random_requests
from ioprism.views.call_class import call_class

Assignment = Literal["split", "start", "middle"]

VERSION = 1  # changes with the meaning of the columns, so that stored stages are not mistaken
KEYS = ("process", "file", "time", "class", "function")
SUMS = ("count", "bytes", "seconds")
MAXIMA = ("slowest", "reach")
# More pieces than this come from times that are wrong or buckets that are far too short.
MOST_PIECES = 20_000_000

_READ = ("start", "end", "process", "file", "layer", "operation", "function", "offset", "bytes")
_PREPARED = pl.Schema(
    {
        "process": pl.UInt32(),
        "file": pl.UInt32(),
        "time": pl.Int64(),
        "class": pl.UInt16(),
        "function": pl.Categorical(),
        "count": pl.Float64(),
        "bytes": pl.Int64(),
        "seconds": pl.Float64(),
        "slowest": pl.Float64(),
        "reach": pl.Int64(),
    }
)


@dataclass(frozen=True, slots=True)
class MainView:
    """Calls, bytes and seconds by process, file, time bucket, class of call and function."""

    bucket: float = 1.0  # seconds
    # split: a call is shared out among the buckets it spans, by duration.
    # start, middle: the whole call counts in one bucket, as WisIO does.
    assignment: Assignment = "split"
    after: float | None = None  # leave out calls that begin at or before this time
    origin: float = 0.0  # where bucket 0 begins, in seconds

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Sum some of the events."""
        wanted = events if self.after is None else events.filter(pl.col("start") > self.after)
        prepared = wanted.select(_READ).map_batches(self._prepared, schema=_PREPARED)
        return self.combine(prepared)

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Add rows of the same key."""
        return partials.group_by(KEYS).agg(pl.col(SUMS).sum(), pl.col(MAXIMA).max())

    def _prepared(self, events: pl.DataFrame) -> pl.DataFrame:
        """Turn calls into rows of the main view, not yet summed."""
        random = random_requests(events, _streams(events))
        timed = events.select(
            "start",
            "end",
            "process",
            "file",
            "function",
            pl.col("bytes").fill_null(0),
            call_class(pl.lit(random)).alias("class"),
            reach=pl.col("offset") + pl.col("bytes"),
            slowest=pl.col("end") - pl.col("start"),
        )
        if self.assignment != "split":
            return self._whole(timed, self._bucket_of(self.assignment))
        return self._split(timed)

    def _bucket_of(self, assignment: Assignment) -> pl.Expr:
        if assignment == "start":
            return self._bucket(pl.col("start")).floor()
        # WisIO numbers midpoints from 0, each bucket with its right edge.
        middle = (pl.col("start") + pl.col("end")) / 2
        return self._bucket(middle).ceil()

    def _bucket(self, moment: pl.Expr) -> pl.Expr:
        return (moment - self.origin) / self.bucket

    def _whole(self, calls: pl.DataFrame, bucket: pl.Expr) -> pl.DataFrame:
        return calls.select(
            *_CARRIED,
            time=bucket.cast(pl.Int64, strict=False),
            count=pl.lit(1.0),
            seconds=pl.col("slowest"),
        ).select(_PREPARED.names())

    def _split(self, calls: pl.DataFrame) -> pl.DataFrame:
        first = calls.select(self._bucket(pl.col("start")).floor()).to_series()
        last = calls.select(self._bucket(pl.col("end")).ceil() - 1).to_series()
        spans = last > first
        bucket = first.cast(pl.Int64, strict=False)  # null where a damaged time says nothing
        whole = self._whole(calls, pl.lit(bucket))
        if not spans.any():
            return whole
        pieces = float((last - first).filter(spans).sum())
        if not pieces <= MOST_PIECES:
            raise TooManyPiecesError(pieces, self.bucket)
        edges = {"first": bucket.filter(spans), "last": last.filter(spans).cast(pl.Int64)}
        across = calls.filter(spans).with_columns(**edges)
        return pl.concat([whole.filter(~spans), self._pieces(across)])

    def _pieces(self, calls: pl.DataFrame) -> pl.DataFrame:
        """Share calls out among the buckets they span, by duration."""
        duration = pl.col("slowest")
        begin = pl.max_horizontal("start", pl.col("time") * self.bucket + self.origin)
        finish = pl.min_horizontal("end", (pl.col("time") + 1) * self.bucket + self.origin)
        is_first, is_last = (pl.col("time") == pl.col(name) for name in ("first", "last"))
        before = pl.when(is_first).then(0.0).otherwise((begin - pl.col("start")) / duration)
        until = pl.when(is_last).then(1.0).otherwise((finish - pl.col("start")) / duration)
        shared = calls.with_columns(
            time=pl.int_ranges("first", pl.col("last") + 1, dtype=pl.Int64)
        ).explode("time")
        return shared.with_columns(before=before, until=until).select(
            *(name for name in _CARRIED if name != "bytes"),
            "time",
            count=pl.col("until") - pl.col("before"),
            seconds=(pl.col("until") - pl.col("before")) * duration,
            bytes=_part(pl.col("until")) - _part(pl.col("before")),
        ).select(_PREPARED.names())  # fmt: skip


_CARRIED = ("process", "file", "class", "function", "bytes", "slowest", "reach")


def _part(share: pl.Expr) -> pl.Expr:
    """Whole bytes moved up to a share of the call; the parts add up to all of them."""
    exact = pl.when(share >= 1).then(pl.col("bytes")).otherwise(pl.col("bytes") * share)
    return exact.cast(pl.Int64)


def _streams(events: pl.DataFrame) -> npt.NDArray[np.uint64]:
    """Number the streams: one per process, file and direction."""
    files = events["file"].max()
    width = (files if isinstance(files, int) else 0) + 2
    file = pl.col("file").cast(pl.UInt64).fill_null(width - 1)
    stream = (pl.col("process").cast(pl.UInt64) * width + file) * 2
    direction = pl.col("operation").to_physical().cast(pl.UInt64).clip(0, 1)
    return events.select(stream + direction).to_series().to_numpy()


def empty_main_view() -> pl.DataFrame:
    """Return the main view of a trace without events."""
    return MainView().partial(EVENTS.empty().lazy()).collect()
