"""Tables over all jobs: what applications, users, targets, nodes and causes cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from ioprism.model.result import Result
from ioprism.site.events import KINDS, SiteEvent, site_events
from ioprism.site.limits import FEWEST, STAGED_BYTES, TENTH
from ioprism.units import HOUR, format_counted

PARTS = ("slow-target", "slow-node")  # causes whose culprit is a part of the machine
MOST_ADVICE = 10
SHOWN = 200  # rows of a page's table
SAVINGS_OF = {"jobs": "job", "applications": "application", "users": "user"}
HOURS = ("node_hours", "io_stall_node_hours", "saving_node_hours")


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which jobs are looked at."""

    since: float | None = None  # seconds since 1970
    until: float | None = None
    application: str | None = None
    user: str | None = None
    mount: str | None = None  # of a file system that they use

    def of(self, jobs: pl.DataFrame) -> pl.DataFrame:
        """Keep the jobs asked for, as far as the table of jobs says."""
        asked = (
            (self.since, pl.col("start") >= pl.lit(self.since)),
            (self.until, pl.col("start") < pl.lit(self.until)),
            (self.application, pl.col("application") == pl.lit(self.application)),
            (self.user, pl.col("user") == pl.lit(self.user)),
        )
        for value, test in asked:
            jobs = jobs if value is None else jobs.filter(test)
        return jobs


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SiteTable(Result):
    """One table over all jobs."""

    subject: str
    rows: tuple[Mapping[str, Any], ...]
    events: tuple[SiteEvent, ...] = ()
    note: str | None = None  # which node-hours are estimates
    total: int = 0  # rows there are; `rows` may be the first of them

    def to_dict(self) -> dict[str, Any]:
        """Return what `ioprism site SUBJECT --json` says."""
        return {
            self.subject: [dict(row) for row in self.rows],
            "events": [event.to_dict() for event in self.events],
            "note": self.note,
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
    """The tables of a store, cut down to the jobs asked for, with node-hours in one unit."""

    jobs: pl.DataFrame
    causes: pl.DataFrame
    targets: pl.DataFrame
    hosts: pl.DataFrame
    files: pl.DataFrame
    # By which nodes are estimated where neither log nor `add` says.
    ranks_per_node: float = field(default=1.0, kw_only=True)

    def chosen(self, which: Chosen) -> SiteTables:
        """Keep some jobs, and what belongs to them."""
        if which == Chosen():
            return self
        jobs, targets, files = which.of(self.jobs), self.targets, self.files
        if which.mount is not None:
            here = pl.col("file_system") == (which.mount.rstrip("/") or "/")
            targets, files = targets.filter(here), files.filter(here)
            jobs = jobs.join(files.select("job").unique(), on="job", how="semi")
        kept = jobs.select("job")
        others = (table.join(kept, on="job", how="semi") for table in
                  (self.causes, targets, self.hosts, files))  # fmt: skip
        return replace(SiteTables(jobs, *others), ranks_per_node=self.ranks_per_node)

    def events(self, kinds: Collection[str] = KINDS) -> list[SiteEvent]:
        """Return what happened, with certainty."""
        return site_events(self.jobs, self.causes, self.targets, self.hosts, kinds)


# The events that a table shows: those about its rows.
EVENTS_OF: Mapping[str, Collection[str]] = {
    "jobs": KINDS,
    "applications": ("changed-application", "noisy-neighbour", "busy-servers"),
    "targets": ("slow-target",),
    "hosts": ("slow-node",),
}
# The tables of a store that a question needs beside `jobs`; all of them where it is not named.
NEEDS: Mapping[str, Collection[str]] = {
    "jobs": ("causes", "targets", "hosts"),
    "applications": ("causes",),
    "users": ("causes",),
    "targets": ("causes", "targets"),
    "hosts": ("causes", "hosts"),
    "causes": ("causes",),
    "periods": (),
    "files": ("files",),
}


def with_hours(tables: SiteTables) -> SiteTables:
    """Return the tables with node-hours: nodes as logs name them, or estimated from ranks.

    An estimate is by the cores per node that `add` was told, else by the ranks per node of the
    jobs whose logs name nodes, else one node per rank: whatever it is, all jobs have one unit.
    """
    named = tables.jobs.filter(pl.col("nodes") > 0)
    usual = (named["ranks"] / named["nodes"]).median() if named.height else None
    ranks_per_node = max(1.0, float(usual)) if isinstance(usual, float) else 1.0
    each = pl.col("cores_per_node").fill_null(ranks_per_node)
    estimate = (pl.col("ranks") / each).ceil().clip(lower_bound=1)
    jobs = tables.jobs.with_columns(
        nodes=pl.coalesce(pl.col("nodes").cast(pl.Float64), estimate).cast(pl.Int64),
        nodes_estimated=pl.col("nodes").is_null(),
    ).with_columns(
        node_hours=pl.col("nodes") * pl.col("runtime") / HOUR,
        io_stall_node_hours=pl.col("nodes") * pl.col("io_stall") / HOUR,
        saving_node_hours=pl.col("nodes") * pl.col("saving") / HOUR,
    )
    causes = tables.causes.join(jobs.select("job", "nodes"), on="job", maintain_order="left")
    hours = causes.with_columns(node_hours=pl.col("nodes") * pl.col("saving") / HOUR)
    return replace(tables, jobs=jobs, causes=hours.drop("nodes"), ranks_per_node=ranks_per_node)


def site_table(
    tables: SiteTables, subject: str, *, top: int | None = None, by: str = "pattern"
) -> SiteTable:
    """Answer for one subject, with the events that are about it; `by` groups files."""
    rows, total = _first_rows(tables, subject, top, by)
    events = tuple(tables.events(EVENTS_OF.get(subject, ())))
    return SiteTable(subject, rows, events, estimate_note(tables), total)


def _first_rows(
    tables: SiteTables, subject: str, top: int | None = None, by: str = "pattern"
) -> tuple[tuple[dict[str, Any], ...], int]:
    """Return the first rows of a table, and how many it has."""
    makers: dict[str, Callable[[SiteTables], pl.DataFrame]] = {
        "jobs": lambda t: t.jobs.sort(
            "saving_node_hours", "job", descending=[True, False], nulls_last=True
        ),
        "applications": lambda t: _groups(t, "application"),
        "users": lambda t: _groups(t, "user"),
        "targets": lambda t: _parts(t.targets, "file_system", "target"),
        "hosts": lambda t: _parts(t.hosts, "host"),
        "causes": _causes,
        "periods": _periodic_applications,
        "files": lambda t: _files(t, by),
    }
    table = makers[subject](tables)
    rows = table.head(table.height if top is None else top).rows(named=True)
    key = SAVINGS_OF.get(subject)
    if key is not None:
        savings = _savings(tables, key, [row[key] for row in rows])
        rows = [{**row, "savings": savings.get(row[key], {})} for row in rows]
    return tuple(rows), table.height


def estimate_note(tables: SiteTables) -> str | None:
    """Say which node-hours are estimates, and by what."""
    estimated = int(tables.jobs["nodes_estimated"].sum())
    if not estimated:
        return None
    told = tables.jobs.filter("nodes_estimated")["cores_per_node"].is_not_null().all()
    by = (
        "cores per node as given to `add`"
        if told
        else f"{tables.ranks_per_node:.3g} rank{'s' * (tables.ranks_per_node != 1)} per node"
    )
    return (
        f"Nodes of {estimated:,} of {format_counted(tables.jobs.height, 'job')} are estimated "
        f"({by}): their logs name none."
    )


def _savings(tables: SiteTables, key: str, names: list[Any]) -> dict[Any, dict[str, float]]:
    """Node-hours that removing each cause saves, for some jobs, applications or users."""
    jobs = tables.jobs.select("job", name=key)
    chosen = jobs.filter(pl.col("name").is_in(names, nulls_equal=True))
    sums = (
        tables.causes.join(chosen, on="job")
        .group_by("name", "code")
        .agg(pl.col("node_hours").sum())
        .sort("node_hours", "code", descending=[True, False])
    )
    savings: dict[Any, dict[str, float]] = {}
    for name, code, hours in sums.iter_rows():
        savings.setdefault(name, {})[code] = hours
    return savings


_JOBS = pl.col("job").n_unique().alias("jobs")
_WHO = [pl.col(key).drop_nulls().n_unique().alias(f"{key}s") for key in ("application", "user")]
_NOT_JUDGED = (pl.col("status") == "cannot-judge").sum().cast(pl.Int64).alias("not_judged")
_ESTIMATED = (  # share of the node-hours that rests on an estimate of nodes
    pl.when(pl.col("node_hours").sum() > 0)
    .then(pl.col("node_hours").filter("nodes_estimated").sum() / pl.col("node_hours").sum())
    .otherwise(pl.col("nodes_estimated").any().cast(pl.Float64))
    .alias("estimated_share")
)


def _groups(tables: SiteTables, key: str) -> pl.DataFrame:
    sums = tables.jobs.group_by(key).agg(
        pl.len().alias("jobs"),
        _NOT_JUDGED,
        pl.col(HOURS).sum(),
        _ESTIMATED,
        pl.col("bytes_read", "bytes_written").sum(),
        *_WHO,
    )
    return sums.sort("saving_node_hours", key, descending=[True, False])


def _parts(parts: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Targets or nodes, those with the slowest worst tenth of jobs first.

    A rate relative to others of the same job is a ratio: the median job hides a part that is
    50 times slower now and then, and a mean would let one fast job hide it.
    """
    sums = parts.group_by(keys).agg(
        _JOBS,
        pl.col("operations", "bytes", "seconds").sum(),
        pl.col("relative").median().alias("relative_rate"),
        pl.col("relative").quantile(TENTH, "lower").alias("relative_rate_worst_tenth"),
    )
    return sums.with_columns(rate=pl.col("bytes") / pl.col("seconds")).sort(
        "relative_rate_worst_tenth", "relative_rate", *keys, nulls_last=True
    )


def _files(tables: SiteTables, by: str) -> pl.DataFrame:
    """Files, or kinds of files, over all jobs: those in which most time is spent first."""
    rows = tables.files.drop_nulls("file") if by == "file" else tables.files
    named = rows.join(tables.jobs.select("job", "application", "user"), on="job")
    sums = named.group_by("file_system", by).agg(
        _JOBS,
        *_WHO,
        pl.col("files").max().alias("files_per_job"),
        pl.col("operations", "bytes_read", "bytes_written", "seconds").sum(),
    )
    moved = pl.col("bytes_read") + pl.col("bytes_written")
    return sums.with_columns(
        request_bytes=pl.when(pl.col("operations") > 0).then(moved / pl.col("operations")),
        rate=pl.when(pl.col("seconds") > 0).then(moved / pl.col("seconds")),
    ).sort("seconds", "file_system", by, descending=[True, False, False])


def _causes(tables: SiteTables) -> pl.DataFrame:
    named = tables.causes.join(
        tables.jobs.select("job", "application", "user", job_hours="node_hours"), on="job"
    )
    sums = named.group_by("code").agg(
        _JOBS,
        *_WHO,
        pl.col("node_hours").sum().alias("saving_node_hours"),
        pl.col("job_hours").sum().alias("node_hours"),
    )
    return sums.sort("saving_node_hours", "code", descending=[True, False])


def _periodic_applications(tables: SiteTables) -> pl.DataFrame:
    """Applications whose jobs write or read periodically, by the node-hours of those jobs."""
    jobs = tables.jobs.filter(pl.col("pattern") == "periodic")
    sums = jobs.group_by("application").agg(
        pl.len().alias("jobs"),
        pl.col("node_hours").sum(),
        pl.col("period", "duty_cycle", "phase_bytes", "period_confidence").median(),
        pl.col("period").quantile(TENTH).alias("period_low"),
        pl.col("period").quantile(1 - TENTH).alias("period_high"),
        pl.col("period_of").mode().sort().first(),
    )
    return sums.sort("node_hours", "application", descending=[True, False])


def periodic_hours(tables: SiteTables) -> dict[str, float]:
    """Node-hours of jobs whose log tells when they did I/O, and of those that are periodic.

    Those that write periodically are listed separately, because published studies count them.
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
            _JOBS,
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
        _JOBS, pl.col("bytes_read", "bytes_written", "seconds").sum()
    )
    read = sums.filter(
        (pl.col("jobs") >= FEWEST)
        & (pl.col("bytes_written") == 0)
        & (pl.col("bytes_read") >= STAGED_BYTES)
    )
    longest = read.sort("seconds", "pattern", descending=[True, False])
    return longest.head(MOST_ADVICE).rows(named=True)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SiteStory(Result):
    """Everything that one page shows about a centre."""

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
    """Return every table and event of the page."""
    jobs = tables.jobs
    totals: dict[str, Any] = {name: float(jobs[name].sum()) for name in HOURS}
    totals |= jobs.select(_NOT_JUDGED, _ESTIMATED).row(0, named=True)
    totals |= {
        "note": estimate_note(tables),
        "jobs": jobs.height,
        "from": jobs["start"].min(),
        "to": jobs["start"].max(),
    }
    totals |= periodic_hours(tables)
    totals |= {f"{key}s": jobs[key].drop_nulls().n_unique() for key in ("application", "user")}
    tables_of = {
        name: _first_rows(tables, name, None if name == "causes" else SHOWN)[0]
        for name in ("applications", "users", "causes", "jobs", "periods")
    }
    return SiteStory(
        totals,
        worst_jobs=tables_of.pop("jobs"),
        **tables_of,
        events=tuple(tables.events()),
        advice=tuple(top_advice(tables)),
        inputs=tuple(repeated_inputs(tables)),
    )
