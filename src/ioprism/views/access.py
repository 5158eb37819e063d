"""How each rank accesses each file, from single calls: sizes, order, alignment.

A piece of the events is summed by itself; where one piece ends and the next begins is only
known when all are there, so pieces are kept apart until `stitched` joins them. The answer is
the same for every partitioning in which the calls of one rank and file do not overlap in
time between pieces, as readers cut traces.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

KEYS = ("layer", "file", "rank", "operation")
_FILE_KEYS = ("layer", "file", "rank")
SUMS = (
    "operations", "bytes", "seconds", "small", "misaligned", "forward", "consecutive", "first",
    "unplaced", "collective", "nonblocking", "uncollected",
)  # fmt: skip

_IS_DATA = pl.col("operation").is_in(["read", "write"])
_IS_OPEN = pl.col("operation") == "open"
_REACHED = pl.col("offset") + pl.col("bytes")


@dataclass(frozen=True, slots=True)
class AccessPattern:
    """Sums per layer, file, rank and operation, and where each piece begins and ends."""

    small_bytes: float
    alignment: int  # bytes

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Summarise some of the events, sorted by rank, file and start."""
        ordered = events.sort(*_FILE_KEYS, "start", "end", maintain_order=True).with_columns(
            # A file that is opened again is read from a new position.
            episode=_IS_OPEN.cum_sum().over(_FILE_KEYS)
        )
        previous = _REACHED.shift(1).over(*KEYS, "episode")
        known = ordered.with_columns(
            previous=pl.when(_IS_DATA).then(previous),
            misaligned=_IS_DATA & (pl.col("offset") % self.alignment != 0),
        )
        return known.group_by(KEYS).agg(*self._sums(), *_borders())

    def _sums(self) -> list[pl.Expr]:
        offset, previous = pl.col("offset"), pl.col("previous")
        counted = {
            "small": _IS_DATA & (pl.col("bytes") < self.small_bytes),
            "misaligned": pl.col("misaligned"),
            "forward": offset >= previous,
            "consecutive": offset == previous,
            # Nothing precedes it, but not because the piece happens to begin here.
            "first": _IS_DATA & previous.is_null() & offset.is_not_null() & (pl.col("episode") > 0),
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


def _borders() -> list[pl.Expr]:
    """The first and the last access of a piece, and whether opens stand before and behind."""
    in_first = pl.col("episode") == 0
    return [
        pl.col("start").min().alias("begin"),
        pl.col("end").max().alias("finish"),
        _REACHED.max().alias("extent"),
        pl.col("offset").filter(in_first).first().alias("first_offset"),
        _REACHED.last().alias("last_reached"),
        pl.col("episode").last().alias("last_episode"),
    ]


def stitched(pieces: pl.DataFrame) -> pl.DataFrame:
    """Join the pieces: one row per layer, file, rank and operation."""
    opens = pieces.filter(operation="open").select(*_FILE_KEYS, opened="finish")
    ordered = pieces.sort(*KEYS, "begin", "finish", maintain_order=True)
    ordered = _reopened(ordered, opens).with_columns(
        before=pl.when(~pl.col("reopened")).then(pl.col("last_reached").shift(1).over(KEYS))
    )
    joins = pl.col("first_offset").is_not_null()
    offset, before = pl.col("first_offset"), pl.col("before")
    whole = ordered.with_columns(
        forward=pl.col("forward") + (joins & (offset >= before)).fill_null(value=False),
        consecutive=pl.col("consecutive") + (joins & (offset == before)).fill_null(value=False),
        first=pl.col("first") + (joins & before.is_null()),
    )
    return whole.group_by(KEYS, maintain_order=True).agg(
        *(pl.col(name).sum() for name in SUMS),
        pl.col("begin").min(),
        pl.col("finish").max(),
        pl.col("extent").max(),
    )


def _reopened(pieces: pl.DataFrame, opens: pl.DataFrame) -> pl.DataFrame:
    """Whether the file was opened between the end of the previous piece and this one's begin."""
    if not opens.height:
        return pieces.with_columns(reopened=False)
    previous_end = pl.col("finish").shift(1).over(KEYS)
    numbered = pieces.with_row_index("piece").with_columns(previous_end=previous_end)
    between = (
        numbered.select("piece", *_FILE_KEYS, "begin", "previous_end")
        .join(opens, on=list(_FILE_KEYS), nulls_equal=True)
        .filter(
            (pl.col("opened") >= pl.col("previous_end")) & (pl.col("opened") <= pl.col("begin"))
        )
        .select(pl.col("piece").unique())
    )
    marked = numbered.join(
        between.with_columns(reopened=pl.lit(value=True)), on="piece", how="left",
        maintain_order="left",
    )  # fmt: skip
    return marked.with_columns(pl.col("reopened").fill_null(value=False)).drop(
        "piece", "previous_end"
    )


@dataclass(frozen=True, slots=True)
class TouchedRanges:
    """Which bytes of each file were touched at all, per layer and direction."""

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Unite the ranges of some of the events."""
        data = events.filter(_IS_DATA & (pl.col("bytes") > 0) & pl.col("offset").is_not_null())
        return _united(data.select("layer", "file", "operation", low="offset", high=_REACHED))

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Unite united ranges."""
        return _united(partials)


def _united(ranges: pl.LazyFrame) -> pl.LazyFrame:
    group = ("layer", "file", "operation")
    reached = pl.col("high").cum_max().shift(1).over(group)
    return (
        ranges.sort(*group, "low", maintain_order=True)
        .with_columns(number=(pl.col("low") > reached).fill_null(value=True).cum_sum())
        .group_by(*group, "number", maintain_order=True)
        .agg(pl.col("low").min(), pl.col("high").max())
        .drop("number")
    )
