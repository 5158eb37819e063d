"""Recorded runs, and what differs between two of them, printed."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ioprism.comparison.changes import CauseChange, Comparison, Kept, Metric, Promise
from ioprism.comparison.repetitions import Difference, runs_needed
from ioprism.model.result import label, quantity
from ioprism.model.verdict import Finding
from ioprism.recording.choice import Check
from ioprism.recording.steps import Overhead, Plan, TracerCost
from ioprism.recording.trials import Trial
from ioprism.reports.to_terminal import brief, code, facts, heading, prose, table
from ioprism.reports.to_terminal.diagnose import STYLES
from ioprism.storage.recordings import RecordedRun, Recording
from ioprism.text import printable
from ioprism.units import format_counted, format_seconds

LARGE_OVERHEAD = 0.2  # of the run time: times of the run are then not those of the program
SMALL_CHANGE = 0.05  # of the run time: what the hint on more runs is about
MANY_TIMES = 1000  # a ratio beyond says no more than that there was next to nothing before


def telling(comparison: Comparison) -> list[Metric]:
    """The numbers that at least one of the runs has."""
    return [metric for metric in comparison.metrics if metric.before or metric.after]


def metric_row(metric: Metric) -> tuple[str, str, str, str]:
    """Return name, before, after and change in words."""
    return (
        label(metric.name),
        quantity(metric.name, metric.before),
        quantity(metric.name, metric.after),
        change(metric),
    )


def change(metric: Metric) -> str:
    """Return `2.5 times as much`, `−40%`, `1/4` or `same`."""
    ratio = metric.ratio
    if ratio is None:
        return ""
    if abs(ratio - 1) < 0.005:
        return "same"
    if metric.beyond_noise is False:
        return f"{ratio - 1:+.0%}, within noise".replace("-", "−")
    if ratio >= MANY_TIMES:
        return f"over {MANY_TIMES:,} times as much"
    if ratio >= 2:
        return f"{_two_digits(ratio)} times as much"
    if 0 < ratio <= 1 / MANY_TIMES:
        return f"less than 1/{MANY_TIMES:,}"
    if 0 < ratio <= 0.5:
        return f"1/{_two_digits(1 / ratio)}"
    return f"{ratio - 1:+.0%}".replace("-", "−")


def _two_digits(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 100 else f"{ratio:.0f}"


def verdict(comparison: Comparison) -> str:
    """Say in a line what the change did to the run time."""
    time = comparison.runtime
    if time is None:
        return "The run times cannot be compared: a trace does not have one."
    times = f"{format_seconds(time.before)} before, {format_seconds(time.after)} after"
    if comparison.verdict == "within noise":
        return f"No change of the run time beyond noise: {times}{_interval(time)}."
    if comparison.verdict == "not repeated":
        return f"Run time {_direction(time)}: {times}. One run on each side: noise is not known."
    return f"{comparison.verdict.capitalize()} by {_share(time)}: {times}{_interval(time)}."


def details(comparison: Comparison) -> list[str]:
    """Return the sentences below the verdict: stall time, the promise, repetitions."""
    lines = []
    if comparison.stall is not None:
        stall = comparison.stall
        lines.append(
            f"I/O stall time: {format_seconds(stall.before)} before, "
            f"{format_seconds(stall.after)} after{_interval(stall)}."
        )
    if comparison.promise is not None and comparison.runtime is not None:
        lines.append(_kept_promise(comparison.promise, comparison.runtime))
    time = comparison.runtime
    if time is not None and time.noise is not None:
        lines.append(_repetitions(comparison, time.noise))
    return lines


def _kept_promise(promise: Promise, time: Difference) -> str:
    causes = ", ".join(promise.codes)
    said = (
        f"{format_seconds(promise.seconds)} ({format_seconds(promise.low)} to "
        f"{format_seconds(promise.high)})"
    )
    if not promise.removed:
        return f"The main cause before ({causes}, potential saving {said}) was not removed."
    saved = format_seconds(abs(time.saved))
    delivered = f"{saved} {'shorter' if time.saved >= 0 else 'longer'}"
    return f"Removed: {causes}. Potential saving {said}; the run is {delivered}{_interval(time)}."


def _repetitions(comparison: Comparison, noise: float) -> str:
    before, after = comparison.runs
    needed = runs_needed(noise, SMALL_CHANGE)
    hint = (
        f"a change of {SMALL_CHANGE:.0%} needs {needed} runs on each side to be found"
        if needed is not None
        else f"a change of {SMALL_CHANGE:.0%} cannot be found over this noise"
    )
    return (
        f"{format_counted(before, 'run')} before and {after} after; run times vary by "
        f"{noise:.1%}: {hint}."
    )


def _interval(difference: Difference) -> str:
    if difference.low is None or difference.high is None:
        return ""
    ends = (format_seconds(number) for number in (difference.low, difference.high))
    low, high = (end.replace("-", "−") for end in ends)
    return f" (saved {low} to {high}, 95 % interval)"


def _direction(difference: Difference) -> str:
    change = difference.change
    if change is None or abs(change) < 0.005:
        return "unchanged"
    if change >= 1:
        return f"{_two_digits(1 + change)} times as long"
    return f"{'shorter' if change < 0 else 'longer'} by {_share(difference)}"


def _share(difference: Difference) -> str:
    change = abs(difference.change or 0.0)
    return f"{change:.1%}" if change < 0.1 else f"{change:.0%}"


def show_comparison(comparison: Comparison, console: Console) -> None:
    """Print the verdict, the numbers side by side, and what became of the findings."""
    heading(console, verdict(comparison))
    for warning in comparison.warnings:
        prose(console, Text.assemble(("Not comparable: ", "yellow"), printable(warning)), indent=2)
    for line in details(comparison):
        prose(console, Text(line), indent=2)
    _causes(console, comparison.causes)
    heading(console, "Numbers")
    table(console, ("", "before", "after", "change"), [_row(m) for m in telling(comparison)])
    for title, findings in (
        ("Findings that are gone", [(one, _stake(one)) for one in comparison.gone]),
        ("New findings", [(one, _stake(one)) for one in comparison.new]),
        ("Findings that stay", [(pair.after, _change_of(pair)) for pair in comparison.kept]),
    ):
        if findings:
            heading(console, title)
        for finding, time in findings:
            text = Text.assemble(
                (finding.severity.value.upper().ljust(5), STYLES[finding.severity]),
                printable(finding.title),
                (time, "bold"),
                overflow="fold",
            )
            prose(console, text, indent=2)


def _stake(finding: Finding) -> str:
    stake = finding.seconds_at_stake
    return f"  {format_seconds(stake)} at stake" if stake else ""


def _change_of(pair: Kept) -> str:
    before, after = pair.before.seconds_at_stake, pair.after.seconds_at_stake
    if before is None or after is None:
        return ""
    return f"  {format_seconds(before)} → {format_seconds(after)}"


def _causes(console: Console, causes: Sequence[CauseChange]) -> None:
    if not causes:
        return
    heading(console, "Causes and their potential saving")
    rows = [
        (
            brief(cause.title or cause.code),
            format_seconds(cause.before),
            Text(format_seconds(cause.after), style="green" if cause.removed else ""),
        )
        for cause in causes
    ]
    table(console, ("", "before", "after"), rows)


def _row(metric: Metric) -> tuple[str | Text, ...]:
    name, before, after, change = metric_row(metric)
    style = {True: "green", False: "red", None: ""}[metric.better]
    return name, before, after, Text(change, style=style)


CHECK_STYLES = {"ok": "green", "missing": "yellow", "no": "red"}


def show_plan(plan: Plan, console: Console) -> None:
    """Say which tracer records and why, what it costs, and what it cannot see."""
    tracer = plan.choice.tracer
    heading(console, f"Recording {plan.command.program.name} with {tracer.version}")
    facts(
        console,
        [
            ("why", plan.choice.reason),
            ("cost", cost_text(plan.cost)),
            ("cannot see", "; ".join(plan.blind_spots)),
            ("traces", printable(str(plan.folder))),
        ],
    )
    console.print()


def cost_text(cost: TracerCost | None) -> str:
    """Say what a tracer adds, as measured here."""
    if cost is None:
        return "not measured: the probe did not run"
    call, process = (
        f"about {format_seconds(seconds)}" if seconds > 0 else "nothing measurable"
        for seconds in (cost.per_call, cost.per_process)
    )
    return f"{call} per call, {process} per process (measured here)"


def show_end(
    recording: Recording, run: RecordedRun, overhead: Overhead | None, console: Console
) -> None:
    """Say how the run ended, and what the tracer added to it."""
    heading(console, f"Recorded {format_seconds(run.seconds)}: {end_text(run)}")
    facts(console, _end_facts(recording, run, overhead))


def _end_facts(
    recording: Recording, run: RecordedRun, overhead: Overhead | None
) -> Iterator[tuple[str, str]]:
    if overhead is not None:
        share = overhead.seconds / run.seconds if run.seconds > 0 else 0.0
        processes = format_counted(overhead.processes, "process", "processes")
        yield (
            "overhead",
            f"about {format_seconds(overhead.seconds)} over all processes ({share:.0%} of the "
            f"run time): {format_counted(overhead.calls, 'call')} of {processes}"
            + ("; run time and times of calls include it" if share >= LARGE_OVERHEAD else ""),
        )
    if recording.untraced_seconds is not None:
        untraced = format_seconds(recording.untraced_seconds)
        added = format_seconds(max(run.seconds - recording.untraced_seconds, 0.0))
        yield "untraced", f"{untraced} without the tracer: it added {added}"
    if run.left_running:
        left = format_counted(run.left_running, "process", "processes")
        yield (
            "still running",
            f"{left} that the program started; what they do from now on is not in the report",
        )
    if len(recording.runs) > 1:
        yield "runs", ", ".join(format_seconds(one.seconds) for one in recording.runs)


def end_text(run: RecordedRun) -> str:
    """Say how a run ended."""
    if run.signal is not None:
        try:
            name = signal.Signals(run.signal).name
        except ValueError:
            name = f"signal {run.signal}"
        return f"ended by {name}; the report is about what was recorded until then"
    return "exit code 0" if run.exit_code == 0 else f"exit code {run.exit_code}"


def show_trials(trials: Sequence[Trial], console: Console) -> None:
    """Say what each change brought, and the lines for the job script of those that helped."""
    heading(console, "Changes tried from outside")
    if not trials:
        console.print("  None of the causes can be removed from outside the program.")
        return
    for trial in trials:
        settings = {**trial.hint.hints, **trial.hint.variables}
        named = ", ".join(f"{key}={value}" for key, value in settings.items())
        shown = f"{trial.hint.name} ({named})" if named else trial.hint.name
        prose(console, Text(f"{shown}: {trial_text(trial)}"), indent=2)
        if trial.status == "gain":
            for line in trial.hint.script_lines():
                code(console, line, style="green", indent=6)


def trial_text(trial: Trial) -> str:
    """Say what came of a change."""
    outcome = trial.run_time
    if trial.status == "ignored":
        return "ignored: the trace shows the same requests as without it"
    if trial.status == "failed" or outcome is None or outcome.low is None or outcome.high is None:
        return "the program failed with it" if trial.status == "failed" else "not run to the end"
    times = f"{format_seconds(outcome.before)} without, {format_seconds(outcome.after)} with it"
    runs = format_counted(len(trial.seconds), "run")
    if trial.status == "no gain":
        return f"no gain: {times} ({runs} each)"
    if trial.status == "undecided":
        return f"not proven over the noise of {outcome.noise or 0:.0%}: {times} ({runs} each)"
    low, high = (format_seconds(max(number, 0.0)) for number in (outcome.low, outcome.high))
    return f"saves {format_seconds(outcome.saved)} ({low} to {high}): {times} ({runs} each)"


def show_checks(checks: tuple[Check, ...], console: Console) -> None:
    """List what can be used here, and how to get the rest."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for check in checks:
        hint = f"\n→ {check.hint}" if check.hint else ""
        found = Text(f"{printable(check.found)}{hint}", overflow="fold")
        table.add_row(Text(check.status, CHECK_STYLES[check.status]), check.what, found)
    console.print(table)
