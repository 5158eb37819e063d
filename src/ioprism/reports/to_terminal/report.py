"""A job's story and its characteristics, printed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

from ioprism.characteristics.details import Details, FileGroup, MpiTime
from ioprism.characteristics.totals import (
    Amount,
    CeilingComparison,
    Characteristics,
    Relation,
    SizeCount,
)
from ioprism.model.arrays import FloatArray
from ioprism.model.result import label, quantity
from ioprism.model.trace import TITLES
from ioprism.model.verdict import SERIOUS, Finding
from ioprism.report_steps import Document
from ioprism.reports.sheets import first_advice, job_facts
from ioprism.reports.to_terminal import (
    bars,
    brief,
    facts,
    heading,
    name,
    picture_width,
    prose,
    row,
    show_job,
    table,
    time_axis,
)
from ioprism.reports.to_terminal.diagnose import headline, show_causes, show_history
from ioprism.text import printable
from ioprism.units import (
    format_bytes,
    format_count,
    format_counted,
    format_moment,
    format_rate,
    format_seconds,
)
from ioprism.views.timeline import Timeline

BAR = 24


def show_characteristics(characteristics: Characteristics, console: Console) -> None:
    """Print the job's facts, its totals, its interfaces and its request sizes."""
    heading(console, "Job")
    facts(console, _job_facts(characteristics))
    if not characteristics.total.operations:
        console.print("\n  No I/O was recorded.")
        return
    heading(console, "What it did")
    table(
        console,
        ("", "calls", "bytes", "time", "rate in calls"),
        [
            row("text count bytes seconds rate", kind, one.operations, one.bytes, one.time,
                one.bytes / one.time if one.time > 0 and one.bytes else None)
            for kind, one in characteristics.by_operation.items()
        ],
    )  # fmt: skip
    heading(console, "Through which interface")
    table(
        console,
        ("", "reads", "read", "writes", "written", "metadata", "time"),
        [
            _layer_row(layer, amounts)
            for layer, amounts in characteristics.by_layer.items()
            if any(amounts[kind].operations for kind in ("read", "write", "metadata"))
        ],
        least=("metadata", "reads", "writes"),
    )
    _show_amplification(characteristics, console)
    for direction, sizes in characteristics.request_sizes.items():
        if any(size.count for size in sizes):
            heading(console, f"Sizes of {direction} requests")
            table(console, ("", "requests", "share", ""), _size_rows(sizes))
    _show_details(characteristics.details, console)


def _show_details(details: Details, console: Console) -> None:
    """What is behind the totals."""
    sizes = [("Most common request sizes", details.common_sizes), ("Strides", details.strides)]
    for title, common in sizes:
        if common:
            heading(console, title)
            rows = [row("text count count", one.layer, one.bytes, one.count) for one in common]
            table(console, ("", "bytes", "requests"), rows)
    groups = [("By type of file", details.file_types), ("By mount", details.mounts)]
    for title, listed in groups:
        if listed:
            heading(console, title)
            table(
                console,
                ("", "files", "calls", "read", "written", "time"),
                [_group_row(one) for one in listed],
            )
    if details.performance:
        heading(console, "Performance as Darshan estimates it (by the slowest rank)")
        rows = [
            row("text bytes seconds rate", one.layer, one.bytes, one.seconds, one.rate)
            for one in details.performance
        ]
        table(console, ("", "bytes", "time", "rate"), rows)
    if details.mpi is not None:
        _show_mpi(details.mpi, console)


def _group_row(group: FileGroup) -> tuple[str | Text, ...]:
    kind = "" if group.filesystem is None else f" ({printable(group.filesystem)})"
    return row(
        "text count count bytes bytes seconds", f"{printable(group.name) or '(none)'}{kind}",
        group.files, group.operations, group.bytes_read, group.bytes_written, group.time,
    )  # fmt: skip


def _show_mpi(mpi: MpiTime, console: Console) -> None:
    heading(console, "Communication (MPI, without its I/O)")
    share = "" if mpi.share is None else f", {mpi.share:.1%} of their run time"
    rows: list[tuple[str, str | Text]] = [
        ("time in MPI", f"{format_seconds(mpi.time)} summed over ranks{share}"),
    ]
    if mpi.waiting is not None:
        rows.append(("waiting in it", f"{format_seconds(mpi.waiting)} for other ranks"))
    facts(console, rows)
    calls = [row("text count seconds", one.name, one.count, one.time) for one in mpi.calls]
    table(console, ("", "calls", "time"), calls)


