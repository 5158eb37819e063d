"""The watched jobs over HTTP: JSON, events, a live page, metrics, and whose turn it is."""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, ClassVar

from ioprism.live import metrics
from ioprism.live.intake import WatchedJob
from ioprism.live.publish import Answer
from ioprism.live.watch import Watch
from ioprism.local_http import HTML, JSON, BackgroundServer, LocalHandler, RefusedError
from ioprism.periodicity.looks import PhaseAhead, overlaps, phases_ahead
from ioprism.reports import to_json
from ioprism.reports.to_html.page import shell_page
from ioprism.reports.to_html.period import curve
from ioprism.units import DAY

LAGGING = 1.0  # seconds that an analysis waits, above which the service says that it lags
KEEP_ALIVE = 15.0  # seconds between signs of life to a silent listener


class WatchServer(BackgroundServer):
    """Serves one watch; requests run in threads."""

    def __init__(self, watch: Watch, host: str, port: int, *, token: str | None = None) -> None:
        self.watch = watch
        super().__init__(host, port, WatchHandler, token=token)


class WatchHandler(LocalHandler):
    """Answers one request."""

    server: WatchServer
    same_origin_only = False

    def answer(self, path: str, query: dict[str, str]) -> None:
        """Answer a request for one of the known paths."""
        if path in PAGES:
            self._send(HTML, live_page(PAGES[path]))
        elif path in ABOUT_JOB:
            self._about_job(query, ABOUT_JOB[path])
        elif path in self.PATHS:
            self.PATHS[path](self, query)
        else:
            known = ", ".join((*PAGES, *ABOUT_JOB, *self.PATHS))
            raise RefusedError(404, f"there are {known}")

    def _about_job(
        self, query: dict[str, str], values: Callable[[WatchedJob], dict[str, Any] | None]
    ) -> None:
        watch = self.server.watch
        with watch.lock:
            job = watch.find(query.get("job"))
            body = None if job is None else values(job)
        if body is None:
            raise RefusedError(404, "no such job; /jobs names all")
        self._send(JSON, to_json.line(body))

    def _jobs(self, _: dict[str, str]) -> None:
        with self.server.watch.lock:
            body = {"jobs": [_values(job) for job in self.server.watch.jobs]}
        self._send(JSON, to_json.line(body))

    def _metrics(self, _: dict[str, str]) -> None:
        watch = self.server.watch
        with watch.lock:
            text = metrics.exposition(
                watch.counts,
                watch.latency,
                watch.jobs,
                analyses_waiting=watch.analyses_waiting,
                lag=watch.lag,
            )
        self._send(metrics.CONTENT_TYPE, text)

    def _health(self, _: dict[str, str]) -> None:
        watch = self.server.watch
        saving = None if watch.settings.save_to is None else watch.saving
        with watch.lock:
            lag = watch.lag
        behind = {"lagging": lag > LAGGING, "lag_seconds": lag}
        body = {"ok": saving is not False, "saving": saving, **behind, **asdict(watch.counts)}
        self._send(JSON, to_json.line(body))

    def _fleet(self, query: dict[str, str]) -> None:
        try:
            horizon = float(query["horizon"]) if "horizon" in query else None
        except ValueError:
            horizon = math.nan
        if horizon is not None and math.isnan(horizon):
            raise RefusedError(400, "horizon is not a number of seconds")
        with self.server.watch.lock:
            body = fleet_values(self.server.watch, horizon=horizon)
        self._send(JSON, to_json.line(body))

    def _schedule(self, query: dict[str, str]) -> None:
        """Who may do I/O now; with `job` and `wants`, note that a job wants to, or is done."""
        watch, now, job = self.server.watch, time.monotonic(), query.get("job")
        wants = query.get("wants")
        if wants not in (None, "0", "1") or (wants is not None and not job):
            raise RefusedError(400, "wants is 0 or 1, and needs a job")
        with watch.lock:
            if job and wants == "1":
                watch.turns.ask(job, now)
            elif job and wants == "0":
                watch.turns.leave(job)
            turns = [watch.turns.turn(job, now)] if job else watch.turns.turns(now)
        self._send(JSON, to_json.line({"turns": [asdict(turn) for turn in turns]}))

    def _events(self, query: dict[str, str]) -> None:
        with self.server.watch.broker.listening(query.get("job")) as waiting:
            if waiting is None:
                raise RefusedError(503, "too many connections")
            self.send_head("text/event-stream", {"Connection": "close"})
            self.close_connection = True
            self.wfile.write(b": hello\n\n")
            self.wfile.flush()
            while True:
                try:
                    event = waiting.get(timeout=KEEP_ALIVE)
                except queue.Empty:
                    self.wfile.write(b": still here\n\n")
                    continue
                if event is None:
                    return
                self.wfile.write(f"data: {event}\n\n".encode())

    def _send(self, kind: str, text: str) -> None:
        self.send_content(kind, text.encode())

    PATHS: ClassVar[dict[str, Callable[[WatchHandler, dict[str, str]], None]]] = {
        "/jobs": _jobs,
        "/fleet": _fleet,
        "/schedule": _schedule,
        "/events": _events,
        "/metrics": _metrics,
        "/health": _health,
    }


