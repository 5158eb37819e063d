"""What `ioprism record` says besides the report: before the program starts, and after it ended."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ioprism.recording.choice import Check
from ioprism.recording.run import TracerCost
from ioprism.recording.steps import Overhead, Plan
from ioprism.recording.trials import Trial
from ioprism.reports.to_terminal import facts, heading
from ioprism.storage.recordings import RecordedRun, Recording
from ioprism.text import printable
from ioprism.units import format_counted, format_seconds

STYLES = {"ok": "green", "missing": "yellow", "no": "red"}


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
    return (
        f"about {format_seconds(cost.per_call)} per call and {format_seconds(cost.per_process)} "
        "per process (measured here)"
    )


def show_end(
    recording: Recording, run: RecordedRun, overhead: Overhead | None, console: Console
) -> None:
    """Say how the run ended, and what the tracer added to it."""
    heading(console, f"Recorded {format_seconds(run.seconds)}: {end_text(run)}")
    rows = []
    if overhead is not None:
        share = overhead.seconds / run.seconds if run.seconds > 0 else 0.0
        rows.append(
            (
                "overhead",
                f"about {format_seconds(overhead.seconds)} over all processes ({share:.0%} of the "
                f"run time): {format_counted(overhead.calls, 'call')} of "
                f"{format_counted(overhead.processes, 'process', 'processes')}",
            )
        )
    if recording.untraced_seconds is not None:
        added = run.seconds - recording.untraced_seconds
        rows.append(
            (
                "untraced",
                f"{format_seconds(recording.untraced_seconds)} without the tracer: it added "
                f"{format_seconds(max(added, 0.0))}",
            )
        )
    if run.left_running:
        rows.append(
            (
                "still running",
                f"{format_counted(run.left_running, 'process', 'processes')} that the program "
                "started; what they do from now on is not in the report",
            )
        )
    if len(recording.runs) > 1:
        times = ", ".join(format_seconds(one.seconds) for one in recording.runs)
        rows.append(("runs", times))
    facts(console, rows)


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
        console.print(Padding(Text(f"{shown}: {trial_text(trial)}"), (0, 0, 0, 2)))
        if trial.status == "gain":
            for line in trial.hint.script_lines():
                console.print(Padding(Text(line, style="green", overflow="fold"), (0, 0, 0, 6)))


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
    width = max(len(check.what) for check in checks)
    for check in checks:
        console.print(
            Text.assemble(
                (check.status.ljust(9), STYLES[check.status]),
                check.what.ljust(width + 2),
                printable(check.found),
                overflow="fold",
            )
        )
        if check.hint:
            console.print(Text(f"{'':{width + 11}}→ {check.hint}", overflow="fold"))
