"""How each rank accesses each file, and the longest of its calls, from per-call data.

A piece of the events is summed by itself; where one piece ends and the next begins is only
known when all are there, so pieces are kept apart until they are finalized. The answer is the
same for every partitioning in which each piece has a stretch of the calls of a rank and file
in the order of their start, as readers cut traces. Where the calls of two pieces alternate in
time, as in a table that is not sorted, their order counts as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import polars as pl

from ioprism.engine.base import KeptView
from ioprism.model.schema import Layer, Operation

KEYS = ("layer", "file", "rank", "operation")
_FILE_KEYS = ("layer", "file", "rank")
_READ = (*KEYS, "start", "end", "offset", "bytes", "collective", "nonblocking")
SUMS = (
    "operations", "bytes", "seconds", "small", "misaligned", "forward", "consecutive", "first",
    "unplaced", "unordered", "collective", "nonblocking", "uncollected",
)  # fmt: skip
_WHOLE = pl.Schema(
    {
        "layer": Layer,
        "file": pl.UInt32(),
        "rank": pl.Int32(),
        "operation": Operation,
        **dict.fromkeys(SUMS, pl.Int64()),
        "seconds": pl.Float64(),
        "begin": pl.Float64(),
        "finish": pl.Float64(),
        "extent": pl.Int64(),
    }
)

LONG_READ = 2**20  # bytes

_IS_DATA = pl.col("operation").is_in(["read", "write"])
_IS_OPEN = pl.col("operation") == "open"
_REACHED = pl.col("offset") + pl.col("bytes")


@dataclass(frozen=True, slots=True)
class AccessPattern(KeptView):
    """Sums per layer, file, rank and operation, and where each piece begins and ends."""

    small_bytes: float
    alignment: int  # bytes, where the layout of the file is not known
    stripes: Mapping[int, int] = field(default_factory=dict)  # bytes, by file

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Summarise some of the events, in the order of their start for each rank and file."""
        sorted_calls = events.select(_READ).map_batches(_in_order, projection_pushdown=False)
        ordered = sorted_calls.with_columns(
            # A file that is opened again is read from a new position.
            episode=_IS_OPEN.cum_sum().over(_FILE_KEYS)
        )
        previous = _REACHED.shift(1).over(*KEYS, "episode")
        known = ordered.with_columns(
            previous=pl.when(_IS_DATA).then(previous),
            misaligned=_IS_DATA & misalignment(self.alignment, self.stripes),
        )
        sums = known.group_by(KEYS).agg(*self._sums(), *_borders())
        # Opens come first, so that counting them up to a row includes those of its piece.
        return sums.with_columns(
            opens=pl.col("operations").filter(_IS_OPEN).sum().over(_FILE_KEYS),
            piece_begin=pl.col("begin").min().over(_FILE_KEYS),
        ).sort(_IS_OPEN, descending=True, maintain_order=True)

    def _sums(self) -> list[pl.Expr]:
        offset, previous = pl.col("offset"), pl.col("previous")
        counted = {
            "small": _IS_DATA & (pl.col("bytes") < self.small_bytes),
            "misaligned": pl.col("misaligned"),
            "forward": offset >= previous,
            "consecutive": offset == previous,
            "first": _IS_DATA & previous.is_null() & offset.is_not_null(),
            "unplaced": _IS_DATA & offset.is_null(),
            "collective": pl.col("collective"),
            "nonblocking": pl.col("nonblocking"),
            "uncollected": pl.col("collective").is_null(),
        }
        return [
            pl.len().cast(pl.Int64).alias("operations"),
            pl.col("bytes").sum(),
            (pl.col("end") - pl.col("start")).sum().alias("seconds"),
            *(
                test.fill_null(value=False).sum().cast(pl.Int64).alias(n)
                for n, test in counted.items()
            ),
        ]

    def finalize(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Join the pieces: one row per layer, file, rank and operation."""
        return partials.map_batches(_stitch, schema=_WHOLE)


def _in_order(calls: pl.DataFrame) -> pl.DataFrame:
    """Sort calls, unless each kind of them is in order and no opens fall between."""
    late = pl.col("start") < pl.col("start").shift(1).over(KEYS)
    if not calls.select(_IS_OPEN.any()).item() and not calls.select(late.any()).item():
        return calls
    return calls.sort(*_FILE_KEYS, "start", maintain_order=True)


def misalignment(alignment: int, stripes: Mapping[int, int]) -> pl.Expr:
    """Whether a request begins off the alignment; in striped files, whether it crosses stripes.

    A request inside one stripe touches one lock and one target, wherever it begins. A long read
    takes one block more of many, which costs nothing.
    """
    offset = pl.col("offset")
    long_read = (pl.col("operation") == "read") & (pl.col("bytes") >= LONG_READ)
    off = (offset % alignment != 0) & ~long_read
    if not stripes:
        return off
    size = pl.col("file").replace_strict(dict(stripes), default=None, return_dtype=pl.Int64)
    crosses = (offset % size != 0) & (offset // size != (_REACHED - 1) // size)
    return pl.when(size.is_not_null()).then(crosses).otherwise(off)


def _borders() -> list[pl.Expr]:
    """The first and the last access of a piece, and after how many of its opens the last is."""
    before_opens = _IS_DATA & (pl.col("episode") == 0)
    return [
        pl.col("start").min().alias("begin"),
        pl.col("start").max().alias("last_begin"),
        pl.col("end").max().alias("finish"),
        _REACHED.max().alias("extent"),
        pl.col("offset").filter(before_opens).first().alias("first_offset"),
        _REACHED.last().alias("last_reached"),
        pl.col("episode").last().cast(pl.Int64).alias("last_episode"),
    ]


def _stitch(pieces: pl.DataFrame) -> pl.DataFrame:
    joins = pl.col("first_offset").is_not_null()
    offset, before = pl.col("first_offset"), pl.col("before")
    whole = _with_previous(pieces).with_columns(
        forward=pl.col("forward") + (joins & (offset >= before)).fill_null(value=False),
        consecutive=pl.col("consecutive") + (joins & (offset == before)).fill_null(value=False),
        # The piece took its first request for one that nothing precedes.
        first=pl.col("first") - (joins & before.is_not_null()),
    )
    mixed = (pl.col("begin") < pl.col("last_begin").shift(1).over(KEYS)).any().over(KEYS)
    unknown = mixed.fill_null(value=False) & _IS_DATA
    whole = whole.with_columns(unordered=pl.when(unknown).then(pl.col("operations")).otherwise(0))
    sums = whole.group_by(KEYS, maintain_order=True).agg(
        *(pl.col(name).sum() for name in SUMS),
        pl.col("begin").min(),
        pl.col("finish").max(),
        pl.col("extent").max(),
    )
    return sums.sort(KEYS)


def _with_previous(pieces: pl.DataFrame) -> pl.DataFrame:
    """Add where the previous piece ended, unless the file was opened since.

    Opens are counted, not looked for between two times: a coarse clock gives an open and the
    calls around it the same one. Pieces of one time are in the order of the trace.
    """
    ordered = pieces.sort(*_FILE_KEYS, "piece_begin", maintain_order=True)
    opens = pl.when(_IS_OPEN).then(pl.col("operations")).otherwise(0)
    counted = ordered.with_columns(opens_before=opens.cum_sum().over(_FILE_KEYS) - pl.col("opens"))
    episode = pl.col("opens_before") + pl.col("last_episode")
    same = episode.shift(1).over(KEYS) == pl.col("opens_before")
    return counted.with_columns(
        before=pl.when(same).then(pl.col("last_reached").shift(1).over(KEYS))
    )


@dataclass(frozen=True, slots=True)
class TouchedRanges:
    """Which bytes of each file were touched at all, per layer and direction."""

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Unite the ranges of some of the events."""
        data = events.filter(_IS_DATA & (pl.col("bytes") > 0) & pl.col("offset").is_not_null())
        return _unite_ranges(data.select("layer", "file", "operation", low="offset", high=_REACHED))

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Unite united ranges."""
        return _unite_ranges(partials)


def _unite_ranges(ranges: pl.LazyFrame) -> pl.LazyFrame:
    group = ("layer", "file", "operation")
    reached = pl.col("high").cum_max().shift(1).over(group)
    return (
        ranges.sort(*group, "low", maintain_order=True)
        .with_columns(number=(pl.col("low") > reached).fill_null(value=True).cum_sum())
        .group_by(*group, "number", maintain_order=True)
        .agg(pl.col("low").min(), pl.col("high").max())
        .drop("number")
    )


COLUMNS = ("start", "end", "process", "file", "layer", "operation", "function", "offset", "bytes")


class AskedCalls(Protocol):
    """Which calls are asked for."""

    def of(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Leave the others out."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class CallsOfCells:
    """Calls that begin or end in one of some cells of the main view."""

    cells: pl.DataFrame  # process, file, time
    bucket: float  # seconds
    origin: float = 0.0

    def of(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Leave the others out."""
        inside = pl.any_horizontal(self._inside(name) for name in ("start", "end"))
        timed = self.cells["time"].null_count() < self.cells.height
        wanted = self.cells.select("process", "file").unique().lazy()
        calls = events.join(wanted, on=["process", "file"], how="semi", nulls_equal=True)
        return calls.filter(inside) if timed else calls

    def _inside(self, name: str) -> pl.Expr:
        """Whether the call's process used its file in the bucket of this moment."""
        bucket = ((pl.col(name) - self.origin) / self.bucket).floor().cast(pl.Int64)
        keys = self.cells.select("process", "file", "time").unique()
        known = keys.select(pl.struct(keys.columns)).to_series()
        return pl.struct(
            pl.col("process"), pl.col("file"), bucket.alias("time")
        ).is_in(known.implode(), nulls_equal=True)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class CallsWhere:
    """Calls for which something holds."""

    condition: pl.Expr

    def of(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Leave the others out."""
        return events.filter(self.condition)


@dataclass(frozen=True, slots=True, eq=False)
class LongestCalls:
    """The longest of the calls, longest first."""

    calls: AskedCalls
    most: int = 20

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Take the longest of some events."""
        return self.combine(self.calls.of(events).select(COLUMNS))

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Keep the longest of all; calls of equal length in the order of their start."""
        length = (pl.col("end") - pl.col("start")).round(9)
        order = [length, pl.col("start"), pl.col("process"), pl.col("file")]
        return partials.sort(order, descending=[True, False, False, False]).head(self.most)


# Whether a request begins before the end of the one before it, of the same rank and file.
BACKWARD = pl.col("backward")
# Whether an earlier request of any rank began at the same place.
REPEATED = pl.col("repeated")


@dataclass(frozen=True, slots=True)
class TimeOfCalls:
    """Seconds and bytes by rank: columns `0`, `0 bytes`, `1`, … for each kind."""

    kinds: tuple[pl.Expr, ...]
    with_order: bool = False  # some kind asks for `BACKWARD` or `REPEATED`

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Add up some of the events."""
        known = self._with_order(events) if self.with_order else events
        seconds = pl.col("end") - pl.col("start")
        return known.group_by("rank").agg(
            column
            for number, kind in enumerate(self.kinds)
            for column in (
                seconds.filter(kind).sum().alias(str(number)),
                pl.col("bytes").filter(kind).sum().alias(f"{number} bytes"),
            )
        )

    def _with_order(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Where one piece of the events follows another, one request of each stream is missed."""
        before = _REACHED.shift(1).over(KEYS)
        place = ("layer", "file", "operation", "offset")
        first = pl.col("start").min().over(place)
        return events.sort(*KEYS, "start", maintain_order=True).with_columns(
            backward=(pl.col("offset") < before).fill_null(value=False),
            repeated=((pl.col("start") > first) & pl.col("offset").is_not_null()),
        )

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Add up sums."""
        return partials.group_by("rank").agg(pl.exclude("rank").sum())