def _values(job: WatchedJob) -> dict[str, Any]:
    if job.latest is None:
        return {"job": job.name, "messages": job.messages, "period": None, "next_phase": None}
    return Answer(job.name, job.latest, job.messages, job.ranks).values()


def picture(job: WatchedJob) -> dict[str, Any] | None:
    """Return the stretch of a job's signal that is looked at, or None if there is none yet."""
    return None if job.latest is None else curve(job.tracker.signal())


PAGES = {"/": "job", "/machine": "machine"}
ABOUT_JOB: dict[str, Callable[[WatchedJob], dict[str, Any] | None]] = {
    "/job": _values,
    "/next-phase": lambda job: {"next_phase": _values(job)["next_phase"]},
    "/signal": picture,
}


PERIODS_AHEAD = 3.0  # of the slowest period, unless a horizon is asked for
SHORTEST, LONGEST = 10.0, DAY  # seconds


def fleet_values(watch: Watch, *, horizon: float | None = None) -> dict[str, Any]:
    """Return the state of the whole machine; the caller holds the lock of the watch."""
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


def _clock(job: WatchedJob, now: float) -> float:
    """What the job's clock shows: the end of its latest request, and the time since then."""
    latest = job.latest
    return 0.0 if latest is None else latest.time + max(0.0, now - job.heard)


def _ahead(job: WatchedJob, now: float, horizon: float) -> list[PhaseAhead]:
    latest = job.latest
    if latest is None or latest.period is None or latest.next_phase is None:
        return []
    return phases_ahead(
        job.name, latest.next_phase, latest.period, elapsed=_clock(job, now), horizon=horizon
    )


def _job(job: WatchedJob, now: float, ahead: list[PhaseAhead]) -> dict[str, Any]:
    outcomes, clock = list(job.tracker.record.outcomes), _clock(job, now)
    period = None if job.latest is None else job.latest.period
    return {
        "job": job.name,
        "ranks": job.ranks,
        "messages": job.messages,
        "silent_seconds": max(0.0, now - job.heard),
        "clock": clock,
        "period": None if period is None else period.seconds,
        "spread": None if period is None else period.spread,
        "confidence": None if period is None else period.confidence,
        "direction": "both" if job.latest is None else job.latest.direction,
        "likely": [
            (1.0 / one.high, 1.0 / one.low, one.probability)
            for one in (job.latest.probabilities if job.latest else ())
        ],
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


def live_page(view: str = "job") -> str:
    """Return the page of one job or of the whole machine; it asks its server for all else."""
    return shell_page(
        "watch",
        title="Running jobs: when is the next I/O phase?",
        data={"view": view},
        connect=True,
    )
