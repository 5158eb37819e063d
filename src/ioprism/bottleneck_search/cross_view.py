"""The default list of bottlenecks: one over all views, by the seconds above peers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from ioprism.bottleneck_search.classify import Walk
from ioprism.bottleneck_search.excess import Costs, costs
from ioprism.bottleneck_search.result import ViewSummary
from ioprism.bottleneck_search.same_calls import Merged, candidates, merge_views
from ioprism.bottleneck_search.settings import Settings
from ioprism.bottleneck_search.severity import angle, identifiers, severity_label
from ioprism.views.perspectives.codes import Perspective
from ioprism.views.perspectives.records import PER_SECOND, Rows


def record_names(
    perspective: Perspective,
    codes: pl.Series,
    *,
    files: pl.DataFrame,
    processes: pl.DataFrame,
    bucket: float,
    origin: float = 0.0,
) -> pl.Series:
    """Return the names of these codes: text, or seconds for times. Null: the trace does not say."""
    values = perspective.values.gather(codes.cast(pl.UInt32)).alias(perspective.name)
    if perspective.name in ("time", "phase"):
        return values * bucket + origin
    if perspective.name == "file":
        return _looked_up(values, files.select("file", "path"))
    if perspective.name == "process":
        return _looked_up(values, processes.select("process", _process_name(processes)))
    return values


def _looked_up(values: pl.Series, table: pl.DataFrame) -> pl.Series:
    key, name = table.columns
    rows = pl.DataFrame({key: values.cast(pl.UInt32)})
    return rows.join(table, on=key, how="left", maintain_order="left")[name].alias(values.name)


def _process_name(processes: pl.DataFrame) -> pl.Expr:
    """`rank 3 on node7`, and the thread where ranks alone do not tell processes apart."""
    name = pl.format("rank {}", "rank")
    if processes["rank"].n_unique() < processes.height:
        name = pl.concat_str(name, pl.format(" thread {}", "tid").fill_null(""))
    named = pl.concat_str(name, pl.format(" on {}", "host").fill_null(""))
    if processes["application"].n_unique() > 1:
        named = pl.concat_str(named, pl.format(" ({})", "application").fill_null(""))
    return named.alias("name")


PREFIX = "record_"  # columns of the table that name a record, one per view
MEMBERS = pl.List(
    pl.Struct({"name": pl.String, "seconds": pl.Float64, "excess_seconds": pl.Float64})
)
EDGE = 0.02  # of the unexplained seconds on each side that a time window leaves out


def cross_view(
    rows: Rows, settings: Settings, *, ranks: int
) -> tuple[tuple[ViewSummary, ...], pl.DataFrame]:
    """Return the views, and one table of what costs more than its peers, most seconds first."""
    known = costs(rows, across=settings.across, ranks=ranks)
    least = settings.floor * known.io_time
    views = [candidates(view, known, least=max(least, 1e-9)) for view in rows.views]
    listed = merge_views(views, known, least=max(least, 1e-9))
    sizes = {view.view: view.records for view in views}
    tables = [_row(one, known, rows, settings, sizes) for one in listed]
    summaries = tuple(
        ViewSummary((view.view,), view.records, len(view.found), 0, {}) for view in views
    )
    if not tables:
        return summaries, _empty(rows, settings)
    table = pl.concat(tables, how="diagonal_relaxed").with_row_index("number", offset=1)
    return summaries, table.with_columns(id=identifiers())


def _row(
    one: Merged, known: Costs, rows: Rows, settings: Settings, sizes: dict[str, int]
) -> pl.DataFrame:
    """One row with every field that rules may speak of."""
    by = tuple(view for view in rows.views if view in one.codes)
    codes = {f"{view}_code": [one.codes[view]] for view in by}
    keys = pl.DataFrame(codes, schema={name: rows.code_table[name].dtype for name in codes})
    fields = Walk(rows, settings, known.io_time).fields(keys, by, rows.cells, ())
    whole = rows.main.select(
        pl.col("nanoseconds").sum() / PER_SECOND, pl.col("count", "bytes").sum()
    ).row(0)
    shares = [_share(fields[name].item(), of) for name, of in zip(
        ("time", "count", "size"), whole, strict=True
    )]  # fmt: skip
    share = min(1.0, _share(one.seconds, known.io_time))
    work = shares[2] if settings.metric == "bytes" else shares[1]
    start, end = _window(one, known, settings)
    told: dict[str, Any] = {
        "view": ".".join(by), "views": ", ".join(one.views), "at_stake": one.seconds,
        "excess_seconds": one.excess, "excess_time": one.excess, "time_share": share,
        "job_share": share, "work_share": work, "count_share": shares[1], "size_share": shares[2],
        "slowest_process_time": one.lead.numbers["seconds"], "factor": one.lead.numbers["factor"],
        "peers_seconds": one.lead.numbers["peers_seconds"], "lead": one.lead.view,
        "same_work": bool(one.lead.numbers["same_work"]), "alike": len(one.alike) or 1,
        "records": sizes[one.lead.view], "window_start": start, "window_end": end,
        "members": _members(one, rows, settings),
        **_codes_and_names(one, by, rows, settings),
    }  # fmt: skip
    # The angle of what it takes over what its peers would: 45 degrees is as much as they.
    rated = pl.DataFrame([told], schema_overrides={"members": MEMBERS}).with_columns(
        severity=angle(pl.col("at_stake"), pl.col("at_stake") - pl.col("excess_seconds"))
    )
    return rated.with_columns(label=severity_label(pl.col("severity"))).hstack(fields)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _names(view: str, codes: Sequence[int], rows: Rows, settings: Settings) -> pl.Series:
    return record_names(
        rows.perspectives[view], pl.Series(codes, dtype=pl.UInt32), files=rows.files,
        processes=rows.processes, bucket=settings.bucket, origin=settings.origin,
    )  # fmt: skip


def _codes_and_names(
    one: Merged, by: tuple[str, ...], rows: Rows, settings: Settings
) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for view in by:
        columns[f"{view}_code"] = one.codes[view]
        columns[PREFIX + view] = _names(view, [one.codes[view]], rows, settings).item()
    return columns


def _members(one: Merged, rows: Rows, settings: Settings) -> list[dict[str, Any]]:
    """The single records of a group; the group's seconds count those side by side once."""
    if not one.alike:
        return []
    names = _names(one.lead.view, one.records, rows, settings).cast(pl.String)
    return [
        {"name": name, "seconds": member.numbers["seconds"], "excess_seconds": member.excess}
        for member, name in zip(one.alike, names, strict=True)
    ]