def _show_amplification(characteristics: Characteristics, console: Console) -> None:
    """What libraries make of the program's requests."""
    if not characteristics.amplification:
        return
    heading(console, "Amplification between layers")
    columns = ("", "bytes above", "bytes below", "requests above", "below", "read beyond")
    rows = [
        row("text bytes bytes count count bytes", f"{TITLES[one.upper]} → {TITLES[one.lower]}",
            one.bytes_above, one.bytes_below, one.requests_above, one.requests_below,
            one.extra_read_bytes)
        for one in characteristics.amplification
    ]  # fmt: skip
    table(console, columns, rows)


def _job_facts(characteristics: Characteristics) -> list[tuple[str, str | Text]]:
    job, hosts, seconds = characteristics.job, characteristics.hosts, characteristics.io_time
    nodes = "" if hosts is None else f" on {format_counted(hosts, 'host')}"
    time = f"{format_seconds(seconds)} summed over ranks"
    if job.runtime and job.ranks:
        time += f", {seconds / (job.runtime * job.ranks):.1%} of their run time"
    return [
        ("program", name(job.executable)),
        ("started", format_moment(job.start_time)),
        ("ran for", format_seconds(job.runtime)),
        ("ranks", f"{format_count(job.ranks)}{nodes}"),
        ("files", format_count(characteristics.files)),
        ("time in I/O", time),
    ]


def _layer_row(layer: str, amounts: Mapping[str, Amount]) -> tuple[str | Text, ...]:
    read, write, metadata = (amounts[kind] for kind in ("read", "write", "metadata"))
    return row(
        "text count bytes count bytes count seconds", layer, read.operations, read.bytes,
        write.operations, write.bytes, metadata.operations, read.time + write.time + metadata.time,
    )  # fmt: skip


def _size_rows(sizes: tuple[SizeCount, ...]) -> list[tuple[str, ...]]:
    total = sum(size.count for size in sizes)
    return [
        (
            f"up to {format_bytes(size.bin.high)}" if size.bin.high else "larger",
            format_count(size.count),
            f"{size.count / total:.1%}",
            "█" * round(BAR * size.count / total),
        )
        for size in sizes
        if size.count
    ]


def show_ceilings(comparisons: Sequence[CeilingComparison], console: Console) -> None:
    """Print the rates of the job next to those of each benchmark."""
    for one in comparisons:
        ceiling = one.ceiling
        of = "" if ceiling.processes is None else f", {format_counted(ceiling.processes, 'task')}"
        size = (
            ""
            if ceiling.request_size is None
            else f", requests of {format_bytes(ceiling.request_size)}"
        )
        heading(console, f"Compared with {ceiling.tool}{of}{size}")
        if not one.relations:
            console.print("  The job and the benchmark have no rate in common.")
            continue
        rows = [_relation_row(relation) for relation in one.relations]
        table(console, ("", "job, while in calls", "benchmark", "share"), rows)


def _relation_row(relation: Relation) -> tuple[str, ...]:
    bytes_moved = relation.measure == "bandwidth"
    job, best = (
        format_rate(rate) if bytes_moved else f"{format_count(rate)} calls/s"
        for rate in (relation.job, relation.ceiling)
    )
    return relation.operation, job, best, f"{relation.share:.0%}"


ROWS = 4
SHORTEST_FOLDER = 12  # characters: a shorter one is not worth a place of its own
MOST_FINDINGS = 8
EVIDENCE = 4  # numbers of each finding


def plain_console() -> Console:
    """Return a terminal where names cannot style anything."""
    return Console(highlight=False, emoji=False, markup=False)


