"""All jobs of a site, and simulated schedules, printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from rich.console import Console
from rich.text import Text

from ioprism.reports.to_terminal import facts, heading, name, prose, table
from ioprism.scheduling.result import BASELINE, Interval, PolicyOutcome, Schedule
from ioprism.site.events import SiteEvent
from ioprism.site.summary import SiteTable
from ioprism.text import printable
from ioprism.units import (
    column_unit,
    format_bytes,
    format_count,
    format_counted,
    format_number,
    format_rate,
    format_seconds,
)

# Subject -> columns: title, key, how it is written.
_SAVING = ("could save (node-h)", "saving_node_hours")
_HOURS = (("used (node-h)", "node_hours"), ("stalled (node-h)", "io_stall_node_hours"),
          _SAVING)  # fmt: skip
_PEERS = (("worst tenth against peers", "relative_rate_worst_tenth"),
          ("median against peers", "relative_rate"))  # fmt: skip
UNKNOWN = "unknown"  # the log does not tell
NONE = "none"  # there is no cause
NOT_JUDGED = "not judged"  # the log has too little data
COLUMNS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "jobs": (("job", "label"), ("application", "application"), ("user", "user"),
             ("started", "start"), ("ranks", "ranks"), *_HOURS, ("main cause", "first_cause")),
    "applications": (("application", "application"), ("jobs", "jobs"), ("not judged", "not_judged"),
                     ("users", "users"), *_HOURS, ("main cause", "savings")),
    "users": (("user", "user"), ("jobs", "jobs"), ("not judged", "not_judged"), *_HOURS,
              ("main cause", "savings")),
    "targets": (("file system", "file_system"), ("target", "target"), ("jobs", "jobs"),
                ("moved", "bytes"), ("rate", "rate"), *_PEERS),
    "hosts": (("node", "host"), ("jobs", "jobs"), ("moved", "bytes"), ("rate", "rate"), *_PEERS),
    "files": (("file system", "file_system"), ("file", "name"), ("jobs", "jobs"),
              ("read", "bytes_read"), ("written", "bytes_written"), ("request", "request_bytes"),
              ("I/O time", "seconds"), ("rate", "rate")),
    "causes": (("cause", "code"), ("jobs", "jobs"), ("applications", "applications"),
               ("users", "users"), _SAVING),
    "periods": (("application", "application"), ("jobs", "jobs"), _HOURS[0],
                ("direction", "period_of"), ("period", "period"), ("duty cycle", "duty_cycle"),
                ("per phase", "phase_bytes"), ("confidence", "period_confidence")),
}  # fmt: skip

# Columns that a narrow terminal leaves out, by key, the first of them first.
LEAST: Mapping[str, tuple[str, ...]] = {
    "jobs": ("ranks", "node_hours", "user", "start", "io_stall_node_hours"),
    "applications": ("not_judged", "users", "node_hours"),
    "users": ("not_judged", "node_hours"),
    "targets": ("jobs", "relative_rate", "bytes"),
    "hosts": ("jobs", "relative_rate", "bytes"),
    "files": ("rate", "request_bytes", "seconds", "jobs"),
    "causes": ("users", "applications"),
    "periods": ("duty_cycle", "node_hours", "phase_bytes"),
}
SIZES = ("bytes", "phase_bytes", "bytes_read", "bytes_written", "request_bytes")
SHARES = ("relative_rate", "relative_rate_worst_tenth", "duty_cycle", "period_confidence")
CHANGED = {"request_bytes": "request size", "collective": "collective calls",
           "metadata": "metadata calls", "operations": "reads and writes",
           "io_stall_share": "I/O stall time"}  # fmt: skip


def show_site(site_table: SiteTable, console: Console) -> None:
    """Print a table, and what happened."""
    columns = COLUMNS[site_table.subject]
    shown, total = len(site_table.rows), site_table.total
    heading(console, site_table.subject.capitalize() + f" ({shown} of {total})" * (shown < total))
    units = {key: _unit(key, site_table.rows) for _, key in columns}
    titles = {key: f"{title} ({units[key][0]})" if units[key][0] else title
              for title, key in columns}  # fmt: skip
    rows = [tuple(_cell(key, row, units[key][1]) for key in titles) for row in site_table.rows]
    least = [titles[key] for key in LEAST[site_table.subject]]
    if rows:
        table(console, tuple(titles.values()), rows, least=least)
    else:
        prose(console, "none in these logs", style="dim", indent=2)
    if site_table.note and any(key == "node_hours" for _, key in columns):
        prose(console, site_table.note, style="dim", indent=2)
    if site_table.events:
        heading(console, "What happened")
    for event in site_table.events:
        prose(console, sentence(event), indent=2)


def periodic_share(totals: Mapping[str, Any]) -> str:
    """Say how much of the machine writes periodically, beside what others report."""
    known, writing = totals["known_node_hours"], totals["periodic_write_node_hours"]
    if not known:
        return "No log here tells when its job did I/O."
    return (
        f"Jobs that write periodically use {writing / known:.0%} of the {known:,.0f} node-hours "
        "whose logs tell when they did I/O. Zanon Boito et al. report a quarter to a third."
    )


def sentence(event: SiteEvent) -> str:
    """Tell an event in one sentence."""
    name, facts = printable(event.subject), event.evidence
    since = day(event.start)
    cost = f" It cost {event.node_hours:,.0f} node-hours." if event.node_hours >= 1 else ""
    if event.kind in ("slow-target", "slow-node"):
        what = "Storage target" if event.kind == "slow-target" else "Node"
        rate = f"{facts['relative_rate']:.0%} of the rate of its peers"
        jobs = format_counted(facts["jobs"], "job")
        where = f" of {printable(facts['file_system'])}" if "file_system" in facts else ""
        when = f"from {since} to {day(event.end)}"
        return f"{what} {name}{where} reached {rate} {when}, in {jobs}.{cost}"
    if event.kind == "noisy-neighbour":
        return (
            f"Jobs that ran at the same time as {name} stalled {facts['factor']:.1f} times "
            f"as long as usual ({format_counted(facts['jobs_beside'], 'job')}).{cost}"
        )
    if event.kind == "busy-servers":
        busy, quiet = (format_rate(facts[f"others_rate_{when}"]) for when in ("busy", "quiet"))
        return (
            f"Jobs of {name} stalled {facts['factor']:.1f} times as long while others kept "
            f"the servers at {busy} instead of {quiet} "
            f"({format_counted(facts['jobs_beside'], 'job')}).{cost}"
        )
    return f"{name} changed on {since}: {', '.join(_changes(facts))}.{cost}"


def _changes(facts: Mapping[str, Any]) -> Iterator[str]:
    """What differs before and after a change, as far as it shows."""
    for key, value in facts.items():
        if isinstance(value, dict):
            before, after = (_number(key, value[when]) for when in ("before", "after"))
            if before != after:
                yield f"{CHANGED.get(key, key.replace('_', ' '))} {before} to {after}"


def day(seconds: float | None) -> str:
    """A date."""
    return "now" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _number(key: str, value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if key in ("request_bytes", "bytes"):
        return format_bytes(value)
    if key == "rate":
        return format_rate(value)
    return f"{value:.0%}" if key in ("collective", "io_stall_share") else f"{value:,.3g}"


def main_cause(row: Mapping[str, Any]) -> str:
    """Name the main cause of a job or group; tell no cause from a log that was not judged."""
    first = row.get("first_cause") or next(iter(row.get("savings") or ()), None)
    if first is not None:
        return printable(str(first))
    every = row.get("not_judged") == row.get("jobs") if "jobs" in row else False
    return NOT_JUDGED if every or row.get("status") == "cannot-judge" else NONE


def _unit(key: str, rows: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    """Return the unit of a column, so that its numbers can be compared, and its size."""
    if key in ("seconds", "period"):
        return "s", 1
    if key not in (*SIZES, "rate"):
        return "", 1
    together = ("bytes_read", "bytes_written") if key.startswith("bytes_") else (key,)
    unit, size = column_unit(row.get(one) for row in rows for one in together)
    return (f"{unit}/s" if key == "rate" else unit), size


def _cell(key: str, row: Mapping[str, Any], unit: int) -> str | Text:
    if key == "label":
        return name(row["job_id"] or PurePath(row["path"]).name)
    if key in ("savings", "first_cause"):
        return main_cause(row)
    value = row.get("file", row.get("pattern")) if key == "name" else row.get(key)
    if value is None:
        return NOT_JUDGED if row.get("status") == "cannot-judge" else UNKNOWN
    if key == "start":
        return day(value)
    if key in SHARES:
        return f"{value:.0%}"
    if isinstance(value, float) or key in SIZES:
        number = format_number(value / unit)
        guess = key == "node_hours" and (row.get("nodes_estimated") or row.get("estimated_share"))
        return f"~{number}" if guess and number != "<0.001" else number
    return format_count(value) if isinstance(value, int) else printable(str(value))


MOST_JOBS = 12


def show_schedule(schedule: Schedule, console: Console) -> None:
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
