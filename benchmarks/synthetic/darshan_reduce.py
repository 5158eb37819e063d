"""Join the records of a file that all ranks share into one, as Darshan does at the end of a job."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from benchmarks.synthetic.darshan_tally import VALUES_KEPT, most_common

SHARED = -1  # the rank of a record that stands for all
_KEPT = ("MODE", "FILE_ALIGNMENT", "MEM_ALIGNMENT")
_LARGEST = ("END_TIMESTAMP", "MAX_BYTE_READ", "MAX_BYTE_WRITTEN")


def reduce_shared(records: pl.DataFrame, *, prefix: str, ranks: int) -> pl.DataFrame:
    """Replace the records of files that every rank used by one record of rank -1.

    The new record says which rank was fastest and slowest, what they moved, and how much
    the ranks' times (s) and bytes vary (population variance).
    """
    everyone = (pl.col("rank").n_unique().over("file") == ranks) & (ranks > 1)
    shared = records.filter(everyone)
    if shared.is_empty():
        return records
    shared = shared.with_columns(
        time=pl.sum_horizontal(f"{prefix}_F_{name}_TIME" for name in ("READ", "WRITE", "META")),
        moved=pl.sum_horizontal(f"{prefix}_BYTES_READ", f"{prefix}_BYTES_WRITTEN"),
    )
    counters = [name for name in records.columns if name not in ("file", "rank")]
    reduced = shared.group_by("file").agg(
        *(_joined(name) for name in counters if not _is_common(name)),
        *_spread(prefix),
    )
    reduced = reduced.with_columns(rank=pl.lit(SHARED, dtype=records.schema["rank"]))
    for name in ("ACCESS", "STRIDE"):
        if f"{prefix}_{name}1_{name}" in counters:
            common = _merged_values(shared, prefix, name)
            reduced = reduced.join(common, on=["file", "rank"], how="left")
    alone = records.filter(~everyone)
    together = pl.concat([reduced, alone], how="diagonal")
    return together.with_columns(pl.exclude("file", "rank").fill_null(0)).sort("file", "rank")


def _is_common(name: str) -> bool:
    """Whether the counter belongs to the most common sizes or strides."""
    return "_ACCESS" in name or "_STRIDE" in name


def _joined(name: str) -> pl.Expr:
    value = pl.col(name)
    if name.endswith("START_TIMESTAMP"):
        return value.filter(value > 0).min()
    if name.endswith("_TIME_SIZE"):
        slowest = pl.col(name.replace("_MAX_", "_F_MAX_").removesuffix("_SIZE"))
        return value.get(slowest.arg_max())
    if name.endswith((*_KEPT, *_LARGEST)) or "_F_MAX_" in name:
        return value.max()
    return value.sum()


def _spread(prefix: str) -> Iterator[pl.Expr]:
    time = pl.col("time")
    for which, place in (("FASTEST", time.arg_min()), ("SLOWEST", time.arg_max())):
        yield pl.col("rank").get(place).cast(pl.Int64).alias(f"{prefix}_{which}_RANK")
        yield pl.col("moved").get(place).alias(f"{prefix}_{which}_RANK_BYTES")
        yield time.get(place).alias(f"{prefix}_F_{which}_RANK_TIME")
    yield time.var(ddof=0).alias(f"{prefix}_F_VARIANCE_RANK_TIME")
    yield pl.col("moved").var(ddof=0).alias(f"{prefix}_F_VARIANCE_RANK_BYTES")


def _merged_values(records: pl.DataFrame, prefix: str, name: str) -> pl.DataFrame:
    """The most common among the values that the ranks kept."""
    places = range(1, VALUES_KEPT + 1)
    values = pl.concat(
        records.select(
            "file",
            rank=pl.lit(SHARED, dtype=records.schema["rank"]),
            value=f"{prefix}_{name}{i}_{name}",
            count=f"{prefix}_{name}{i}_COUNT",
        )
        for i in places
    )
    common = most_common(values, name)
    return common.rename(
        {column: f"{prefix}_{column}" for column in common.columns if column.startswith(name)}
    )
