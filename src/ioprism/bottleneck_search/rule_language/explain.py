"""Explain bottlenecks by rules: all conditions on all of them, messages for those told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from ioprism.bottleneck_search.find import PREFIX, Found
from ioprism.bottleneck_search.result import AlikeGroup, Bottleneck, Bottlenecks, Name, Reason
from ioprism.bottleneck_search.rule_language.load import TEXT_FIELDS, BottleneckRule, Template
from ioprism.text import printable
from ioprism.units import format_seconds
from ioprism.views.records import FIELDS

# What needs no telling of a record that costs more than its peers.
COMMONPLACE = ("large_transfers",)
# What a record is compared with, in the list over all views.
PEERS = ("factor", "peers_seconds", "same_work", "alike", "records", "window_start",
         "window_end")  # fmt: skip


def apply_rules(table: pl.DataFrame, rules: Sequence[BottleneckRule]) -> pl.DataFrame:
    """Test every reason of every rule on all bottlenecks, in one pass over the columns.

    Returns:
        A column of flags for each reason of each rule, in the order of the table.
    """
    everywhere = pl.col("severity").is_not_null()  # a literal holds for all or none
    conditions = (
        (rule.condition.compute & reason.condition.compute & everywhere).alias(_key(rule, number))
        for rule in rules
        for number, reason in enumerate(rule.reasons)
    )
    return table.lazy().select(conditions).collect()  # what conditions share is computed once


def _is_explained(holds: pl.DataFrame, rules: Sequence[BottleneckRule], height: int) -> pl.Series:
    explaining = [
        _key(rule, n) for rule in rules if rule.explains for n in range(len(rule.reasons))
    ]
    if not explaining or not holds.height:
        return pl.Series("explained", [False] * height, dtype=pl.Boolean)
    return holds.select(explained=pl.any_horizontal(explaining)).to_series()


def _key(rule: BottleneckRule, of: int | str) -> str:
    """The name of the column of one of a rule's reasons or values."""
    return f"{rule.key}.{of}"


