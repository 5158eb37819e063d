"""A verdict, findings and the job's history, printed: what stalls the job, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.text import Text

from ioprism.diagnosis.rules.registry import Insights
from ioprism.model.result import label, quantity
from ioprism.model.trace import Job
from ioprism.model.verdict import SERIOUS, Finding, NotChecked, Severity
from ioprism.reports.to_terminal import (
    bars,
    brief,
    code,
    heading,
    name,
    prose,
    row,
    show_job,
    table,
)
from ioprism.text import printable
from ioprism.units import (
    format_amount,
    format_count,
    format_counted,
    format_rate,
    format_seconds,
)

if TYPE_CHECKING:
    from ioprism.model.verdict import CallGroup, Cause, History, MetricHistory, Verdict


CHART_WIDTH = 24  # runs that a line of characters shows: the latest, this one last


def show_history(history: History | None, console: Console) -> None:
    """Print sentences, what others reached, and one small chart per unusual number."""
    if history is None:
        return
    heading(console, "Against the history of the site")
    for line in history.lines or (_nothing_unusual(history),):
        prose(console, Text(line), indent=2)
    rows = [
        (one.operation, one.file_system, format_rate(one.rate), format_rate(one.median),
         format_rate(one.upper), f"{one.jobs:,}")
        for one in history.reached
    ]  # fmt: skip
    if rows:
        titles = ("", "file system", "this run", "median job", "best tenth", "other jobs")
        table(console, titles, rows)
    unusual = [metric for metric in history.metrics if metric.unusual]
    if unusual:
        columns = ("", "this run", "usually", "earlier runs, this one last")
        table(console, columns, [_metric(metric) for metric in unusual])


def _nothing_unusual(history: History) -> str:
    if not history.runs:
        return "The site has no earlier run of this program at similar scale."
    runs = format_counted(history.runs, "earlier run")
    return f"Nothing unusual beside {runs} of this program at similar scale."


def _metric(metric: MetricHistory) -> tuple[str, str, str, str]:
    values = [value for _, value in metric.earlier[-CHART_WIDTH:]]
    (chart,) = bars(np.array([*values, metric.value]), rows=1)
    this, usual = (format_amount(value, metric.unit) for value in (metric.value, metric.median))
    return metric.name, this, usual, chart


MAX_EPOCHS = 8  # shown
PRECISE_HOURS = 10  # core-hours: below, tenths are shown
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


def show_diagnosis(
    verdict: Verdict,
    console: Console,
    *,
    job: Job,
    paths: Iterable[Path] = (),
    hosts: int | None = None,
    top: int | None = None,
) -> None:
    """Print the job, the verdict, each cause, what may be one, the ledger, what was not checked."""
    show_job(console, job, paths, hosts=hosts)
    prose(console, brief(verdict.line), style="bold")
    basis = BASIS.get(verdict.io_stall.basis, verdict.io_stall.basis)
    prose(console, f"Stall time = {basis}.{_core_hours(verdict)}", style="dim")
    for number, cause in enumerate(verdict.causes[:top], start=1):
        _show_cause(cause, number, console)
    _show_possible(verdict, console)
    show_history(verdict.history, console)
    _show_stages(verdict, console)
    _show_ledger(verdict, console)
    for one in verdict.opportunities:
        prose(
            console,
            f"Up to {format_seconds(one.seconds)} of healthy I/O could overlap with computation: "
            "asynchronous writes, or staging on the node.",
        )
    _show_unchecked(verdict.not_checked, console, title="Not checked")


def _core_hours(verdict: Verdict) -> str:
    hours = verdict.io_stall.core_hours
    return f" It costs {_hours(hours)}." if hours and hours >= 1 else ""


def _hours(hours: float) -> str:
    shown = format_count(hours) if hours >= PRECISE_HOURS else f"{hours:.1f}"
    return f"{shown} core-hours"


def _show_possible(verdict: Verdict, console: Console) -> None:
    if not verdict.possible:
        return
    heading(console, "Possible causes: the log cannot tell")
    for one in verdict.possible:
        line = f"{printable(one.title)}: at most {format_seconds(one.upper)}; {one.decide.text}"
        prose(console, Text.assemble(line, (f"  [{one.code}]", "dim")), indent=2)
        if one.decide.command:
            code(console, one.decide.command, indent=6)


def _show_stages(verdict: Verdict, console: Console) -> None:
    """What the application recorded, and how much of it does not overlap with computing."""
    if not verdict.stages:
        return
    heading(console, "Stages of the program")
    rows = [
        row("text seconds seconds text text", stage.name, stage.seconds, stage.unoverlapped,
            f"{stage.share:.0%}", " ".join(f"{e.share:.0%}" for e in stage.epochs[:MAX_EPOCHS]))
        for stage in verdict.stages
    ]  # fmt: skip
    columns = ("stage", "time", "not overlapped", "of the run", "of each epoch")
    table(console, columns, rows)


def span(cause: Cause) -> str:
    """Return the interval of what a cause would save."""
    return f"{format_seconds(cause.saving.low)} to {format_seconds(cause.saving.high)}"


def _show_cause(cause: Cause, number: int, console: Console) -> None:
    heading(console, f"{number}. {brief(cause.title)}")
    saving = f"saves {format_seconds(cause.saving.seconds)} ({span(cause)})"
    hours = cause.core_hours
    waste = f", {_hours(hours)}" if hours and hours >= 1 else ""
    gain = f"{saving}, {cause.saving.share:.0%} of the run{waste}"
    line = f"{gain if cause.saving.seconds else 'nothing to gain in I/O'}; "
    line += f"confidence {cause.confidence:.0%}; {cause.code}"
    prose(console, Text(line), indent=2)
    if brief(cause.title) != printable(cause.title):
        for path in (cause.culprit[key] for key in ("file", "directory") if key in cause.culprit):
            prose(console, name(str(path), style="dim"), indent=2)
    names = cause.facts.get("groups", ("affected calls", "peers"))
    groups = [(names[0], cause.contrast.slow)]
    if cause.contrast.peers is not None:
        groups.append((names[1], cause.contrast.peers))
    table(console, ("", "calls", "bytes", "median", "rate"), [_row(*group) for group in groups])
    if cause.symptoms:
        prose(console, f"symptoms: {', '.join(cause.symptoms)}", style="dim", indent=2)
    for item in cause.advice:
        prose(console, Text(f"→ {printable(item.text)}"), indent=2)
        code(console, item.snippet or "", indent=6)


def _row(name: str, group: CallGroup) -> tuple[str | Text, ...]:
    numbers = (group.count, group.bytes, group.median_seconds, group.rate)
    cells = row("count bytes seconds rate", *numbers)
    return (name, *(cell or "–" for cell in cells))


def _show_ledger(verdict: Verdict, console: Console) -> None:
    if not verdict.ledger or not verdict.io_stall.seconds:
        return
    heading(console, "Where the stall time goes")
    rows = [(LEDGER.get(one.what, one.what), format_seconds(one.seconds)) for one in verdict.ledger]
    table(console, ("", "time"), rows)


STYLES = {
    Severity.HIGH: "bold red",
    Severity.WARN: "yellow",
    Severity.INFO: "cyan",
    Severity.OK: "green",
}
MOST_ADVICE = 2  # of each cause; `diagnose` has all


def headline(finding: Finding) -> Text:
    """Return a finding in a line: its level, what was seen, and the time that it costs.

    Symptoms have no time of their own: their cause says what it costs them all together.
    """
    stake = finding.seconds_at_stake
    about = "about " if finding.evidence.get("estimated") else ""
    costs = stake and finding.severity in SERIOUS and finding.cause is None
    time = f"  ({about}{format_seconds(stake)} at stake)" if costs else ""
    return Text.assemble(
        (finding.severity.value.upper().ljust(5), STYLES[finding.severity]),
        printable(finding.title),
        (time, "bold"),
        (f"  [{finding.code}]", "dim"),
        overflow="fold",
    )


def show_causes(
    verdict: Verdict | None,
    findings: Iterable[Finding],
    console: Console,
    *,
    details: Callable[[Finding], None] | None = None,
) -> list[Finding]:
    """Print each cause, what it explains and what to do; return the findings that are left.

    Args:
        verdict: the verdict, if there is one.
        findings: all of them; each names its cause.
        console: where to print.
        details: prints more of a finding that is folded below its cause.
    """
    left = list(findings)
    for number, cause in enumerate(verdict.causes if verdict is not None else (), start=1):
        symptoms = [finding for finding in left if finding.cause == cause.code]
        left = [finding for finding in left if finding.cause != cause.code]
        _show_briefly(cause, number, symptoms, console, details)
    return left


def _show_briefly(
    cause: Cause,
    number: int,
    symptoms: list[Finding],
    console: Console,
    details: Callable[[Finding], None] | None,
) -> None:
    heading(console, f"{number}. {brief(cause.title)}")
    saving = f"saves {format_seconds(cause.saving.seconds)} ({span(cause)})"
    line = f"{saving}, {cause.saving.share:.0%} of the run"
    prose(console, Text.assemble(line, (f"  [{cause.code}]", "dim")), indent=3)
    for finding in symptoms:
        prose(console, headline(finding), indent=5)
        if details is not None:
            details(finding)
    for advice in cause.advice[:MOST_ADVICE]:
        text = Text.assemble(("→ ", "bold"), printable(advice.text))
        prose(console, text, indent=3)


DETAILS = 3  # worst files or ranks of each finding; all with --all
MOST_UNCHECKED = 3  # rules of each kind of missing data; all with --all


def show_insights(
    insights: Insights, job: Job, console: Console, *, everything: bool, paths: Sequence[Path] = ()
) -> None:
    """Print the verdict, the causes with their findings, then everything else."""
    show_job(console, job, paths)
    prose(console, brief(insights.verdict.line), style="bold")

    def details(finding: Finding) -> None:
        _show_details(finding, console, everything=everything, advice=everything)

    left = show_causes(insights.verdict, insights.findings, console, details=details)
    show_history(insights.verdict.history, console)
    serious = [f for f in left if f.severity in SERIOUS]
    others = [f for f in left if f.severity not in SERIOUS]
    explained = len(left) < len(insights.findings)
    _show_serious(serious, console, explained=explained, everything=everything)
    if others:
        heading(console, "Also worth knowing")
        for finding in others:
            prose(console, headline(finding), indent=2)
            if everything:
                details(finding)
    title = f"Not checked: {format_counted(len(insights.not_checked), 'rule')}"
    most = None if everything else MOST_UNCHECKED
    _show_unchecked(insights.not_checked, console, title=title, most=most)


def _show_serious(
    serious: Sequence[Finding], console: Console, *, explained: bool, everything: bool
) -> None:
    if not serious and explained:
        return
    title = "Other findings" if explained else "Findings"
    heading(console, title if serious else "No findings")
    for finding in serious:
        console.print()
        prose(console, headline(finding), indent=2)
        _show_details(finding, console, everything=everything, advice=True)


def _show_details(finding: Finding, console: Console, *, everything: bool, advice: bool) -> None:
    shown = finding.details if everything else finding.details[:DETAILS]
    for details_of in shown:
        prose(console, detail(details_of), indent=10)
    left = len(finding.details) - len(shown)
    if left:
        prose(console, Text(f"… and {left} more (--all shows them)", "dim"), indent=10)
    for one in finding.recommendations if advice else ():
        prose(console, Text.assemble(("→ ", "bold"), one.text), indent=7)
        if one.snippet and everything:
            code(console, one.snippet, style="dim", indent=11)


def detail(row: Mapping[str, object]) -> Text:
    """Return what a finding says of one file, rank or phase."""
    parts = [
        f"{label(key)} {quantity(key, value)}" for key, value in row.items() if value is not None
    ]
    return Text(", ".join(parts), style="dim", overflow="fold")


def _show_unchecked(
    unchecked: Sequence[NotChecked], console: Console, *, title: str, most: int | None = None
) -> None:
    """Print what the log would have to hold for each of the checks, at most so many of them."""
    if unchecked:
        heading(console, title)
    for needs in dict.fromkeys(one.needs for one in unchecked):
        codes = [one.code for one in unchecked if one.needs == needs]
        shown = codes[:most]
        more = f" and {len(codes) - len(shown)} more" if len(codes) > len(shown) else ""
        prose(console, Text(f"{', '.join(shown)}{more}: needs {needs}"), indent=2)


def show_jobs(
    jobs: Iterable[tuple[Sequence[Path], Job, Insights]], console: Console, *, everything: bool
) -> None:
    """Print a table of jobs and codes: which findings come up where, and how seriously."""
    listed = list(jobs)
    findings = [finding for _, _, insights in listed for finding in insights.findings]
    tally = Counter((finding.code, finding.severity) for finding in findings)
    codes = list(dict.fromkeys(finding.code for finding in findings))
    codes.sort(key=lambda code: [-tally[code, level] for level in Severity])
    heading(console, format_counted(len(listed), "job"))
    columns = ("code", *(level.value for level in Severity))
    rows = [
        (code, *(format_count(n) if (n := tally[code, level]) else "" for level in Severity))
        for code in codes
    ]
    table(console, columns, rows)
    heading(console, "Job by job")
    columns = ("log", "ranks", "ran for", "I/O stall", "main cause", "saves", "high")
    table(console, columns, _job_rows(listed, everything))


def _job_rows(
    jobs: Sequence[tuple[Sequence[Path], Job, Insights]], everything: bool
) -> Iterable[Sequence[str | Text]]:
    """Jobs with a cause or a grave finding; all of them where everything is asked for."""
    for paths, job, insights in jobs:
        high = [f.code for f in insights.findings if f.severity is Severity.HIGH]
        verdict = insights.verdict
        causes = verdict.causes
        if not (high or causes or everything):
            continue
        yield (
            name(paths[0].name if paths else None),
            format_count(job.ranks),
            format_seconds(job.runtime),
            format_seconds(verdict.io_stall.seconds),
            Text(causes[0].code if causes else ""),
            format_seconds(causes[0].saving.seconds) if causes else "",
            Text(" ".join(high)),
        )
