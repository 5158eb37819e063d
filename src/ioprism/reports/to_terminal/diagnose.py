"""What `ioprism diagnose` shows a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ioprism.reports.to_terminal import heading, table
from ioprism.text import printable
from ioprism.units import format_bytes, format_count, format_rate, format_seconds

if TYPE_CHECKING:  # they load table libraries, which the text of small answers does without
    from ioprism.analyses.diagnosis.result import CallGroup, Cause, Diagnosis

LITTLE = 0.01  # of the run time
MOSTLY = 0.5  # of the held-up time
MOST_EPOCHS = 8  # shown
HOW = {
    "phases": "as the time during which any rank is in a call, in phases that ranks leave together",
    "ranks": "on the rank with most I/O: nothing shows that ranks wait for each other",
    "alone": "as the time that the only rank spends in calls",
    "counters": "from the counters of the slowest rank",
    "heatmap": "from the counters of the slowest rank and the phases of the heat map",
    "uncovered": "as the I/O that does not overlap with computing",
    "nothing": "not at all: no I/O is recorded",
}
LEDGER = {
    "transfer": "transfer at the rate the trace itself reaches",
    "library": "inside MPI-IO and libraries, with nothing at storage",
    "programs": "loading programs and their libraries",
    "first-reads": "data read for the first time, slower than the same again",
    "unexplained": "unexplained",
    "untraced": "further calls, known from counters only",
}


def show(diagnosis: Diagnosis, console: Console, *, top: int | None = None) -> None:
    """Print the answer in one line, then each cause, the ledger, and what was not checked."""
    console.print(Text(answer(diagnosis), style="bold"))
    console.print(
        Text(f"Measured {HOW.get(diagnosis.held_up.how, diagnosis.held_up.how)}.", style="dim")
    )
    for number, cause in enumerate(diagnosis.causes[:top], start=1):
        _show_cause(cause, number, console)
    _show_stages(diagnosis, console)
    _show_ledger(diagnosis, console)
    for chance in diagnosis.opportunities:
        console.print(
            f"Up to {format_seconds(chance.seconds)} of I/O without problems could be hidden "
            "behind computing: asynchronous writes, or staging on the node."
        )
    if diagnosis.not_checked:
        heading(console, "Not checked")
        for needs in dict.fromkeys(missing.needs for missing in diagnosis.not_checked):
            codes = [missing.code for missing in diagnosis.not_checked if missing.needs == needs]
            line = f"{', '.join(codes)}: needs {needs}"
            console.print(Padding(Text(line), (0, 0, 0, 2)))


def _show_stages(diagnosis: Diagnosis, console: Console) -> None:
    """What the application says it did, and how much of it no computing covers."""
    if not diagnosis.stages:
        return
    heading(console, "What the program did")
    rows = [
        (
            stage.name,
            format_seconds(stage.seconds),
            format_seconds(stage.unoverlapped),
            f"{stage.share:.0%}",
            " ".join(f"{epoch.share:.0%}" for epoch in stage.epochs[:MOST_EPOCHS]),
        )
        for stage in diagnosis.stages
    ]
    columns = ("stage", "time", "without computing", "of the run", "of each epoch")
    table(console, columns, rows)


def answer(diagnosis: Diagnosis, *, spent: str = "") -> str:
    """Return the diagnosis in one or two sentences.

    Args:
        diagnosis: of the job.
        spent: what most of the time in calls is spent on; said where no cause is found.
    """
    first = held_up_line(diagnosis)
    if not diagnosis.causes or not diagnosis.causes[0].saving.seconds:
        return f"{first} {_without_cause(diagnosis, spent)}"
    cause = diagnosis.causes[0]
    subject = printable(str(cause.facts.get("subject", cause.code)))
    return f"{first} {subject} causes {format_seconds(cause.saving.seconds)} of it ({span(cause)})."


def _without_cause(diagnosis: Diagnosis, spent: str) -> str:
    """Say that there is nothing to change, and where the time is spent if not at storage."""
    if diagnosis.held_up.share < LITTLE:
        return "Nothing is worth changing."
    parts = {line.what: line.seconds for line in diagnosis.ledger}
    if is_mostly(diagnosis, "programs"):
        return (
            f"For {format_seconds(parts['programs'])} of it programs load their files: "
            "modules of Python, shared libraries, settings."
        )
    if is_mostly(diagnosis, "first-reads"):
        return (
            f"For {format_seconds(parts['first-reads'])} of it data is read for the first time, "
            "from storage: reading the same again is far faster."
        )
    if is_mostly(diagnosis, "untraced"):
        return (
            f"For {format_seconds(parts['untraced'])} of it ranks are in opens, closes and other "
            "calls that only counters show; no cause was found."
        )
    inside = parts.get("library", 0.0)
    if not is_mostly(diagnosis, "library"):
        return f"No cause was found; {spent}." if spent else "No cause was found."
    return (
        f"For {format_seconds(inside)} of it ranks are inside MPI-IO or a library and nothing "
        "reaches storage: they copy or exchange data, or wait for each other or for locks."
    )


def is_mostly(diagnosis: Diagnosis, what: str) -> bool:
    """Whether one line of the ledger, which is no cause, is most of the held-up time."""
    seconds = sum(line.seconds for line in diagnosis.ledger if line.what == what)
    return seconds >= MOSTLY * diagnosis.held_up.seconds > 0


def held_up_line(diagnosis: Diagnosis) -> str:
    """Return how long I/O holds the job up."""
    of_run = f" of {format_seconds(diagnosis.runtime)}" if diagnosis.runtime > 0 else ""
    return f"I/O holds the job up for {format_seconds(diagnosis.held_up.seconds)}{of_run}."


def span(cause: Cause) -> str:
    """Return the interval of what a cause would save."""
    return f"{format_seconds(cause.saving.low)} to {format_seconds(cause.saving.high)}"


def _show_cause(cause: Cause, number: int, console: Console) -> None:
    heading(console, f"{number}. {printable(cause.title)}")
    saving = f"saves {format_seconds(cause.saving.seconds)} ({span(cause)})"
    gain = f"{saving}, {cause.saving.share:.0%} of the run"
    line = f"{gain if cause.saving.seconds else 'nothing to gain in I/O'}; "
    line += f"confidence {cause.confidence:.0%}; {cause.code}"
    console.print(Padding(Text(line), (0, 0, 0, 2)))
    names = cause.facts.get("groups", ("calls concerned", "peers"))
    groups = [(names[0], cause.contrast.slow)]
    if cause.contrast.peers is not None:
        groups.append((names[1], cause.contrast.peers))
    table(console, ("", "calls", "bytes", "median", "rate"), [_row(*group) for group in groups])
    if cause.symptoms:
        console.print(Padding(Text(f"explains: {', '.join(cause.symptoms)}", style="dim"),
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


def _show_ledger(diagnosis: Diagnosis, console: Console) -> None:
    if not diagnosis.ledger or not diagnosis.held_up.seconds:
        return
    heading(console, "Where the held-up time goes")
    table(
        console,
        ("", "time"),
        [
            (LEDGER.get(line.what, line.what), format_seconds(line.seconds))
            for line in diagnosis.ledger
        ],
    )