def _window(one: Merged, known: Costs, settings: Settings) -> tuple[float | None, float | None]:
    """From when to when nearly all of its unexplained seconds are."""
    codes = list(one.records)
    rows = known.table.filter(pl.col(f"{one.lead.view}_code").is_in(codes)).drop_nulls("time")
    sums = rows.group_by("time").agg(pl.col("weight").sum()).sort("time")
    whole = float(sums["weight"].sum())
    if not whole:
        return None, None
    reached = pl.col("weight").cum_sum()
    inside = sums.filter(
        (reached > EDGE * whole) & (reached - pl.col("weight") < (1 - EDGE) * whole)
    )["time"]
    bucket, origin = settings.bucket, settings.origin
    return inside[0] * bucket + origin, (inside[-1] + 1) * bucket + origin


def _empty(rows: Rows, settings: Settings) -> pl.DataFrame:
    """The table without rows, with the columns that rules ask for."""
    by = rows.views[:1]
    keys = rows.code_table.select(f"{by[0]}_code").clear()
    fields = Walk(rows, settings, 0.0).fields(keys, by, rows.cells, ())
    texts = ("id", "view", "label", "lead")
    numbers = ("severity", "at_stake", "excess_seconds", "excess_time", "time_share", "job_share",
               "work_share", "count_share", "size_share", "slowest_process_time",
               "number")  # fmt: skip
    own = pl.DataFrame(
        schema={**dict.fromkeys(texts, pl.String), **dict.fromkeys(numbers, pl.Float64)}
    )
    return own.hstack(fields.select(pl.exclude(own.columns)))
