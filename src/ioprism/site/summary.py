"""Tables over all jobs: what applications, users, targets, nodes and causes cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from ioprism.model.result import Result
from ioprism.site.event import SiteEvent
from ioprism.site.events import site_events
from ioprism.units import format_counted

PARTS = ("slow-target", "slow-node")  # causes whose culprit is a part of the machine
MOST_ADVICE = 10
SHOWN = 200  # rows of a page's table
STAGED_JOBS = 5  # inputs that so many jobs read are worth staging
STAGED_BYTES = 2**30


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which jobs are looked at."""

    since: float | None = None  # seconds since 1970
    until: float | None = None
    application: str | None = None
    user: str | None = None

    def of(self, jobs: pl.DataFrame) -> pl.DataFrame:
        """Keep the jobs asked for."""
        kept = jobs
        if self.since is not None:
            kept = kept.filter(pl.col("start") >= self.since)
        if self.until is not None:
            kept = kept.filter(pl.col("start") < self.until)
        if self.application is not None:
            kept = kept.filter(pl.col("application") == self.application)
        return kept if self.user is None else kept.filter(pl.col("user") == self.user)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SiteTable(Result):
    """One table over all jobs."""

    subject: str
    rows: tuple[Mapping[str, Any], ...]
    events: tuple[SiteEvent, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism site SUBJECT --json` says."""
        return {
            self.subject: [dict(row) for row in self.rows],
            "events": [event.to_dict() for event in self.events],
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row per job, application, user, target, node or cause."""
        flat = [{k: v for k, v in row.items() if not isinstance(v, dict)} for row in self.rows]
        return pl.DataFrame(flat, infer_schema_length=None)

    def summary(self) -> str:
        """Return the answer in one line."""
        return f"{len(self.rows)} {self.subject}, {len(self.events)} events"


@dataclass(frozen=True, slots=True, eq=False)
class SiteTables:
    """The tables of a store, cut down to the jobs asked for."""

    jobs: pl.DataFrame
    causes: pl.DataFrame
    targets: pl.DataFrame
    hosts: pl.DataFrame
    files: pl.DataFrame

    def chosen(self, which: Chosen) -> SiteTables:
        """Keep some jobs, and what belongs to them."""
        jobs = which.of(self.jobs)
        kept = jobs.select("job")
        tables = (self.causes, self.targets, self.hosts, self.files)
        return SiteTables(jobs, *(table.join(kept, on="job", how="semi") for table in tables))

    def events(self) -> list[SiteEvent]:
        """Return what happened, with certainty."""
        return site_events(self.jobs, self.causes, self.targets, self.hosts)


def site_table(tables: SiteTables, subject: str, *, top: int | None = None) -> SiteTable:
    """Answer for one subject, with the events that are about it."""
    made = {
        "jobs": _jobs,
        "applications": lambda t: _grouped(t, "application"),
        "users": lambda t: _grouped(t, "user"),
        "targets": lambda t: _parts(t.targets, "target"),
        "hosts": lambda t: _parts(t.hosts, "host"),
        "causes": _causes,
        "periods": periodic_applications,
    }[subject](tables)
    about = {"targets": "slow-target", "hosts": "slow-node", "applications": "application"}
    events = tuple(event for event in tables.events() if about.get(subject, "") in event.kind)
    return SiteTable(subject, tuple(made[:top]), events)


def _savings(tables: SiteTables, key: str) -> dict[Any, dict[str, float]]:
    """Node-hours that removing each cause saves, by key."""
    causes = tables.causes
    named = causes if key == "job" else causes.join(tables.jobs.select("job", key), on="job")
    sums = named.group_by(key, "code").agg(pl.col("node_hours").sum())
    savings: dict[Any, dict[str, float]] = {}
    largest = sums.sort("node_hours", "code", descending=[True, False])
    for name, code, hours in largest.iter_rows():
        savings.setdefault(name, {})[code] = hours
    return savings


def _jobs(tables: SiteTables) -> list[dict[str, Any]]:
    savings = _savings(tables, "job")
    ordered = tables.jobs.sort("saving_node_hours", "job", descending=[True, False])
    return [{**row, "savings": savings.get(row["job"], {})} for row in ordered.rows(named=True)]


def _grouped(tables: SiteTables, key: str) -> list[dict[str, Any]]:
    savings = _savings(tables, key)
    sums = tables.jobs.group_by(key).agg(
        pl.len().alias("jobs"),
        pl.col("node_hours", "io_stall_node_hours", "saving_node_hours").sum(),
        pl.col("bytes_read", "bytes_written").sum(),
        pl.col("user").n_unique().alias("users"),
        pl.col("application").n_unique().alias("applications"),
    )
    rows = sums.sort("saving_node_hours", key, descending=[True, False]).rows(named=True)
    return [{**row, "savings": savings.get(row[key], {})} for row in rows]


def _parts(parts: pl.DataFrame, key: str) -> list[dict[str, Any]]:
    sums = parts.group_by(key).agg(
        pl.col("job").n_unique().alias("jobs"),
        pl.col("operations", "bytes", "seconds").sum(),
        pl.col("relative").median().alias("relative_rate"),
        pl.col("relative").quantile(0.1).alias("relative_rate_worst_tenth"),
    )
    rate = pl.col("bytes") / pl.col("seconds")
    return sums.with_columns(rate=rate).sort("relative_rate", key).rows(named=True)


def _causes(tables: SiteTables) -> list[dict[str, Any]]:
    named = tables.causes.join(
        tables.jobs.select("job", "application", "user", job_hours="node_hours"), on="job"
    )
    sums = named.group_by("code").agg(
        pl.col("job").n_unique().alias("jobs"),
        pl.col("application").n_unique().alias("applications"),
        pl.col("user").n_unique().alias("users"),
        pl.col("node_hours").sum().alias("saving_node_hours"),
        pl.col("job_hours").sum().alias("node_hours"),
    )
    return sums.sort("saving_node_hours", "code", descending=[True, False]).rows(named=True)


def periodic_applications(tables: SiteTables) -> list[dict[str, Any]]:
    """Applications whose jobs write or read periodically, by the node-hours of those jobs."""
    jobs = tables.jobs.filter(pl.col("pattern") == "periodic")
    sums = jobs.group_by("application").agg(
        pl.len().alias("jobs"),
        pl.col("node_hours").sum(),
        pl.col("period", "duty_cycle", "phase_bytes", "period_confidence").median(),
        pl.col("period").quantile(0.1).alias("period_low"),
        pl.col("period").quantile(0.9).alias("period_high"),
        pl.col("period_of").mode().sort().first(),
    )
    return sums.sort("node_hours", "application", descending=[True, False]).rows(named=True)


def periodic_hours(tables: SiteTables) -> dict[str, float]:
    """Node-hours of jobs whose log tells when they did I/O, and of those that are periodic.

    Those that write periodically are told apart, because that is what others publish.
    """
    jobs = tables.jobs
    known = jobs.filter(pl.col("pattern").is_not_null())
    periodic = known.filter(pl.col("pattern") == "periodic")
    writing = periodic.filter(pl.col("period_of") != "read")
    frames = {
        "known_node_hours": known, "periodic_node_hours": periodic,
        "periodic_write_node_hours": writing,
    }  # fmt: skip
    return {name: float(frame["node_hours"].sum()) for name, frame in frames.items()}


def top_advice(tables: SiteTables) -> list[dict[str, Any]]:
    """What the applications that lose most should do first, by the node-hours it saves."""
    named = tables.causes.join(tables.jobs.select("job", "application", "path"), on="job")
    # Jobs that blame different parts of the machine do not say the same.
    part = pl.when(pl.col("code").is_in(PARTS)).then("subject").alias("part")
    sums = (
        named.group_by("application", "code", part)
        .agg(
            pl.col("node_hours").sum(),
            pl.col("job").n_unique().alias("jobs"),
            pl.col("title", "advice", "path").sort_by("node_hours", "job").last(),
        )
        .rename({"path": "worst_log"})
    )
    keys = ("application", "code", "part")
    largest = sums.sort("node_hours", *keys, descending=[True, False, False, False])
    first = largest.unique("application", keep="first", maintain_order=True)
    return first.drop("part").head(MOST_ADVICE).rows(named=True)


def repeated_inputs(tables: SiteTables) -> list[dict[str, Any]]:
    """Inputs that many jobs read again and write never: worth staging near the nodes."""
    sums = tables.files.group_by("pattern").agg(
        pl.col("job").n_unique().alias("jobs"),
        pl.col("bytes_read", "bytes_written").sum(),
        pl.col("seconds").sum(),
    )
    read = sums.filter(
        (pl.col("jobs") >= STAGED_JOBS)
        & (pl.col("bytes_written") == 0)
        & (pl.col("bytes_read") >= STAGED_BYTES)
    )
    longest = read.sort("seconds", "pattern", descending=[True, False])
    return longest.head(MOST_ADVICE).rows(named=True)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SiteStory(Result):
    """Everything that one page tells of a centre."""

    totals: Mapping[str, Any]
    applications: tuple[Mapping[str, Any], ...]
    users: tuple[Mapping[str, Any], ...]
    causes: tuple[Mapping[str, Any], ...]
    events: tuple[SiteEvent, ...]
    advice: tuple[Mapping[str, Any], ...]
    inputs: tuple[Mapping[str, Any], ...]
    worst_jobs: tuple[Mapping[str, Any], ...]
    periods: tuple[Mapping[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism site report --json` says."""
        lists = ("applications", "users", "causes", "advice", "inputs", "worst_jobs", "periods")
        return {
            "totals": dict(self.totals),
            **{name: [dict(row) for row in getattr(self, name)] for name in lists},
            "events": [event.to_dict() for event in self.events],
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row per application."""
        return SiteTable("applications", self.applications).to_frame()

    def summary(self) -> str:
        """Return the answer in one line."""
        return (
            f"{format_counted(self.totals['jobs'], 'job')}, "
            f"{self.totals['node_hours']:,.0f} node-hours, "
            f"{self.totals['saving_node_hours']:,.0f} of them could be saved"
        )


def site_story(tables: SiteTables) -> SiteStory:
    """Answer everything at once."""
    hours = ("node_hours", "io_stall_node_hours", "saving_node_hours")
    jobs = tables.jobs
    totals: dict[str, Any] = {name: float(jobs[name].sum()) for name in hours}
    totals |= {"jobs": jobs.height, "from": jobs["start"].min(), "to": jobs["start"].max()}
    totals |= periodic_hours(tables)
    totals |= {f"{key}s": jobs[key].drop_nulls().n_unique() for key in ("application", "user")}
    return SiteStory(
        totals,
        tuple(_grouped(tables, "application")[:SHOWN]),
        tuple(_grouped(tables, "user")[:SHOWN]),
        tuple(_causes(tables)),
        tuple(tables.events()),
        tuple(top_advice(tables)),
        tuple(repeated_inputs(tables)),
        tuple(_jobs(tables)[:SHOWN]),
        tuple(periodic_applications(tables)[:SHOWN]),
    )
