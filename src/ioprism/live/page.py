"""The live page of `ioprism watch`: the signal, moving, and when the next phase is due."""

from __future__ import annotations

from typing import Any

from ioprism.periodicity.online.tracker import Tracker
from ioprism.reports.to_html.page import asset
from ioprism.reports.to_html.page import page as frame
from ioprism.reports.to_html.period import curve


def page() -> str:
    """Return the page; it asks the server that it came from for everything else."""
    return frame(
        title="Running jobs: when is the next I/O phase?",
        body=asset("live.html"),
        styles=("plots.css",),
        scripts=("charts.js", "plots.js", "live.js"),
        data={},
        connect=True,
    )


def fleet_page() -> str:
    """Return the page of all jobs: next phases on one time axis, and who meets whom."""
    return frame(
        title="All running jobs: who will do I/O when?",
        body=asset("fleet.html"),
        styles=("plots.css",),
        scripts=("charts.js", "plots.js", "fleet.js"),
        data={},
        connect=True,
    )


def picture(tracker: Tracker) -> dict[str, Any] | None:
    """Return the stretch of a job's signal that is looked at, or None if there is none yet."""
    return None if tracker.latest is None else curve(tracker.signal())
