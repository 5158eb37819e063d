"""What happened to a centre: sick targets and nodes, applications that changed, bad company.

Each question is asked of many targets, nodes and applications, so a probability counts only
after it is multiplied by how many were asked (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ioprism.model.result import pick
from ioprism.model.trace import MIB
from ioprism.site import limits
from ioprism.site.change_point import Floats, Ints, Ranked, low_stretch, rank_sum
from ioprism.units import DAY


@dataclass(frozen=True, slots=True)
class SiteEvent:
    """Something that began, and perhaps ended, at a time."""

    kind: str  # slow-target, slow-node, changed-application, noisy-neighbour, busy-servers
    subject: str
    start: float  # seconds since 1970
    end: float | None
    evidence: dict[str, Any] = field(default_factory=dict)
    probability: float = 0.0  # that chance alone looks like this
    node_hours: float = 0.0  # that jobs lost to it

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            **pick(self, "kind", "subject"),
            "from": self.start,
            "to": self.end,
            **pick(self, "evidence", "probability", "node_hours"),
        }


# Numbers of a job that tell how an application does its I/O, and whether they are shares.
HABITS = (
    ("request_bytes", False), ("collective", True), ("metadata", False), ("operations", False),
    ("stripe_count", False), ("files", False),
)  # fmt: skip
COSTS = ("io_stall_share", "rate")


KINDS = ("slow-target", "slow-node", "changed-application", "noisy-neighbour", "busy-servers")


def site_events(
    jobs: pl.DataFrame,
    causes: pl.DataFrame,
    targets: pl.DataFrame,
    hosts: pl.DataFrame,
    kinds: Collection[str] = KINDS,
) -> list[SiteEvent]:
    """Return everything of some kinds that happened with certainty, the most costly first."""
    questions: dict[str, Callable[[], Iterator[SiteEvent]]] = {
        "slow-target": lambda: _slow_parts(
            targets, ("target", "file_system"), "slow-target", jobs, causes
        ),
        "slow-node": lambda: _slow_parts(hosts, ("host",), "slow-node", jobs, causes),
        "changed-application": lambda: _changed_applications(jobs),
        "noisy-neighbour": lambda: noisy_neighbours(jobs),
        "busy-servers": lambda: busy_servers(jobs),
    }
    events = [event for kind in kinds for event in questions[kind]()]
    return sorted(events, key=lambda event: (-event.node_hours, event.start))


def _slow_parts(
    parts: pl.DataFrame, keys: tuple[str, ...], kind: str, jobs: pl.DataFrame, causes: pl.DataFrame
) -> Iterator[SiteEvent]:
    known = _observations(parts, keys, jobs)
    low = known.filter(pl.col("relative") < limits.SLOWER).height
    usual = max(limits.RARELY, low / max(1, known.height))
    groups = known.partition_by(keys, as_dict=True, include_key=False)
    for names, rows in groups.items():
        stretch = low_stretch((rows["relative"] < limits.SLOWER).to_numpy(), usual=usual)
        if stretch is None or stretch.probability * len(groups) > limits.CERTAIN:
            continue
        inside = rows[stretch.first : stretch.end]
        first, last = float(inside["start"][0]), float(inside["last"].max())  # type: ignore[arg-type]
        named = pl.all_horizontal(
            pl.col(key) == name for key, name in zip(keys, names, strict=True)
        )
        seen = parts.filter(named & pl.col("start").is_between(first, last))["job"]
        lost = causes.filter((pl.col("code") == kind) & pl.col("job").is_in(seen.implode()))
        yield SiteEvent(
            kind,
            str(names[0]),
            first,
            float(inside["last"][-1]),
            {
                **dict(zip(keys[1:], names[1:], strict=True)),
                "relative_rate": _median(inside["relative"].to_numpy()),
                "jobs": int(inside["jobs"].sum()),
            },
            stretch.probability * len(groups),
            float(lost["node_hours"].sum()),
        )


def _observations(parts: pl.DataFrame, keys: tuple[str, ...], jobs: pl.DataFrame) -> pl.DataFrame:
    """What can be counted on: enough data, and jobs of one campaign counted once.

    Processes that a script starts one after the other do the same to the same files: they say
    the same of a target, however many they are. The rate of less than 1 MiB says nothing.
    """
    known = parts.drop_nulls(["start", "relative"]).filter(pl.col("bytes") >= MIB)
    campaign = pl.struct("application", "user").rank("dense").alias("campaign")
    named = known.join(jobs.select("job", campaign), on="job")
    return (
        named.group_by(*keys, "campaign", (pl.col("start") // limits.TOGETHER).alias("time"))
        .agg(
            pl.col("start").min(),
            pl.col("start").max().alias("last"),
            pl.col("relative").median(),
            pl.len().alias("jobs"),
        )
        .sort("start", *keys, "campaign")
    )


def _changed_applications(jobs: pl.DataFrame) -> Iterator[SiteEvent]:
    known = jobs.drop_nulls(["start", "application"]).with_columns(
        bytes=pl.col("bytes_read") + pl.col("bytes_written"),
        io_stall_share=pl.col("io_stall") / pl.col("runtime"),
    )
    groups = known.partition_by("application", as_dict=True, include_key=False)
    for (name,), rows in groups.items():
        yield from _changes(str(name), rows.sort("start"), tried=len(groups) * len(HABITS))


def _changes(name: str, rows: pl.DataFrame, *, tried: int) -> Iterator[SiteEvent]:
    """Every change of an application's habits, each between the one before and the one after it."""
    places = sorted(_change_places(rows, 0, rows.height, tried=tried))
    edges = [0, *(place for place, _, _ in places), rows.height]
    for number, (place, probability, columns) in enumerate(places):
        first, end = edges[number], edges[number + 2]
        yield _changed(name, rows[first:end], place - first, probability, columns)


