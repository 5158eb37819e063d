"""What `ioprism bottlenecks` shows a person: characteristics, then a tree for every view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from ioprism.bottleneck_search.result import (
    AlikeGroup,
    Bottleneck,
    Bottlenecks,
    Name,
    ViewSummary,
)
from ioprism.reports.to_terminal import facts, heading, prose
from ioprism.text import printable
from ioprism.units import format_bytes, format_count, format_counted, format_seconds
from ioprism.views.call_class import SIZE_NAMES
from ioprism.views.records import BINS

STYLES = {"critical": "bold red", "very high": "red", "high": "yellow", "medium": "cyan"}
BAR = 16

Totals = Mapping[str, float | None]


def show_bottlenecks(
    bottlenecks: Bottlenecks, console: Console, *, page: int, top: int | None
) -> None:
    """Print the characteristics panel and the bottlenecks of every view."""
    heading(console, "I/O")
    facts(console, _characteristics(bottlenecks))
    if not bottlenecks.totals["operations"]:
        console.print("\n  No I/O was recorded.")
        return
    if bottlenecks.settings.get("method") == "excess":
        _one_list(bottlenecks, console, page=page, top=top)
        return
    for view in bottlenecks.views:
        listed = [b for b in bottlenecks.bottlenecks if b.view == view.view]
        if view.bottlenecks:
            groups = {g.ids[0]: g for g in bottlenecks.groups if g.view == view.view}
            records = format_counted(view.records, "record")
            heading(console, f"{' → '.join(view.view)}: {records}")
            console.print(_tree(view, listed, groups, page=page, top=top))
    heading(console, "In all")
    facts(console, _summary(bottlenecks))


def _one_list(bottlenecks: Bottlenecks, console: Console, *, page: int, top: int | None) -> None:
    """Print what costs more than its peers, most seconds first."""
    views = ", ".join(view.view[0] for view in bottlenecks.views)
    if not bottlenecks.bottlenecks:
        console.print()
        nothing = f"Nothing costs noticeably more than its peers (seen by {views})."
        prose(console, nothing, indent=2)
        return
    heading(console, f"What costs more than its peers (seen by {views})")
    for bottleneck in bottlenecks.bottlenecks:
        prose(console, _sentence(bottleneck), indent=2)
        for reason in bottleneck.reasons[1:]:
            prose(console, Text(printable(reason.message), "dim"), indent=7)
    left = (
        bottlenecks.found - (page - 1) * (top or bottlenecks.found) - len(bottlenecks.bottlenecks)
    )
    if left > 0:
        console.print(Text(f"  {left:,} more: --page {page + 1}, or a larger --top", "dim"))


def _sentence(bottleneck: Bottleneck) -> Text:
    style = STYLES.get(bottleneck.label, "")
    return Text.assemble(
        (f"{bottleneck.id.ljust(5)}", style or "bold"),
        Text(bottleneck.title, overflow="fold"),
        (f"  [{bottleneck.time_share:.0%} of the time in I/O]", "dim"),
    )


def _characteristics(bottlenecks: Bottlenecks) -> Iterator[tuple[str, str]]:
    totals = bottlenecks.totals
    whole = totals["io_time_sum"] or 0.0
    yield "ran for", format_seconds(totals["runtime"])
    of = "slowest process" if bottlenecks.settings.get("across") == "max" else "all processes"
    summed = f"{format_seconds(whole)} summed over processes"
    yield "time in I/O", f"{format_seconds(totals['io_time'])} ({of}), {summed}"
    for kind in ("read", "write", "metadata"):
        yield f"  {kind}", _kind(totals, kind)
    yield "files", format_count(totals["files"])
    yield "done by", _processes(totals)
    yield from _sizes(totals)
    moved = totals["data_count"] or 0.0
    if moved:
        share = (totals["sequential_count"] or 0.0) / moved
        yield "access", f"{share:.1%} sequential, {1 - share:.1%} random"
    if totals["calls_without_io"]:
        yield (
            "left out",
            f"{format_counted(int(totals['calls_without_io']), 'call')} that are not I/O",
        )


def _kind(totals: Totals, kind: str) -> str:
    """Its share by its slowest process, as in Table 3 of WisIO's paper, and its sums."""
    summed = f"{format_seconds(totals[f'{kind}_time'] or 0.0)} summed"
    calls = format_counted(round(totals[f"{kind}_count"] or 0), "call")
    size = totals.get(f"{kind}_size")
    amount = f", {format_bytes(size)}" if size else ""
    share = totals[f"{kind}_time_share"]
    slowest = "" if share is None else f"{share:.2%}, "
    return f"{slowest}{summed}, {calls}{amount}"