def explain_bottlenecks(
    bottlenecks: Found,
    rules: Sequence[BottleneckRule],
    *,
    top: int | None = None,
    page: int = 1,
    fold: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> Bottlenecks:
    """Judge all bottlenecks and word those of one page of every view.

    With `fold`, only the first of those that are alike counts and is worded.
    """
    if bottlenecks.one_list:
        rules = [rule for rule in rules if rule.explains and rule.key not in COMMONPLACE]
    holds = apply_rules(bottlenecks.table, rules)
    table = bottlenecks.table.with_columns(_is_explained(holds, rules, bottlenecks.table.height))
    if not bottlenecks.one_list:
        table = table.with_columns(leaders(table, holds))
    told = _page(table, top, page, per_view=not bottlenecks.one_list, fold=fold)
    by_view = dict(table.filter("explained").group_by("view").agg(pl.len()).iter_rows())
    return Bottlenecks(
        totals=bottlenecks.totals,
        views=tuple(
            replace(view, explained=by_view.get(".".join(view.view), 0))
            for view in bottlenecks.views
        ),
        bottlenecks=tuple(_bottlenecks(table, holds, told, rules)),
        found=table.height,
        unexplained=int((~table["explained"]).sum()),
        groups=() if bottlenecks.one_list else alike_groups(table, holds),
        settings=settings or {},
        table=table.select(
            *_front(table), pl.exclude("number", "leader", "members", "^.*_code$", *_front(table))
        ),
    )


def _front(table: pl.DataFrame) -> list[str]:
    records = sorted(name for name in table.columns if name.startswith(PREFIX))
    return ["id", "view", *records, "label", "severity", "at_stake", "job_share", "explained"]


def _page(
    table: pl.DataFrame, top: int | None, page: int, *, per_view: bool, fold: bool
) -> pl.Series:
    """The rows to tell, of all or of every view one page: most seconds first."""
    rows = table.with_row_index("row")
    if fold and per_view:
        rows = rows.filter(pl.col("number") == pl.col("leader"))
    if top is None:
        return rows["row"]
    order = pl.col("number").rank("ordinal")
    place = order.over("view") if per_view else order
    first = (page - 1) * top
    return rows.filter(place.is_between(first + 1, first + top))["row"]


@dataclass(frozen=True, slots=True)
class _Wording:
    """How a reason that holds is put into words."""

    key: str  # the column that says whether it holds
    rule: str
    message: Template
    columns: Mapping[str, str]  # by name of a value, where it is
    evidence: tuple[str, ...]  # names of the values that are numbers


def _bottlenecks(
    table: pl.DataFrame, holds: pl.DataFrame, rows: pl.Series, rules: Sequence[BottleneckRule]
) -> Iterator[Bottleneck]:
    told, holds = (
        frame[rows.to_list()] if len(rows) else frame.clear() for frame in (table, holds)
    )
    numbers = told.select(
        value.compute.alias(_key(rule, name))
        for rule in rules
        for name, value in rule.values.items()
    )
    values = numbers.to_dicts() if numbers.width else [{}] * told.height
    wordings = tuple(_wordings(rules))
    for row, flags, extra in zip(
        told.iter_rows(named=True), holds.iter_rows(named=True), values, strict=True
    ):
        yield _bottleneck(row, tuple(_reasons({**row, **extra}, flags, wordings)))


def _wordings(rules: Sequence[BottleneckRule]) -> Iterator[_Wording]:
    for rule in rules:
        for number, reason in enumerate(rule.reasons):
            fields = sorted(rule.condition.fields | reason.condition.fields)
            columns = {
                name: _key(rule, name) if name in rule.values else name
                for name in (*fields, *reason.message.names)
            }
            evidence = tuple(name for name in columns if name not in TEXT_FIELDS)
            yield _Wording(_key(rule, number), rule.key, reason.message, columns, evidence)


def _reasons(
    values: Mapping[str, Any], flags: Mapping[str, bool], wordings: Sequence[_Wording]
) -> Iterator[Reason]:
    for wording in wordings:
        if flags[wording.key]:
            shown = {name: values[column] for name, column in wording.columns.items()}
            evidence = {name: shown[name] for name in wording.evidence}
            yield Reason(wording.rule, wording.message.fill(shown), evidence)


def _bottleneck(row: Mapping[str, Any], reasons: tuple[Reason, ...]) -> Bottleneck:
    view = tuple(row["view"].split("."))
    record: dict[str, Name] = {  # in a drill-down only the last view names it
        name: row[PREFIX + name]
        for name in view
        if row.get(PREFIX + name) is not None or name == view[-1]
    }
    return Bottleneck(
        id=row["id"],
        view=view,
        record=record,
        severity=row["severity"],
        label=row["label"],
        time=row["at_stake"],
        time_share=row["time_share"],
        job_share=row["job_share"],
        operations=row["count"],
        operations_share=row["count_share"],
        bytes=round(row["size"]),
        bytes_share=row["size_share"],
        function=row["function"],
        excess_seconds=row.get("excess_seconds", row["excess_time"]),
        views=tuple((row.get("views") or row["view"].replace(".", "+")).split(", ")),
        peers={name: row[name] for name in PEERS if row.get(name) is not None},
        members=tuple(row.get("members") or ()),
        title=sentence(row, reasons),
        fields={name: row[name] for name in FIELDS if name in row},
        reasons=reasons,
    )


PLURALS = {"process": "processes", "directory": "directories", "time": "time buckets"}
WHERE = ("application", "directory", "file", "process", "host", "target", "function", "layer")


def sentence(row: Mapping[str, Any], reasons: Sequence[Reason]) -> str:
    """Return it, or nothing for a record of the paper's views, which has no peers to name."""
    if "lead" not in row:
        return ""
    why = f": {reasons[0].message}" if reasons else ""
    start, end = row.get("window_start"), row.get("window_end")
    when = "" if start is None or end is None else f", from second {start:g} to {end:g}"
    return f"{_who(row)} {_comparison(row)}{when}{why}"


def _who(row: Mapping[str, Any]) -> str:
    named = ", ".join(_record_names(row))
    first = named[:1].upper() + named[1:]
    if row["alike"] < 2:
        return first
    kind = PLURALS.get(row["lead"], f"{row['lead']}s")
    return f"{first} ({row['alike']:,} of {row['records']:,} {kind} alike)"


def _record_names(row: Mapping[str, Any]) -> Iterator[str]:
    """Application, directory or file, and process; the file names its directory."""
    views = row["view"].split(".")
    ordered = [view for view in WHERE if view in views]
    for view in [*ordered, *(view for view in views if view not in ordered)]:
        name = row.get(PREFIX + view)
        text = "unknown" if name is None else printable(str(name)) or "without a name"
        if view == "directory" and "file" in views:
            continue
        if view in ("time", "phase"):
            yield f"second {float(name or 0.0):g}"
        else:
            yield text if view == "process" else f"{view} {text}"


def _comparison(row: Mapping[str, Any]) -> str:
    time, excess = format_seconds(row["at_stake"]), format_seconds(row["excess_seconds"])
    kind = "time bucket" if row["lead"] == "time" else row["lead"]
    if row["same_work"] and row["peers_seconds"]:
        times = row["slowest_process_time"] / row["peers_seconds"]
        return f"takes {times:.3g} times the median {kind} for the same calls, {excess} more"
    return f"takes {time}, {excess} of it more than its data and its peers explain"


SAME = ("view", "label", "reasons")
AMOUNTS = ("at_stake", "count", "size")


def leaders(table: pl.DataFrame, holds: pl.DataFrame) -> pl.Series:
    """Return for each bottleneck the number of the costliest one that is like it.

    Alike are bottlenecks of one view with the same label and the same reasons whose seconds,
    calls and bytes are within the same factor of two below the most that such a bottleneck has.
    WisIO clusters the fields of a view; its groups change with whatever else the view holds.

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
