"""The page of `ioprism schedule`: policies beside each other, and whose turn it is when."""

from __future__ import annotations

from typing import Any

from ioprism.reports.to_html.page import shell_page
from ioprism.reports.to_terminal.site import title
from ioprism.scheduling.result import Schedule

MOST_TURNS = 400  # of one job in the picture


def page(schedule: Schedule) -> str:
    """Return the page."""
    return shell_page("schedule", title="Scheduling I/O: policies compared", data=_data(schedule))


def _data(schedule: Schedule) -> dict[str, Any]:
    names = [title(one) for one in schedule.outcomes]
    lanes = [
        {
            "policy": name,
            "jobs": [
                {"job": lane.job, "turns": [list(turn) for turn in lane.turns[:MOST_TURNS]]}
                for lane in schedule.lanes
                if (lane.policy, lane.phases) == (one.policy, one.phases)
            ],
        }
        for one, name in zip(schedule.outcomes, names, strict=True)
    ]
    plain = schedule.to_dict()
    outcomes = [{**one, "name": name} for one, name in zip(plain["outcomes"], names, strict=True)]
    return {**plain, "verdict": schedule.summary(), "outcomes": outcomes, "lanes": lanes}
