"""How each rank accesses each file, from per-call data: sizes, order, alignment.

A piece of the events is summed by itself; where one piece ends and the next begins is only
known when all are there, so pieces are kept apart until they are finalized. The answer is the
same for every partitioning in which each piece has a stretch of the calls of a rank and file
in the order of their start, as readers cut traces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from ioprism.model.schema import Layer, Operation

KEYS = ("layer", "file", "rank", "operation")
_FILE_KEYS = ("layer", "file", "rank")
_READ = (*KEYS, "start", "end", "offset", "bytes", "collective", "nonblocking")
SUMS = (
    "operations", "bytes", "seconds", "small", "misaligned", "forward", "consecutive", "first",
    "unplaced", "collective", "nonblocking", "uncollected",
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
class AccessPattern:
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

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Keep the pieces side by side: their order is known only when all are there."""
        return partials

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
