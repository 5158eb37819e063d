"""Find bottlenecks in every combination of views, and show what is behind one."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import polars as pl

from ioprism.bottleneck_search.classify import Filter, ViewRecords, Walk, classify_views, io_time
from ioprism.bottleneck_search.counted_once import IoRows, io_rows, on_storage
from ioprism.bottleneck_search.excess import Costs, Merged, candidates, costs, merge_views
from ioprism.bottleneck_search.result import (
    Bottleneck,
    Settings,
    ViewSummary,
    angle,
    identifiers,
    severity_label,
)
from ioprism.engine.base import Engine
from ioprism.errors import UsageError
from ioprism.model.result import Result, whole_numbers
from ioprism.model.trace import Trace, population_of
from ioprism.text import printable
from ioprism.units import format_seconds
from ioprism.views.access import CallsOfCells, LongestCalls
from ioprism.views.call_class import READ, WRITE, Perspective, operation_of, perspective
from ioprism.views.records import PER_SECOND, Rows, all_fields


def record_names(
    perspective: Perspective, codes: pl.Series, source: Rows | Trace, settings: Settings
) -> pl.Series:
    """Return the names of these codes: text, or seconds for times. Null: the trace does not say."""
    values = perspective.values.gather(codes.cast(pl.UInt32)).alias(perspective.name)
    if perspective.name in ("time", "phase"):
        return values * settings.bucket + settings.origin
    if perspective.name == "file":
        return _looked_up(values, source.files.select("file", "path"))
    if perspective.name == "process":
        processes = source.processes
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
        **{name: code for name, (code,) in codes.items()},
        **{PREFIX + view: _names(view, [one.codes[view]], rows, settings).item() for view in by},
    }  # fmt: skip
    # The angle of what it takes over what its peers would: 45 degrees is as much as they.
    rated = pl.DataFrame([told], schema_overrides={"members": MEMBERS}).with_columns(
        severity=angle(pl.col("at_stake"), pl.col("at_stake") - pl.col("excess_seconds"))
    )
    return rated.with_columns(label=severity_label(pl.col("severity"))).hstack(fields)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _names(
    view: str, codes: pl.Series | Sequence[int], rows: Rows, settings: Settings
) -> pl.Series:
    numbers = pl.Series(codes, dtype=pl.UInt32)
    return record_names(rows.perspectives[view], numbers, rows, settings)


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
    one_list = settings.method == "excess" and settings.work is None and settings.percentile is None
    rows, ranks = on_storage(io.rows) if one_list else io.rows, trace.job.ranks or 1
    possible = replace(settings, views=rows.views)
    filters: dict[str, tuple[Filter, ...]]
    if one_list:
        views, table = cross_view(rows, possible, ranks=ranks)
        filters = dict.fromkeys(table["view"].to_list(), ())
    else:
        classified = list(classify_views(rows, possible, ranks=ranks))
        tables = [_name_records(view, rows, settings) for view in classified]
        table = _sort_records(pl.concat(tables, how="diagonal_relaxed"))
        views = tuple(view.summary for view in classified)
        filters = {".".join(view.summary.view): view.filters for view in classified}
    totals = _totals(io, trace, settings)
    table = table.with_columns(
        job_processes=pl.lit(totals["processes"]), job_files=pl.lit(totals["files"])
    )
    return Found(totals, views, table, rows, filters, one_list)


def _name_records(view: ViewRecords, rows: Rows, settings: Settings) -> pl.DataFrame:
    codes = [name for name in view.kept.columns if name.endswith("_code")]
    names = [
        _names(code.removesuffix("_code"), view.kept[code], rows, settings).alias(
            PREFIX + code.removesuffix("_code")
        )
        for code in codes
    ]
    return view.kept.with_columns(names).with_columns(view=pl.lit(".".join(view.summary.view)))


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


PARTS = ("file", "process", "time", "function", "size")
MOST = 10  # parts of each perspective, and calls


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class TakenApart(Result):
    """A finding or bottleneck, and the calls that cause it."""

    parts: Mapping[str, pl.DataFrame]  # perspective -> name, time, operations, bytes
    calls: pl.DataFrame  # the longest calls, with names

    def _with_parts(self, **subject: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the JSON holds: the subject under its name, and its parts."""
        plain: dict[str, Any] = whole_numbers(
            {
                **subject,
                "parts": {name: table.to_dicts() for name, table in self.parts.items()},
                "calls": self.calls.to_dicts(),
            }
        )
        return plain

    def to_frame(self) -> pl.DataFrame:
        """Return the longest calls."""
        return self.calls


