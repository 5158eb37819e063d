"""What `ioprism schedule` shows a person."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ioprism.reports.to_terminal import facts, heading, name, table
from ioprism.scheduling.result import BASELINE, Interval, PolicyOutcome, Schedule
from ioprism.units import format_counted, format_rate, format_seconds

MOST_JOBS = 12


def show(schedule: Schedule, console: Console) -> None:
    """Print the verdict, one row per policy, and what jobs experience."""
    heading(console, schedule.summary())
    seeds = format_counted(schedule.seeds, "seed")
    facts(
        console,
        [
            ("jobs", f"{len(schedule.outcomes[0].jobs)} from {name(schedule.source)}"),
            ("file system", f"{format_rate(schedule.bandwidth)}, load {schedule.load:.0%}"),
            ("simulated", f"{format_seconds(schedule.horizon)}, {seeds}"),
        ],
    )  # fmt: skip
    heading(console, "Policies, mean and 95 % interval over seeds")
    rows = [
        (
            one.policy,
            one.phases if one.phases != "none" else "",
            percent(one.utilisation),
            _change(schedule, one, "utilisation"),
            factor(one.io_slowdown),
            _change(schedule, one, "io_slowdown"),
            factor(one.max_stretch),
        )
        for one in schedule.outcomes
    ]
    columns = ("policy", "periods", "utilisation", "gain", "I/O slowdown", "less", "max stretch")
    table(console, columns, rows)
    heading(console, "Stretch of each job")
    jobs: list[tuple[str | Text, ...]] = [
        (name(same[0].name), *(f"{one.stretch:.2f}" for one in same))
        for same in zip(*(one.jobs for one in schedule.outcomes), strict=True)
    ]
    titles = tuple(title(one) for one in schedule.outcomes)
    table(console, ("job", *titles), jobs[:MOST_JOBS])
    if len(jobs) > MOST_JOBS:
        console.print(f"  and {len(jobs) - MOST_JOBS} more jobs")


def title(one: PolicyOutcome) -> str:
    """The name of a policy, and who told it periods."""
    return one.policy if one.phases == "none" else f"{one.policy} ({one.phases})"


def percent(value: Interval) -> str:
    """A share with its interval."""
    return f"{value.mean:.1%} ({value.low:.1%} to {value.high:.1%})"


def factor(value: Interval) -> str:
    """A factor with its interval."""
    return f"{value.mean:.2f} ({value.low:.2f} to {value.high:.2f})"


def _change(schedule: Schedule, one: PolicyOutcome, key: str) -> str:
    gain = schedule.gain(one)
    return "" if gain is None or one.policy == BASELINE else f"{gain[key]:+.1%}"
