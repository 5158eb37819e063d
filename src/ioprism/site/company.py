"""Which jobs suffer from others: beside which program, and while the servers are busy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from ioprism.site.change_point import FEWEST
from ioprism.site.event import CERTAIN, SiteEvent

SUFFERS = 1.3  # jobs that run with it stall this many times as long
BUSIER = 1.5  # and others keep the servers so many times as busy as in the quiet third


def noisy_neighbours(jobs: pl.DataFrame) -> Iterator[SiteEvent]:
    """Applications beside whose jobs others stall longer than usual.

    Each job is compared with the median of its own application, so that only the company of
    the neighbour differs.
    """
    known = jobs.drop_nulls(["start", "application"]).filter(
        (pl.col("runtime") > 0) & (pl.col("io_stall") > 0)
    )
    if known.height < 4 * FEWEST:
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
        .filter(pl.col("many") >= FEWEST)
    )
    applications = known.partition_by("application", as_dict=True)
    for (name,), rows in applications.items():
        busy, quiet = (rows["place"] > 2 / 3).to_numpy(), (rows["place"] <= 1 / 3).to_numpy()
        rates = rows["others_rate"].to_numpy()
        if not (busy.any() and quiet.any()):
            continue
        most, least = float(np.median(rates[busy])), float(np.median(rates[quiet]))
        if most < BUSIER * least:
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
    if beside.sum() < 2 * FEWEST or apart.sum() < 2 * FEWEST:
        return None
    slower, times = jobs["slower"].to_numpy(), jobs["start"].to_numpy()[beside]
    factor = float(np.median(slower[beside]) / np.median(slower[apart]))
    if factor < SUFFERS:
        return None
    probability = min(1.0, _rank_sum(slower[beside], slower[apart]) * tried)
    if probability > CERTAIN:
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


def _rank_sum(first: np.ndarray, second: np.ndarray) -> float:
    """How likely chance makes the first values this much larger (Mann-Whitney, one-sided)."""
    joined = np.concatenate([first, second])
    order = np.argsort(joined, kind="stable")
    ranks = np.empty(len(joined))
    ranks[order] = np.arange(1, len(joined) + 1)
    n, m = len(first), len(second)
    excess = ranks[:n].sum() - n * (n + m + 1) / 2
    deviation = math.sqrt(n * m * (n + m + 1) / 12)
    return 0.5 * math.erfc(excess / deviation / math.sqrt(2))