def parts(
    rows: pl.DataFrame, trace: Trace, settings: Settings, *, without: Container[str] = ()
) -> dict[str, pl.DataFrame]:
    """Return name, time, operations and bytes of the largest parts from each perspective."""
    return {name: _part(name, rows, trace, settings) for name in PARTS if name not in without}


def longest_calls(view: LongestCalls, trace: Trace, engine: Engine) -> pl.DataFrame:
    """Look for the longest calls in the events; an empty table where there are none."""
    if not trace.partitions:
        return pl.DataFrame()
    (calls,) = engine.run(trace, view)
    return _named_calls(calls, trace)


def _part(name: str, rows: pl.DataFrame, trace: Trace, settings: Settings) -> pl.DataFrame:
    seen = perspective(name, rows, files=trace.files, processes=trace.processes)
    sums = (
        rows.with_columns(code=seen.codes)
        .group_by("code")
        .agg(
            time=pl.col("nanoseconds").sum() / PER_SECOND,
            operations=pl.col("count").sum().round(9),
            bytes=pl.col("bytes").sum(),
        )
        .sort("time", "code", descending=[True, False])
        .head(MOST)
    )
    names = record_names(seen, sums["code"], trace, settings)
    return sums.drop("code").insert_column(0, names.alias("name"))


def _named_calls(calls: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    names = {
        name: record_names(seen, seen.codes, trace, Settings())
        for name in ("process", "file")
        for seen in [perspective(name, calls, files=trace.files, processes=trace.processes)]
    }
    return calls.with_columns(
        pl.col("layer", "operation", "function").cast(pl.String),
        process=names["process"],
        file=names["file"],
        seconds=pl.col("end") - pl.col("start"),
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inspection(TakenApart):
    """A bottleneck, taken apart."""

    bottleneck: Bottleneck

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON holds."""
        return self._with_parts(bottleneck=self.bottleneck.to_dict())

    def summary(self) -> str:
        """Return the answer in one line."""
        return f"{self.bottleneck.id}: {format_seconds(self.bottleneck.time)}"


def rows_behind(bottlenecks: Found, identifier: str) -> pl.DataFrame:
    """Return the main-view rows of one bottleneck.

    Raises:
        UsageError: there is none of this name.
    """
    row = bottlenecks.table.filter(pl.col("id") == identifier)
    if row.is_empty():
        raise UsageError(
            f"unknown bottleneck {printable(identifier)[:40]!r}; the trace has "
            f"{bottlenecks.table.height:,}.\nHint: ids come from `ioprism bottlenecks` with the "
            "same options, codes of findings from `ioprism insights`."
        )
    record = row.row(0, named=True)
    coded = bottlenecks.rows.code_table
    codes = {name: value for name, value in record.items() if name.endswith("_code")}
    keep = [f.keep(coded) for f in bottlenecks.filters[record["view"]]]
    keep += [
        coded[name].to_numpy() == value
        for name, value in codes.items()
        if value is not None and name in coded.columns
    ]
    return bottlenecks.rows.main.filter(pl.Series(reduce(and_, keep, np.ones(coded.height, bool))))


def inspect_bottleneck(
    bottleneck: Bottleneck, rows: pl.DataFrame, trace: Trace, engine: Engine, settings: Settings
) -> Inspection:
    """Take a bottleneck apart; its longest calls are looked for in the events."""
    cells = CallsOfCells(rows.select("process", "file", "time"), settings.bucket, settings.origin)
    return Inspection(
        bottleneck,
        parts=parts(rows, trace, settings, without=bottleneck.record),
        calls=longest_calls(LongestCalls(cells, most=MOST), trace, engine),
    )
