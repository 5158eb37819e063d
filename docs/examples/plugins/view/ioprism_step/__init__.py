"""A view by time step: the last number in a file's name, as in `state_0042.h5`."""

from __future__ import annotations

import polars as pl

from ioprism.views.call_class import TableView

STEP = TableView(
    table="file",
    value=pl.col("path").str.extract(r"(\d+)[^/\d]*$").cast(pl.Int64, strict=False),
    meaning="files of one time step: the last number in their names is the same",
)
