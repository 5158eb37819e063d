"""The page of `ioprism site report`: what all jobs of a centre lose, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ioprism.reports.to_html.page import shell_page
from ioprism.reports.to_terminal.site import (
    UNKNOWN,
    day,
    main_cause,
    periodic_share,
    sentence,
)
from ioprism.site.summary import SiteStory
from ioprism.text import printable
from ioprism.units import format_counted

Row = Mapping[str, Any]
LEAST_SHOWN = 0.0005  # of all node-hours: less is 0.0%
_HOURS = (("node-hours", "node_hours"), ("stalled", "io_stall_node_hours"),
          ("could save", "saving_node_hours"))  # fmt: skip


def page(story: SiteStory, links: Mapping[str, str] | None = None) -> str:
    """Return one self-contained page; `links` are reports of single jobs, by log."""
    return shell_page("site", title="The I/O of a centre", data=data(story, links or {}))


def data(story: SiteStory, links: Mapping[str, str]) -> dict[str, Any]:
    """Return what the page shows."""
    totals = story.totals
    days = dict.fromkeys((day(totals["from"]), day(totals["to"]))) if totals["jobs"] else {}
    span = " to ".join(days) or "no time at all"
    return {
        "next": f"{format_counted(totals['jobs'], 'job')} of "
        f"{format_counted(totals['applications'], 'application')}, {span}. "
        f"I/O stalls them for {_hours(totals['io_stall_node_hours'])} node-hours.",
        "line": _line(totals["saving_node_hours"], totals["node_hours"]),
        "facts": [
            ["dates", span],
            ["jobs", f"{totals['jobs']:,}"],
            ["applications", f"{totals['applications']:,}"],
            ["users", f"{totals['users']:,}"],
            ["logs that cannot be judged", f"{totals['not_judged']:,}"],
            *([["node-hours", totals["note"]]] if totals["note"] else []),
            ["stalled by I/O", f"{_hours(totals['io_stall_node_hours'])} node-hours"],
            ["periodic I/O", f"{_hours(totals['periodic_node_hours'])} node-hours"],
        ],
        "savings": [
            {"name": _name(row["application"]), "parts": row["savings"]}
            for row in story.applications
        ],
        "events": [
            {
                "kind": event.kind,
                "subject": printable(event.subject),
                "from": event.start,
                "to": event.end,
                "text": sentence(event),
                "node_hours": event.node_hours,
            }
            for event in story.events
        ],
        "span": [totals["from"], totals["to"]],
        "advice": [_advice(rows, links) for rows in _same_advice(story.advice)],
        "jobs": [_job(row, links) for row in story.worst_jobs],
        "tables": _tables(story),
    }


def _job(row: Row, links: Mapping[str, str]) -> dict[str, Any]:
    return {
        "start": row["start"],
        "runtime": row["runtime"],
        "application": _name(row["application"]),
        "user": _name(row["user"]),
        "saving": row["saving_node_hours"],
        "cause": _cell("first_cause", row),
        "log": _name(row["path"]),
        "report": links.get(row["path"]),
    }


def _name(value: object) -> str:
    return UNKNOWN if value is None else printable(str(value))


def _line(saving: float, hours: float) -> str:
    part = saving / hours if hours > 0 else 0.0
    share = f" ({part:.1%})" if part >= LEAST_SHOWN else " (less than 0.1%)" if part else ""
    return f"{_hours(saving)} of {_hours(hours)} node-hours{share} could be saved."


def _hours(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def _same_advice(advice: Sequence[Row]) -> list[list[Row]]:
    """Put applications together that suffer from the same thing, such as one slow target."""
    by_title: dict[tuple[str, str], list[Row]] = {}
    for row in advice:
        by_title.setdefault((row["code"], row["title"] or ""), []).append(row)
    return sorted(by_title.values(), key=lambda rows: -sum(row["node_hours"] for row in rows))


def _advice(rows: Sequence[Row], links: Mapping[str, str]) -> dict[str, Any]:
    """One advice; the application that loses most to it is the example."""
    row, names = rows[0], [_name(row["application"]) for row in rows]
    others = format_counted(len(names) - 1, "other application")
    return {
        "applications": names[0] if len(names) == 1 else f"{names[0]} and {others}",
        "words": " ".join(names),
        "hours": sum(one["node_hours"] for one in rows),
        "jobs": sum(one["jobs"] for one in rows),
        "title": _name(row["title"] or row["code"]),
        "advice": None if row["advice"] is None else printable(row["advice"]),
        "log": _name(row["worst_log"]),
        "report": links.get(row["worst_log"]),
    }


def _tables(story: SiteStory) -> list[dict[str, Any]]:
    by_application = (("application", "application"), ("jobs", "jobs"), ("users", "users"))
    by_user = (("user", "user"), ("jobs", "jobs"), ("applications", "applications"))
    causes = (("cause", "code"), ("jobs", "jobs"), ("applications", "applications"),
              ("users", "users"), ("could save", "saving_node_hours"))  # fmt: skip
    jobs = (("application", "application"), ("user", "user"), ("ranks", "ranks"), *_HOURS,
            ("first cause", "first_cause"), ("log", "path"))  # fmt: skip
    inputs = (("files", "pattern"), ("jobs", "jobs"), ("read", "bytes_read"),
              ("I/O time", "seconds"))  # fmt: skip
    periods = (("application", "application"), ("jobs", "jobs"), ("node-hours", "node_hours"),
               ("of", "period_of"), ("period", "period"), ("duty", "duty_cycle"),
               ("bytes per phase", "phase_bytes"), ("confidence", "period_confidence"))  # fmt: skip
    tables = [
        ("Applications with periodic I/O", periods, story.periods),
        ("Applications", (*by_application, *_HOURS), story.applications),
        ("Users", (*by_user, *_HOURS), story.users),
        ("Causes", causes, story.causes),
        ("Jobs that lose most", jobs, story.worst_jobs),
        ("Inputs that many jobs read: worth staging", inputs, story.inputs),
    ]
    return [
        {
            "title": title,
            "note": periodic_share(story.totals) if rows is story.periods else "",
            "columns": [{"name": name, "kind": _kind(key)} for name, key in columns],
            "rows": [[_cell(key, row) for _, key in columns] for row in rows],
        }
        for title, columns, rows in tables
        if rows
    ]


def _kind(key: str) -> str:
    if key in ("jobs", "users", "applications", "ranks"):
        return "count"
    if key in ("bytes_read", "phase_bytes"):
        return "bytes"
    if key in ("seconds", "period"):
        return "seconds"
    if key in ("duty_cycle", "period_confidence"):
        return "number"
    return "number" if key.endswith("node_hours") else "text"


def _cell(key: str, row: Row) -> object:
    value = main_cause(row) if key == "first_cause" else row[key]
    if value is None and _kind(key) == "text":
        return UNKNOWN
    if isinstance(value, str):
        return printable(value)
    return round(value, 3) if isinstance(value, float) else value