def _processes(totals: Totals) -> str:
    names = (("processes", "process", "processes"), ("hosts", "node", None),
             ("applications", "application", None))  # fmt: skip
    known = [(int(totals[key] or 0), one, many) for key, one, many in names]
    return ", ".join(format_counted(number, one, many) for number, one, many in known if number)


def _sizes(totals: Totals) -> Iterator[tuple[str, str]]:
    moved = sum(totals[name] or 0.0 for name, _ in BINS)
    label = "request sizes"
    for name, number in BINS:
        share = (totals[name] or 0.0) / moved if moved else 0.0
        if share:
            bar = "█" * round(BAR * share)
            yield label, f"{SIZE_NAMES[number]:>18}  {share:6.1%} {bar}"
            label = ""


def _tree(
    view: ViewSummary,
    listed: list[Bottleneck],
    groups: Mapping[str, AlikeGroup],
    *,
    page: int,
    top: int | None,
) -> Tree:
    labels = ", ".join(f"{count:,} {label}" for label, count in view.labels.items())
    title = f"  {format_counted(view.bottlenecks, 'bottleneck')} ({labels})"
    if view.below_floor:
        title += f", {view.below_floor:,} too small to matter"
    tree = Tree(Text(title), guide_style="dim")
    for bottleneck in sorted(listed, key=lambda b: -b.fields.get("excess_time", 0.0)):
        _add(tree, bottleneck, groups.get(bottleneck.id))
    shown = (page - 1) * (top or len(groups)) + len(listed)
    if shown < len(groups):
        left = len(groups) - shown
        tree.add(Text(f"{left:,} more: --page {page + 1}, or a larger --top", "dim"))
    return tree


def _add(tree: Tree, bottleneck: Bottleneck, group: AlikeGroup | None) -> None:
    style = STYLES.get(bottleneck.label, "")
    others = len(group.ids) - 1 if group else 0
    line = Text.assemble(
        (f"{bottleneck.id} ", style or "bold"),
        Text(record_name(bottleneck.record), overflow="fold"),
        f" and {others:,} similar" if others else "",
        (
            f"  {bottleneck.severity:.1f}° {bottleneck.label}, "
            f"{format_seconds(bottleneck.time)} ({bottleneck.job_share:.1%} of I/O time), "
            f"{format_counted(round(bottleneck.operations), 'call')}",
            "dim",
        ),
    )
    branch = tree.add(line)
    for reason in bottleneck.reasons:
        branch.add(Text(printable(reason.message)))
    if not bottleneck.reasons:
        branch.add(Text("no reason found", "yellow"))


def record_name(record: Mapping[str, Name]) -> str:
    """Return a record's name as text that can neither style nor steer the terminal."""
    parts = []
    for view, name in record.items():
        if name is None:
            parts.append(f"unknown {view}")
        elif view in ("time", "phase"):
            parts.append(f"from {float(name):g} s")
        else:
            parts.append(printable(str(name)))
    return ", ".join(parts)


def _summary(bottlenecks: Bottlenecks) -> Iterator[tuple[str, str]]:
    views = bottlenecks.views
    yield "bottlenecks", format_count(sum(view.bottlenecks for view in views))
    groups = format_counted(len(bottlenecks.groups), "group")
    yield "worth reporting", f"{format_count(bottlenecks.found)} in {groups} of similar ones"
    if bottlenecks.coverage is not None:
        yield (
            "explained",
            f"{bottlenecks.coverage:.1%} ({bottlenecks.unexplained:,} without a reason)",
        )
