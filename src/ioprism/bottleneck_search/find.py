"""Find the bottlenecks of a job: every view, one table, worst first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from ioprism.bottleneck_search.classify import Filter, ViewRecords, classify_views, io_time
from ioprism.bottleneck_search.counted_once import IoRows, io_rows, on_storage
from ioprism.bottleneck_search.cross_view import PREFIX, cross_view, record_names
from ioprism.bottleneck_search.result import ViewSummary
from ioprism.bottleneck_search.settings import Settings
from ioprism.bottleneck_search.severity import identifiers
from ioprism.model.trace import Trace, population_of
from ioprism.views.calls.call_class import READ, WRITE, operation_of
from ioprism.views.perspectives.records import Rows, all_fields


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Every bottleneck above the floor, not yet explained."""

    totals: Mapping[str, float | None]
    views: tuple[ViewSummary, ...]
    table: pl.DataFrame  # id, view, record_…, …_code, label, severity and every field; sorted
    rows: Rows
    filters: Mapping[str, tuple[Filter, ...]]  # of every view, what the views before it leave
    one_list: bool = False  # over all views, rather than view by view


def bottlenecks_of(main: pl.DataFrame, trace: Trace, settings: Settings) -> Found:
    """Look for bottlenecks in a main view, which may be a stored one."""
    io = io_rows(main, trace, settings)
    if settings.method == "excess" and settings.work is None and settings.percentile is None:
        return _one_list(io, trace, settings)
    ranks = trace.job.ranks or 1
    possible = replace(settings, views=io.rows.views)
    views = list(classify_views(io.rows, possible, ranks=ranks))
    totals = _totals(io, trace, settings)
    tables = [_name_records(view, io.rows, settings) for view in views]
    table = _sort_records(pl.concat(tables, how="diagonal_relaxed")).with_columns(
        job_processes=pl.lit(totals["processes"]), job_files=pl.lit(totals["files"])
    )
    filters = {".".join(view.view): view.filters for view in views}
    return Found(totals, tuple(map(_summary, views)), table, io.rows, filters)


def _one_list(io: IoRows, trace: Trace, settings: Settings) -> Found:
    ranks = trace.job.ranks or 1
    rows = on_storage(io.rows)
    views, listed = cross_view(rows, replace(settings, views=rows.views), ranks=ranks)
    totals = _totals(io, trace, settings)
    table = listed.with_columns(
        job_processes=pl.lit(totals["processes"]), job_files=pl.lit(totals["files"])
    )
    filters: dict[str, tuple[Filter, ...]] = dict.fromkeys(table["view"].to_list(), ())
    return Found(totals, views, table, rows, filters, one_list=True)


def _summary(view: ViewRecords) -> ViewSummary:
    return ViewSummary(view.view, view.records, view.bottlenecks, view.below_floor, view.labels)


def _name_records(view: ViewRecords, rows: Rows, settings: Settings) -> pl.DataFrame:
    codes = [name for name in view.kept.columns if name.endswith("_code")]
    names = [
        record_names(
            rows.perspectives[code.removesuffix("_code")],
            view.kept[code],
            files=rows.files,
            processes=rows.processes,
            bucket=settings.bucket,
            origin=settings.origin,
        ).alias(PREFIX + code.removesuffix("_code"))
        for code in codes
    ]
    return view.kept.with_columns(names).with_columns(view=pl.lit(".".join(view.view)))


def _sort_records(table: pl.DataFrame) -> pl.DataFrame:
    """Number by the seconds beyond proportion; sort by severity, then time at stake."""
    order = sorted(name for name in table.columns if name.startswith(PREFIX))
    in_proportion = pl.when(pl.col("time_share") > 0).then(
        pl.col("work_share") / pl.col("time_share")
    )
    excess = pl.col("at_stake") * (1 - in_proportion.fill_null(1.0))
    stable = table.with_columns(excess_time=excess).sort("view", *order, nulls_last=True)
    ranks = stable.sort("excess_time", descending=True, maintain_order=True)
    numbered = ranks.with_row_index("number", offset=1).with_columns(id=identifiers())
    return numbered.sort("severity", "at_stake", "number", descending=[True, True, False])


def _shares_of_slowest(rows: Rows, settings: Settings, ranks: int) -> dict[str, float | None]:
    """What the slowest process of each kind of call spends, over the time of the slowest of all.

    These are the shares of Table 3 in WisIO's paper. Each kind may have another slowest process,
    so that they may add up to more than the whole.
    """
    whole = io_time(rows, settings, ranks)
    operation = operation_of(rows.main["class"].to_numpy().astype(np.int64))
    kinds = {"read": operation == READ, "write": operation == WRITE, "metadata": operation > WRITE}
    times = {
        kind: io_time(replace(rows, main=rows.main.filter(pl.Series(mask))), settings, ranks)
        for kind, mask in kinds.items()
    }
    return {f"{kind}_time_share": t / whole if whole else None for kind, t in times.items()}


def _totals(io: IoRows, trace: Trace, settings: Settings) -> dict[str, float | None]:
    """The characteristics of the I/O that was looked at."""
    rows = io.rows
    everything = pl.lit(0, dtype=pl.UInt32)
    fields = all_fields(
        rows.code_table.with_columns(record=everything),
        rows.cells.with_columns(record=everything),
        classes=rows.classes,
        records=1,
    ).row(0, named=True)
    ranks = trace.job.ranks or 1
    doing = population_of(trace.processes.join(rows.main, on="process", how="semi"))
    of_all = rows.main["process"].null_count() > 0
    everyone = (trace.job.ranks or 0) if of_all and not settings.compatible else 0
    return {
        "runtime": trace.job.runtime,
        "io_time": io_time(rows, settings, ranks),
        **_shares_of_slowest(rows, settings, ranks),
        "io_time_sum": fields["time"],
        "operations": fields["count"],
        "bytes": fields["size"],
        **{name: value for name, value in fields.items() if name not in ("time", "count", "size")},
        "files": trace.files.filter(kind="file").join(rows.main, on="file", how="semi").height,
        "processes": max(doing.processes or 0, everyone),
        "applications": doing.applications or 0,
        "hosts": doing.hosts or 0,
        "calls_without_io": io.calls_without_io,
    }
