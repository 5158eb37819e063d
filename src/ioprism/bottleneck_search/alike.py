"""Which bottlenecks of a view are alike, so that one line can stand for all of them.

Alike are bottlenecks of one view with the same label and the same reasons whose seconds, calls and
bytes are within the same factor of two below the most that such a bottleneck has. WisIO clusters
the standardised fields of a view instead; its groups change with whatever else the view holds.
"""

from __future__ import annotations

import polars as pl

from ioprism.bottleneck_search.result import AlikeGroup

SAME = ("view", "label", "reasons")
AMOUNTS = ("at_stake", "count", "size")


def leaders(table: pl.DataFrame, holds: pl.DataFrame) -> pl.Series:
    """Return for each bottleneck the number of the costliest one that is like it.

    Args:
        table: bottlenecks, numbered by the seconds they cost.
        holds: which reasons hold, a column of flags each.
    """
    flags = pl.concat_str(pl.col(name).cast(pl.Int8) for name in holds.columns)
    reasons = holds.select(flags).to_series() if holds.width else pl.repeat("", table.height)
    halvings = [
        (pl.col(name).max().over(SAME) / pl.col(name)).log(2).floor().alias(f"{name}_halvings")
        for name in AMOUNTS
    ]
    steps = table.with_columns(reasons=reasons).with_columns(halvings)
    same = (*SAME, *(f"{name}_halvings" for name in AMOUNTS))
    return steps.select(leader=pl.col("number").min().over(same)).to_series()


def alike_groups(table: pl.DataFrame, holds: pl.DataFrame) -> tuple[AlikeGroup, ...]:
    """Return the groups of a table with its `leader` column, view by view, costliest first."""
    members = table.sort("number").group_by("leader", maintain_order=True)
    ids = dict(members.agg("id").iter_rows())
    first = table.select("number", "leader", "view", "label").hstack(holds)
    rows = first.filter(pl.col("number") == pl.col("leader")).sort("view", "number")
    return tuple(
        AlikeGroup(
            view=tuple(row["view"].split(".")),
            label=row["label"],
            ids=tuple(ids[row["leader"]]),
            rules=tuple(dict.fromkeys(key.split(".")[0] for key in holds.columns if row[key])),
        )
        for row in rows.iter_rows(named=True)
    )
