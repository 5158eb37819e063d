"""The watched jobs over HTTP: JSON, events, a live page, metrics, and whose turn it is."""

from __future__ import annotations

import math
import queue
import secrets
import threading
import time
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from ioprism.connections import GuardedServer
from ioprism.errors import UsageError
from ioprism.live import documents as json_form
from ioprism.live import metrics
from ioprism.live import page as page_form
from ioprism.live.addresses import is_loopback
from ioprism.live.jobs import Job
from ioprism.live.watch import Watch
from ioprism.periodicity.online.fleet import PhaseAhead, overlaps, phases_ahead
from ioprism.reports import to_json

LAGGING = 1.0  # seconds that an analysis waits, above which the service says that it lags
KEEP_ALIVE = 15.0  # seconds between signs of life to a silent listener
JSON = "application/json"


class Server(GuardedServer):
    """Serves one watch; requests run in threads of their own."""

    def __init__(self, watch: Watch, host: str, port: int, *, token: str | None = None) -> None:
        self.watch = watch
        self.host = host
        self.token = token or secrets.token_urlsafe(24)
        try:
            super().__init__((host, port), Handler)
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"cannot serve on {host}:{port}: {error}.\n"
                "Hint: choose another --http port; 0 takes any."
            ) from error
        self.url = f"http://{host}:{self.server_address[1]}/{self.token}"
        threading.Thread(target=self.serve_forever, args=(0.5,), name="http", daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "ioprism"
    sys_version = ""
    timeout = 60

    def do_GET(self) -> None:
        """Answer a request for one of the known paths."""
        if not self._is_for_us():
            self._send(403, JSON, to_json.line({"error": "this name is not served here"}))
            self.close_connection = True
            return
        try:
            asked = urlsplit(self.path)
        except ValueError:
            self._send(400, JSON, to_json.line({"error": "this is not an address"}))
            return
        path = self._path_behind_token(asked.path)
        if path is None:
            self._send(403, JSON, to_json.line({"error": "the token is missing or wrong"}))
            self.close_connection = True
            return
        self.server.trust(self.connection)
        answer = self.PATHS.get(path)
        if answer is None:
            known = ", ".join(self.PATHS)
            self._send(404, JSON, to_json.line({"error": f"there are {known}"}))
            return
        answer(self, {key: values[-1] for key, values in parse_qs(asked.query).items()})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its own signature
        """Requests are not logged."""

    def _path_behind_token(self, path: str) -> str | None:
        """The path that is asked for; None without the token, in the address or as a header."""
        token = self.server.token.encode()
        _, first, *rest = path.split("/", 2)
        if secrets.compare_digest(first.encode(), token):
            return "/" + "".join(rest)
        said = self.headers.get("Authorization", "").removeprefix("Bearer ")
        return path if secrets.compare_digest(said.encode(), token) else None

    def _is_for_us(self) -> bool:
        """A page elsewhere may not read this through a name that it makes point here."""
        if not is_loopback(self.server.host):
            return True
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        return is_loopback(host)

    def _page(self, _: dict[str, str]) -> None:
        if urlsplit(self.path).path == f"/{self.server.token}":
            self._redirect(f"/{self.server.token}/")  # the page asks for what is beside it
            return
        self._send(200, "text/html; charset=utf-8", page_form.page())

    def _jobs(self, _: dict[str, str]) -> None:
        with self.server.watch.lock:
            body = {"jobs": [_body(job) for job in self.server.watch.jobs]}
        self._send(200, JSON, to_json.line(body))

    def _job(self, asked: dict[str, str]) -> None:
        self._about(asked, _body)

    def _next_phase(self, asked: dict[str, str]) -> None:
        self._about(asked, lambda job: {"next_phase": _body(job)["next_phase"]})

    def _signal(self, asked: dict[str, str]) -> None:
        self._about(asked, lambda job: page_form.picture(job.tracker))

    def _about(self, asked: dict[str, str], said: Any) -> None:  # noqa: ANN401 - any callable
        watch = self.server.watch
        with watch.lock:
            job = watch.find(asked.get("job"))
            body = None if job is None else said(job)
        if body is None:
            self._send(404, JSON, to_json.line({"error": "no such job; /jobs names all"}))
        else:
            self._send(200, JSON, to_json.line(body))

    def _metrics(self, _: dict[str, str]) -> None:
        watch = self.server.watch
        with watch.lock:
            backlog = metrics.Backlog(watch.analyses_waiting, watch.lag)
            text = metrics.exposition(watch.counts, watch.latency, watch.jobs, backlog)
        self._send(200, metrics.CONTENT_TYPE, text)

    def _health(self, _: dict[str, str]) -> None:
        self._send(200, JSON, to_json.line(_health(self.server.watch)))

    def _fleet_page(self, _: dict[str, str]) -> None:
        self._send(200, "text/html; charset=utf-8", page_form.fleet_page())

    def _fleet(self, asked: dict[str, str]) -> None:
        try:
            horizon = float(asked["horizon"]) if "horizon" in asked else None
        except ValueError:
            horizon = math.nan
        if horizon is not None and math.isnan(horizon):
            self._send(400, JSON, to_json.line({"error": "horizon is not a number of seconds"}))
            return
        with self.server.watch.lock:
            body = fleet(self.server.watch, horizon=horizon)
        self._send(200, JSON, to_json.line(body))

    def _schedule(self, asked: dict[str, str]) -> None:
        """Who may do I/O now; `job` and `wants` tell that a job wants to, or no longer does."""
        watch, now, job = self.server.watch, time.monotonic(), asked.get("job")
        wants = asked.get("wants")
        if wants not in (None, "0", "1") or (wants is not None and not job):
            self._send(400, JSON, to_json.line({"error": "wants is 0 or 1, and needs a job"}))
            return
        with watch.lock:
            if job and wants == "1":
                watch.turns.ask(job, now)
            elif job and wants == "0":
                watch.turns.leave(job)
            chosen = [watch.turns.turn(job, now)] if job else watch.turns.turns(now)
        self._send(200, JSON, to_json.line({"turns": [one.to_dict() for one in chosen]}))

    def _events(self, asked: dict[str, str]) -> None:
        with self.server.watch.broker.listening(asked.get("job")) as waiting:
            if waiting is None:
                self._send(503, JSON, to_json.line({"error": "too many connections"}))
                return
            self._head(200, "text/event-stream", None)
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

    def _redirect(self, place: str) -> None:
        self.send_response(308)
        self.send_header("Location", place)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, code: int, kind: str, text: str) -> None:
        body = text.encode()
        self._head(code, kind, len(body))
        self.wfile.write(body)

    def _head(self, code: int, kind: str, length: int | None) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")  # the address holds the secret
        self.send_header("X-Content-Type-Options", "nosniff")
        if length is None:
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    PATHS: ClassVar[dict[str, Any]] = {
        "/": _page,
        "/jobs": _jobs,
        "/job": _job,
        "/next-phase": _next_phase,
        "/signal": _signal,
        "/machine": _fleet_page,
        "/fleet": _fleet,
        "/schedule": _schedule,
        "/events": _events,
        "/metrics": _metrics,
        "/health": _health,
    }


def _health(watch: Watch) -> dict[str, Any]:
    saving = None if watch.settings.save_to is None else watch.saving
    with watch.lock:
        lag = watch.lag
    behind = {"lagging": lag > LAGGING, "lag_seconds": lag}
    return {"ok": saving is not False, "saving": saving, **behind, **watch.counts.state()}


def _body(job: Job) -> dict[str, Any]:
    if job.latest is None:
        return {"job": job.name, "messages": job.messages, "period": None, "next_phase": None}
    return json_form.body(job.name, job.latest, messages=job.messages, ranks=job.ranks)


PERIODS_AHEAD = 3.0  # of the slowest rhythm, unless a horizon is asked for
SHORTEST, LONGEST = 10.0, 24 * 3600.0  # seconds


def fleet(watch: Watch, *, horizon: float | None = None) -> dict[str, Any]:
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
