"""All watched jobs on one time axis: what is ahead, who meets whom, and what became of it."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from ioprism.analyses.periodicity.live.fleet import PhaseAhead, overlaps, phases_ahead
from ioprism.service.jobs import Job
from ioprism.service.watch import Watch

PERIODS_AHEAD = 3.0  # of the slowest rhythm, unless a horizon is asked for
SHORTEST, LONGEST = 10.0, 24 * 3600.0  # seconds


def fleet(watch: Watch, *, horizon: float | None = None) -> dict[str, Any]:
    """Return the state of the whole machine; whoever calls holds the lock of the watch."""
    now, jobs = time.monotonic(), list(watch.jobs)
    periods = [job.latest.period.seconds for job in jobs if job.latest and job.latest.period]
    if horizon is None:
        horizon = PERIODS_AHEAD * max(periods, default=SHORTEST)
    horizon = min(max(horizon, SHORTEST), LONGEST)
    ahead = {job.name: _ahead(job, now, horizon) for job in jobs}
    every = [phase for phases in ahead.values() for phase in phases]
    return {
        "horizon": horizon,
        "lag_seconds": watch.lag,
        "analyses_waiting": watch.analyses_waiting,
        "jobs": [_job(job, now, ahead[job.name]) for job in jobs],
        "overlaps": [asdict(one) for one in overlaps(every)],
    }


def _clock(job: Job, now: float) -> float:
    """What the job's clock shows: the end of its latest request, and the time since then."""
    latest = job.latest
    return 0.0 if latest is None else latest.time + max(0.0, now - job.heard)


def _ahead(job: Job, now: float, horizon: float) -> list[PhaseAhead]:
    latest = job.latest
    if latest is None or latest.period is None or latest.next_phase is None:
        return []
    return phases_ahead(
        job.name, latest.next_phase, latest.period, elapsed=_clock(job, now), horizon=horizon
    )


def _job(job: Job, now: float, ahead: list[PhaseAhead]) -> dict[str, Any]:
    outcomes, clock = list(job.tracker.record.outcomes), _clock(job, now)
    period = None if job.latest is None else job.latest.period
    return {
        "job": job.name,
        "ranks": job.ranks,
        "silent_seconds": max(0.0, now - job.heard),
        "period": None if period is None else period.seconds,
        "ahead": [asdict(phase) for phase in ahead],
        "predicted": [
            {
                "due": one.due - clock,
                "came": None if one.came is None else one.came - clock,
                "on_time": one.on_time,
            }
            for one in outcomes
        ],
        "on_time_share": sum(one.on_time for one in outcomes) / len(outcomes) if outcomes else None,
    }