def _change_places(
    rows: pl.DataFrame, first: int, end: int, *, tried: int
) -> Iterator[tuple[int, float, tuple[str, ...]]]:
    """The place of the surest change, the numbers that moved then; then on either side of it."""
    part = rows[first:end]
    if part.height < 2 * limits.FEWEST:
        return
    groups = _comparable_groups(part)
    certain = [
        (change, column)
        for column, is_share in HABITS
        if (change := find_change(part, column, groups, is_share=is_share, tried=tried)) is not None
    ]
    if not certain:
        return
    (probability, place), _ = min(certain)
    times = part["start"].to_numpy()
    together = [
        column for change, column in certain if abs(times[change.place] - times[place]) <= 3 * DAY
    ]
    yield first + place, probability, tuple(together)
    yield from _change_places(rows, first, first + place, tried=tried)
    yield from _change_places(rows, first + place, end, tried=tried)


def _changed(
    name: str, rows: pl.DataFrame, place: int, probability: float, columns: tuple[str, ...]
) -> SiteEvent:
    evidence: dict[str, Any] = {}
    for column in (*columns, *COSTS):
        numbers = rows[column].cast(pl.Float64).fill_nan(None)
        before, after = numbers[:place].median(), numbers[place:].median()
        evidence[column] = {"before": before, "after": after}
    old, new = (evidence["io_stall_share"][key] or 0.0 for key in ("before", "after"))
    hours = float(rows["node_hours"][place:].sum())
    times = rows["start"].to_numpy()
    return SiteEvent(
        "changed-application",
        name,
        float(times[place]),
        None,
        {
            **evidence,
            "jobs_before": place,
            "jobs_after": rows.height - place,
            "last_before": float(times[place - 1]),
        },
        probability,
        max(0.0, new - old) * hours,
    )


class FoundChange(NamedTuple):
    """Where a number changed, and how likely chance made it."""

    probability: float
    place: int


def find_change(
    rows: pl.DataFrame, column: str, groups: Ints, *, is_share: bool, tried: int
) -> FoundChange | None:
    """Return a number's largest change where it is certain, among groups of comparable jobs."""
    number = rows[column].cast(pl.Float64)
    if number.null_count() > rows.height / 2:
        return None
    values = number.fill_null(0.0).to_numpy() if is_share else np.log1p(number.fill_null(0.0))
    ranked = Ranked.of(np.asarray(values), groups)
    split = ranked.split()
    if split is None or split.score == 0.0:
        return None
    moved = _median_shift(np.asarray(values), groups, split.place)
    if moved < (limits.CHANGED_SHARE if is_share else math.log(limits.CHANGED)):
        return None
    probability = min(1.0, ranked.chance_of(split) * tried)
    return FoundChange(probability, split.place) if probability <= limits.CERTAIN else None


def _comparable_groups(rows: pl.DataFrame) -> Ints:
    """Number groups of similar scale and volume: a larger input does not change the program."""
    volume = (pl.col("bytes") + 1).log(2).floor().cast(pl.Int64)
    return (
        rows.select(pl.struct("ranks", volume).rank("dense").cast(pl.Int64)).to_series().to_numpy()
    )


def _median_shift(values: Floats, groups: Ints, place: int) -> float:
    """The median change over jobs that have comparable jobs on the other side of the place."""
    after = np.arange(len(values)) >= place
    moves: list[float] = []
    for group in np.unique(groups):
        sides = [values[(groups == group) & side] for side in (~after, after)]
        fewer = min(map(len, sides))
        if fewer:
            moves += [_median(sides[1]) - _median(sides[0])] * fewer
    return abs(_median(np.array(moves))) if moves else 0.0