def show_report(
    document: Document, console: Console, *, paths: Iterable[Path] = (), page: bool = False
) -> None:
    """Print the job, the verdict, the findings, when it happened, and where it went.

    Args:
        document: what to print.
        console: where.
        paths: the logs.
        page: whether a page was written that has the rest.
    """
    characteristics = document.characteristics
    show_job(console, characteristics.job, paths, hosts=characteristics.hosts)
    prose(console, brief(document.verdict.line), style="bold")
    advice = first_advice(document.verdict)
    if advice and not document.verdict.causes:
        prose(console, Text.assemble(("Do first: ", "bold"), advice))
    heading(console, "Job")
    facts(console, [(key, name(text)) for key, text in job_facts(document)])
    _findings(document, console, page=page)
    show_history(document.verdict.history, console)
    _pictures(document.timeline, console)
    _files(document, console)


def _findings(document: Document, console: Console, *, page: bool) -> None:
    if not document.findings:
        return
    left = show_causes(document.verdict, document.findings, console)
    explained = len(document.findings) - len(left)
    serious = [finding for finding in left if finding.severity in SERIOUS]
    if serious:
        heading(console, "Other findings" if explained else "Findings")
    elif not document.verdict.causes:
        heading(console, "Nothing costs noticeable time")
    for finding in serious[:MOST_FINDINGS]:
        _finding(finding, console)
    others = len(left) - min(len(serious), MOST_FINDINGS)
    if others:
        console.print()
        where = "on the page" if page else "by `ioprism insights`"
        prose(console, f"{format_counted(others, 'more finding')} {where}", style="dim", indent=2)


def _finding(finding: Finding, console: Console) -> None:
    console.print()
    prose(console, headline(finding), indent=2)
    values = ((key, value) for key, value in finding.evidence.items() if key != "estimated")
    numbers = list(values)[:EVIDENCE]
    line = ", ".join(f"{label(key)} {quantity(key, value)}" for key, value in numbers)
    if line:
        prose(console, Text(line, style="dim", overflow="fold"), indent=7)
    for advice in finding.recommendations[:2]:
        prose(console, Text(f"→ {advice.text}"), indent=7)


def _pictures(shown: Timeline, console: Console) -> None:
    if shown.source == "counters":  # spans of files do not tell when bytes moved
        return
    width = picture_width(console)
    for direction, verb in (("read", "read"), ("write", "written")):
        heights = _bytes_moved(shown, direction, width)
        if not heights.any():
            continue
        heading(console, f"Bytes {verb} over time")
        for line in bars(heights, rows=ROWS):
            console.print(Text(f"  {line}", style="cyan" if direction == "read" else "yellow"))
        console.print(time_axis(shown.start, shown.end, width))


def _bytes_moved(shown: Timeline, direction: str, width: int) -> FloatArray:
    """Bytes in each column of the picture, at the layers that talk to the system."""
    marks = shown.marks.filter(operation=direction)
    deep = marks.filter(marks["layer"].cast(str).is_in(["posix", "stdio", "daos"]))
    chosen = deep if deep.height else marks
    span = shown.end - shown.start
    if not chosen.height or span <= 0:
        return np.zeros(width)
    column = ((chosen["start"].to_numpy() - shown.start) / span * width).astype(int)
    moved = chosen["bytes"].fill_null(0).to_numpy().astype(np.float64)
    sums: FloatArray = np.bincount(np.clip(column, 0, width - 1), moved, width).astype(np.float64)
    return sums


def _files(document: Document, console: Console) -> None:
    rows = document.by_file.head(5)
    if not rows.height:
        return
    folder, names = split_paths(rows["path"].to_list())
    heading(console, "Where the time goes" + (f", in {folder}" if folder else ""))
    lines = [
        row("text text seconds bytes", name(short), file["layer"], file["seconds"],
            file["bytes_read"] + file["bytes_written"])
        for short, file in zip(names, rows.iter_rows(named=True), strict=True)
    ]  # fmt: skip
    table(console, ("file", "interface", "time", "bytes"), lines)


def split_paths(paths: Sequence[str | None]) -> tuple[str, list[str | None]]:
    """Return the folder that all files are in, and what tells them apart."""
    folders = {p.rpartition("/")[0] or "/" for p in paths if p and p.startswith("/")}
    common = os.path.commonpath(folders) if len(folders) else ""
    if len(common) < SHORTEST_FOLDER or not all(path and path[0] == "/" for path in paths):
        return "", list(paths)
    return common, [None if path is None else path[len(common) + 1 :] for path in paths]
