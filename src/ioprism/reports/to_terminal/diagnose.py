"""What `ioprism diagnose` shows a person."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ioprism.reports.to_terminal import heading, table
from ioprism.reports.to_terminal.history import show_history
from ioprism.text import printable
from ioprism.units import format_bytes, format_count, format_rate, format_seconds

if TYPE_CHECKING:  # they load table libraries, which the text of small answers does without
    from ioprism.model.trace import Job
    from ioprism.model.verdict import CallGroup, Cause, Verdict

MAX_EPOCHS = 8  # shown
BASIS = {
    "phases": "wall time with at least one rank in I/O, per synchronised phase",
    "ranks": "I/O time of the busiest rank: ranks do not wait for each other",
    "alone": "I/O time of the only rank",
    "counters": "I/O time of the slowest rank, from counters",
    "heatmap": "I/O time of the slowest rank, from counters and the heat map",
    "exposed": "I/O that does not overlap with computation",
    "nothing": "no I/O was recorded",
}
LEDGER = {
    "transfer": "transfer at the rate the trace itself reaches",
    "library": "inside MPI-IO and libraries, nothing at storage",
    "programs": "loading programs and their libraries",
    "first-reads": "cold-cache reads, slower than reading the same bytes again",
    "unexplained": "unexplained",
    "untraced": "further calls, known from counters only",
}


def show(
    verdict: Verdict,
    console: Console,
    *,
    job: Job,
    paths: Iterable[Path] = (),
    top: int | None = None,
) -> None:
    """Print the job, the verdict, each cause, what may be one, the ledger, what was not checked."""
    console.print(Text(job_line(job, paths), style="dim"))
    console.print(Text(verdict.line, style="bold"))
    basis = BASIS.get(verdict.io_stall.basis, verdict.io_stall.basis)
    console.print(Text(f"Stall time = {basis}.{_core_hours(verdict)}", style="dim"))
    for number, cause in enumerate(verdict.causes[:top], start=1):
        _show_cause(cause, number, console)
    _show_possible(verdict, console)
    show_history(verdict.history, console)
    _show_stages(verdict, console)
    _show_ledger(verdict, console)
    for one in verdict.opportunities:
        console.print(
            f"Up to {format_seconds(one.seconds)} of healthy I/O could overlap with computation: "
            "asynchronous writes, or staging on the node."
        )
    if verdict.not_checked:
        heading(console, "Not checked")
        for needs in dict.fromkeys(missing.needs for missing in verdict.not_checked):
            codes = [missing.code for missing in verdict.not_checked if missing.needs == needs]
            line = f"{', '.join(codes)}: needs {needs}"
            console.print(Padding(Text(line), (0, 0, 0, 2)))


def job_line(job: Job, paths: Iterable[Path] = ()) -> str:
    """Return what ran, with how many ranks and for how long."""
    words = (job.executable or "").split()
    facts = [
        ", ".join(printable(path.name) for path in paths),
        printable(words[0].rpartition("/")[2]) if words else "",
        f"{format_count(job.ranks)} rank{'s' if job.ranks != 1 else ''}" if job.ranks else "",
        format_seconds(job.runtime) if job.runtime else "",
    ]
    return " · ".join(fact for fact in facts if fact)


def _core_hours(verdict: Verdict) -> str:
    hours = verdict.io_stall.core_hours
    return f" It costs {format_count(hours)} core-hours." if hours and hours >= 1 else ""


def _show_possible(verdict: Verdict, console: Console) -> None:
    if not verdict.possible:
        return
    heading(console, "Possible causes: the log cannot tell")
    for one in verdict.possible:
        line = f"{printable(one.title)}: at most {format_seconds(one.upper)}; {one.decide.text}"
        console.print(Padding(Text.assemble(line, (f"  [{one.code}]", "dim")), (0, 0, 0, 2)))
        if one.decide.command:
            console.print(Padding(Text(one.decide.command, style="cyan"), (0, 0, 0, 6)))


def _show_stages(verdict: Verdict, console: Console) -> None:
    """What the application recorded, and how much of it does not overlap with computing."""
    if not verdict.stages:
        return
    heading(console, "Stages of the program")
    rows = [
        (
            stage.name,
            format_seconds(stage.seconds),
            format_seconds(stage.unoverlapped),
            f"{stage.share:.0%}",
            " ".join(f"{epoch.share:.0%}" for epoch in stage.epochs[:MAX_EPOCHS]),
        )
        for stage in verdict.stages
    ]
    columns = ("stage", "time", "not overlapped", "of the run", "of each epoch")
    table(console, columns, rows)


def span(cause: Cause) -> str:
    """Return the interval of what a cause would save."""
    return f"{format_seconds(cause.saving.low)} to {format_seconds(cause.saving.high)}"


def _show_cause(cause: Cause, number: int, console: Console) -> None:
    heading(console, f"{number}. {printable(cause.title)}")
    saving = f"saves {format_seconds(cause.saving.seconds)} ({span(cause)})"
    hours = cause.core_hours
    waste = f", {format_count(hours)} core-hours" if hours and hours >= 1 else ""
    gain = f"{saving}, {cause.saving.share:.0%} of the run{waste}"
    line = f"{gain if cause.saving.seconds else 'nothing to gain in I/O'}; "
    line += f"confidence {cause.confidence:.0%}; {cause.code}"
    console.print(Padding(Text(line), (0, 0, 0, 2)))
    names = cause.facts.get("groups", ("affected calls", "peers"))
    groups = [(names[0], cause.contrast.slow)]
    if cause.contrast.peers is not None:
        groups.append((names[1], cause.contrast.peers))
    table(console, ("", "calls", "bytes", "median", "rate"), [_row(*group) for group in groups])
    if cause.symptoms:
        console.print(Padding(Text(f"symptoms: {', '.join(cause.symptoms)}", style="dim"),
                              (0, 0, 0, 2)))  # fmt: skip
    for item in cause.advice:
        console.print(Padding(Text(f"→ {printable(item.text)}"), (0, 0, 0, 2)))
        for line in (item.snippet or "").splitlines():
            console.print(Padding(Text(printable(line), style="cyan"), (0, 0, 0, 6)))


def _row(name: str, group: CallGroup) -> tuple[str, ...]:
    return (
        name,
        format_count(group.count),
        "–" if group.bytes is None else format_bytes(group.bytes),
        "–" if group.median_seconds is None else format_seconds(group.median_seconds),
        "–" if group.rate is None else format_rate(group.rate),
    )


def _show_ledger(verdict: Verdict, console: Console) -> None:
    if not verdict.ledger or not verdict.io_stall.seconds:
        return
    heading(console, "Where the stall time goes")
    table(
        console,
        ("", "time"),
        [
            (LEDGER.get(line.what, line.what), format_seconds(line.seconds))
            for line in verdict.ledger
        ],
    )
