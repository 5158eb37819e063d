"""What happened to a centre: sick targets and nodes, applications that changed, neighbours.

Each question is asked of many targets, nodes and applications, so a probability counts only
after it is multiplied by how many were asked (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from ioprism.analyses.site.change_point import FEWEST, changed_at, lowest_stretch

CERTAIN = 0.001  # probability of chance, after correction
SLOWER = 0.7  # a sick part reaches less than this share of its peers' rate
CHANGED = 1.3  # a number changed where it grew, or shrank, by this factor
CHANGED_SHARE = 0.2  # and a share, where it moved by so much
SUFFERS = 1.3  # jobs beside a noisy neighbour are held up so many times as long
DAY = 86400.0

# Numbers of a job that tell how an application does its I/O, and whether they are shares.
HABITS = (
    ("request_bytes", False), ("collective", True), ("metadata", False), ("operations", False),
    ("bytes", False), ("stripe_count", False), ("files", False), ("ranks", False),
)  # fmt: skip
COSTS = (("held_up_share", True), ("rate", False))


@dataclass(frozen=True, slots=True)
class SiteEvent:
    """Something that began, and perhaps ended, at a time."""

    kind: str  # slow-target, slow-node, changed-application, noisy-neighbour
    subject: str
    start: float  # seconds since 1970
    end: float | None
    evidence: dict[str, Any] = field(default_factory=dict)
    probability: float = 0.0  # that chance alone looks like this
    node_hours: float = 0.0  # that jobs lost to it

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "kind": self.kind,
            "subject": self.subject,
            "from": self.start,
            "to": self.end,
            "evidence": self.evidence,
            "probability": self.probability,
            "node_hours": self.node_hours,
        }


def site_events(
    jobs: pl.DataFrame, causes: pl.DataFrame, targets: pl.DataFrame, hosts: pl.DataFrame
) -> list[SiteEvent]:
    """Return everything that happened with certainty, the most costly first."""
    found = [
        *_slow_parts(targets, "target", "slow-target", causes),
        *_slow_parts(hosts, "host", "slow-node", causes),
        *_changed_applications(jobs),
        *_noisy_neighbours(jobs),
    ]
    return sorted(found, key=lambda event: (-event.node_hours, event.start))


def _slow_parts(
    parts: pl.DataFrame, key: str, kind: str, causes: pl.DataFrame
) -> Iterator[SiteEvent]:
    known = parts.drop_nulls("start").sort("start")
    groups = known.partition_by(key, as_dict=True, include_key=False)
    for (name,), rows in groups.items():
        relative = rows["relative"].to_numpy()
        stretch = lowest_stretch(relative)
        if stretch is None:
            continue
        inside = rows[stretch.first : stretch.last + 1]
        outside = np.delete(relative, slice(stretch.first, stretch.last + 1))
        slow, normal = float(inside["relative"].median() or 1.0), float(np.median(outside))  # type: ignore[arg-type]
        probability = min(1.0, stretch.probability * len(groups))
        if probability > CERTAIN or slow > SLOWER * normal:
            continue
        inside, start, end = _sharpened(rows, inside, slow, normal)
        lost = causes.filter(
            (pl.col("code") == kind) & pl.col("job").is_in(inside["job"].implode())
        )
        yield SiteEvent(
            kind,
            str(name),
            start,
            end,
            {"relative_rate": slow / normal, "jobs": inside.height, "before_and_after": normal},
            probability,
            float(lost["node_hours"].sum()),
        )


def _sharpened(
    rows: pl.DataFrame, inside: pl.DataFrame, slow: float, normal: float
) -> tuple[pl.DataFrame, float, float]:
    """Move both ends to where values are nearer to the slow ones than to the normal ones."""
    border = float(np.sqrt(slow * normal))
    low = rows["relative"].to_numpy() < border
    start = rows["start"].to_numpy()
    first, last = (int(np.searchsorted(start, inside["start"][edge])) for edge in (0, -1))
    while first > 0 and low[first - 1]:
        first -= 1
    while first < last and not low[first]:
        first += 1
    while last + 1 < len(low) and low[last + 1]:
        last += 1
    while last > first and not low[last]:
        last -= 1
    chosen = rows[first : last + 1]
    return chosen, float(chosen["start"][0]), float(chosen["start"][-1])


def _changed_applications(jobs: pl.DataFrame) -> Iterator[SiteEvent]:
    known = jobs.drop_nulls(["start", "application"]).with_columns(
        bytes=pl.col("bytes_read") + pl.col("bytes_written"),
        held_up_share=pl.col("held_up") / pl.col("runtime"),
    )
    groups = known.partition_by("application", as_dict=True, include_key=False)
    for (name,), rows in groups.items():
        yield from _changes(str(name), rows.sort("start"), tried=len(groups) * len(HABITS))


def _changes(name: str, rows: pl.DataFrame, *, tried: int) -> Iterator[SiteEvent]:
    """The change of an application's habits: the surest number, with those that moved with it."""
    if rows.height < 2 * FEWEST:
        return
    found = []
    for column, is_share in HABITS:
        values = rows[column].cast(pl.Float64).to_numpy()
        if np.isnan(values).mean() > 0.5:
            continue
        split = changed_at(np.nan_to_num(values, nan=0.0))
        if split is None or split.probability * tried > CERTAIN:
            continue
        before, after = _medians(values, split.place)
        if _moved(before, after, is_share=is_share):
            found.append((split.probability, split.place, column, before, after))
    if not found:
        return
    probability, place, _, _, _ = min(found)
    times = rows["start"].to_numpy()
    lasting = [entry for entry in found if abs(times[entry[1]] - times[place]) <= 3 * DAY]
    evidence: dict[str, Any] = {
        column: {"before": before, "after": after} for _, _, column, before, after in lasting
    }
    for column, _ in COSTS:
        before, after = _medians(rows[column].cast(pl.Float64).to_numpy(), place)
        evidence[column] = {"before": before, "after": after}
    old, new = (evidence["held_up_share"][key] or 0.0 for key in ("before", "after"))
    hours = float(rows["node_hours"][place:].sum())
    yield SiteEvent(
        "changed-application",
        name,
        float(times[place]),
        None,
        {**evidence, "jobs_before": place, "jobs_after": rows.height - place},
        min(1.0, probability * tried),
        max(0.0, new - old) * hours,
    )


