"""Heat maps as busy intervals: when ranks moved bytes, to the width of a bin."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.model.schema import Layer
from ioprism.views.time.intervals import united_layers

Floats = npt.NDArray[np.float64]

_SHARES = pl.Schema(
    {
        "layer": Layer, "phase": pl.Int64(), "rank": pl.Int32(), "operations": pl.Int64(),
        "seconds": pl.Float64(), "read": pl.Int64(), "write": pl.Int64(),
    }
)  # fmt: skip


def _bins(heat: pl.DataFrame) -> pl.DataFrame:
    """One row per rank, layer and bin in which bytes were moved."""
    return (
        heat.filter(pl.col("layer").is_not_null())
        .with_columns(bin=pl.int_ranges(0, pl.col("write").list.len()))
        .explode("write", "read", "bin")
        .filter((pl.col("write") > 0) | (pl.col("read") > 0))
        .with_columns(
            start=pl.col("bin") * pl.col("bin_width"), end=(pl.col("bin") + 1) * pl.col("bin_width")
        )
    )


def heat_intervals(heat: pl.DataFrame) -> tuple[pl.DataFrame, Mapping[str, float]]:
    """Return the busy intervals of each layer, and how wide its bins are."""
    filled = _bins(heat)
    widths = filled.unique("layer", keep="first", maintain_order=True).sort("layer")
    return united_layers(filled), dict(widths.select("layer", "bin_width").iter_rows())


def heat_shares(heat: pl.DataFrame, borders: Mapping[str, tuple[Floats, Floats]]) -> pl.DataFrame:
    """Return what each rank moved in each phase; its time is that of its busy bins."""
    filled = _bins(heat)
    tables = [_SHARES.to_frame()]
    for layer, (starts, ends) in borders.items():
        rows = filled.filter(layer=layer)
        middle = (rows["start"].to_numpy() + rows["end"].to_numpy()) / 2
        phase = np.searchsorted(starts, middle, side="right") - 1
        inside = (phase >= 0) & (np.searchsorted(ends, middle) <= phase)
        tables.append(
            rows.with_columns(phase=pl.Series(phase, dtype=pl.Int64))
            .filter(pl.Series(inside))
            .group_by("layer", "phase", "rank")
            .agg(
                pl.len().cast(pl.Int64).alias("operations"),
                pl.col("bin_width").sum().alias("seconds"),
                pl.col("read", "write").sum(),
            )
            .select(_SHARES.names())
        )
    return pl.concat(tables)