def _median(values: Floats) -> float:
    return float(np.median(values))


def noisy_neighbours(jobs: pl.DataFrame) -> Iterator[SiteEvent]:
    """Applications beside whose jobs others stall longer than usual.

    Each job is compared with the median of its application, so that only the neighbour differs.
    """
    known = jobs.drop_nulls(["start", "application"]).filter(
        (pl.col("runtime") > 0) & (pl.col("io_stall") > 0)
    )
    if known.height < 4 * limits.FEWEST:
        return
    share = pl.col("io_stall") / pl.col("runtime")
    usual = share.median().over("application")
    known = known.with_columns(slower=share / usual).sort("start")
    start, end = known["start"].to_numpy(), (known["start"] + known["runtime"]).to_numpy()
    names = known["application"].to_list()
    applications = sorted(set(names))
    number_of = {name: number for number, name in enumerate(applications)}
    own = np.array([number_of[name] for name in names])
    for number, name in enumerate(applications):
        theirs = np.flatnonzero(own == number)
        beside = _overlaps(start, end, theirs)
        beside &= own != number
        apart = ~beside & (own != number)
        event = _suffering("noisy-neighbour", name, known, beside, apart, tried=len(applications))
        if event is not None:
            # Others see only some of its runs: where they are rare, too late and not to the end.
            yield replace(event, start=float(start[theirs].min()), end=float(end[theirs].max()))


def busy_servers(jobs: pl.DataFrame) -> Iterator[SiteEvent]:
    """Applications whose jobs stall longer while others keep the servers busy.

    A job is compared with jobs of its application with as many ranks and a similar volume. The
    third of them beside which others moved most is busy, the third beside which least, quiet.
    """
    if "others_rate" not in jobs.columns:
        return  # nothing is known of the servers
    volume = (pl.col("bytes_read") + pl.col("bytes_written") + 1).log(2).floor()
    alike = ["application", "ranks", volume]
    place = pl.col("others_rate").rank("ordinal").over(alike) / pl.len().over(alike)
    known = (
        jobs.drop_nulls(["start", "application", "others_rate"])
        .filter(pl.col("io_stall") > 0)
        .with_columns(slower=pl.col("io_stall") / pl.col("io_stall").median().over(alike))
        .with_columns(place=place, many=pl.len().over(alike))
        .filter(pl.col("many") >= limits.FEWEST)
    )
    applications = known.partition_by("application", as_dict=True)
    for (name,), rows in applications.items():
        busy, quiet = (rows["place"] > 2 / 3).to_numpy(), (rows["place"] <= 1 / 3).to_numpy()
        rates = rows["others_rate"].to_numpy()
        if not (busy.any() and quiet.any()):
            continue
        most, least = float(np.median(rates[busy])), float(np.median(rates[quiet]))
        if most < limits.LARGER * least:
            continue
        event = _suffering("busy-servers", str(name), rows, busy, quiet, tried=len(applications))
        if event is not None:
            more = {"others_rate_busy": most, "others_rate_quiet": least}
            yield replace(event, evidence={**event.evidence, **more})


def _overlaps(start: np.ndarray, end: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Whether each job runs at the same time as one of these."""
    begins, ends = np.sort(start[of]), np.sort(end[of])
    begun = np.searchsorted(begins, end, side="left")
    ended = np.searchsorted(ends, start, side="right")
    running: np.ndarray = begun > ended
    return running


def _suffering(
    kind: str,
    subject: str,
    jobs: pl.DataFrame,
    beside: np.ndarray,
    apart: np.ndarray,
    *,
    tried: int,
) -> SiteEvent | None:
    """Compare jobs in bad company with those apart from it; None where chance may explain it."""
    if beside.sum() < 2 * limits.FEWEST or apart.sum() < 2 * limits.FEWEST:
        return None
    slower, times = jobs["slower"].to_numpy(), jobs["start"].to_numpy()[beside]
    factor = float(np.median(slower[beside]) / np.median(slower[apart]))
    if factor < limits.CHANGED:
        return None
    probability = min(1.0, rank_sum(slower[beside], slower[apart]) * tried)
    if probability > limits.CERTAIN:
        return None
    return SiteEvent(
        kind,
        subject,
        float(times.min()),
        float(times.max()),
        {"factor": factor, "jobs_beside": int(beside.sum()), "jobs_apart": int(apart.sum())},
        probability,
        float(jobs["io_stall_node_hours"].to_numpy()[beside].sum()) * (1 - 1 / factor),
    )