def _medians(values: np.ndarray, place: int) -> tuple[float | None, float | None]:
    parts = (values[:place], values[place:])
    known = [part[~np.isnan(part)] for part in parts]
    before, after = (float(np.median(part)) if len(part) else None for part in known)
    return before, after


def _moved(before: float | None, after: float | None, *, is_share: bool) -> bool:
    if before is None or after is None:
        return False
    if is_share:
        return abs(after - before) >= CHANGED_SHARE
    low, high = sorted((before, after))
    return high > 0 and (low <= 0 or high / low >= CHANGED)


def _noisy_neighbours(jobs: pl.DataFrame) -> Iterator[SiteEvent]:
    """Applications beside whose jobs others are held up longer than usual.

    Each job is compared with the median of its own application, so that only the company of
    the neighbour differs.
    """
    known = jobs.drop_nulls(["start", "application"]).filter(
        (pl.col("runtime") > 0) & (pl.col("held_up") > 0)
    )
    if known.height < 4 * FEWEST:
        return
    share = pl.col("held_up") / pl.col("runtime")
    usual = share.median().over("application")
    known = known.with_columns(slower=share / usual).sort("start")
    start, end = known["start"].to_numpy(), (known["start"] + known["runtime"]).to_numpy()
    slower, names = known["slower"].to_numpy(), known["application"].to_list()
    applications = sorted(set(names))
    own = np.array([applications.index(name) for name in names])
    for number, name in enumerate(applications):
        theirs = np.flatnonzero(own == number)
        beside = _overlaps(start, end, theirs)
        beside &= own != number
        others = ~beside & (own != number)
        event = _suffering(beside, others, slower, known, name, tried=len(applications))
        if event is not None:
            yield event


def _overlaps(start: np.ndarray, end: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Whether each job runs at the same time as one of these."""
    begins, ends = np.sort(start[of]), np.sort(end[of])
    begun = np.searchsorted(begins, end, side="left")
    ended = np.searchsorted(ends, start, side="right")
    running: np.ndarray = begun > ended
    return running


def _suffering(
    beside: np.ndarray,
    others: np.ndarray,
    slower: np.ndarray,
    jobs: pl.DataFrame,
    name: str,
    *,
    tried: int,
) -> SiteEvent | None:
    if beside.sum() < 2 * FEWEST or others.sum() < 2 * FEWEST:
        return None
    factor = float(np.median(slower[beside]) / np.median(slower[others]))
    probability = min(1.0, _rank_sum(slower[beside], slower[others]) * tried)
    if factor < SUFFERS or probability > CERTAIN:
        return None
    held_up = float(jobs.filter(pl.Series(beside))["held_up_node_hours"].sum())
    times = jobs["start"].to_numpy()[beside]
    evidence = {"factor": factor, "jobs_beside": int(beside.sum()), "jobs_apart": int(others.sum())}
    return SiteEvent(
        "noisy-neighbour", name, float(times.min()), float(times.max()), evidence, probability,
        held_up * (1 - 1 / factor),
    )  # fmt: skip


def _rank_sum(first: np.ndarray, second: np.ndarray) -> float:
    """How likely chance makes the first values this much larger (Mann-Whitney, one-sided)."""
    from math import erfc, sqrt

    joined = np.concatenate([first, second])
    order = np.argsort(joined, kind="stable")
    ranks = np.empty(len(joined))
    ranks[order] = np.arange(1, len(joined) + 1)
    n, m = len(first), len(second)
    excess = ranks[:n].sum() - n * (n + m + 1) / 2
    deviation = sqrt(n * m * (n + m + 1) / 12)
    return 0.5 * erfc(excess / deviation / sqrt(2))
