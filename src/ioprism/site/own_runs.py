"""This run among the earlier runs of its program: what is unusual, and what is new."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl

from ioprism.diagnosis.rows import Floats
from ioprism.model.history import AchievedRate, History, MetricHistory
from ioprism.model.layers import MIB
from ioprism.site.events import CHANGED_SHARE, HABITS, find_change
from ioprism.text import printable
from ioprism.units import format_amount, format_bytes, format_counted, format_seconds

MIN_RUNS = 8  # earlier runs for a median and a spread
SIMILAR_SCALE = 1.25  # factor between ranks, and between bytes, of runs that are compared
UNUSUAL = 1.3  # factor from the median, as for a program that changed
DEVIATIONS = 4.0  # robust standard deviations from the median: 1 of 16,000 normal numbers
MIN_SPREAD = 0.05  # of the logarithm: healthy runs differ by this much (simulated storage)
SURPASSED = 0.95  # of the earlier runs, for what is new
SURPASSED_TIME = 0.75  # for times: bad company and sick targets slow down one run in ten or more
NEW_SIZE = 1.5  # factor from every earlier request size of the operation
MAIN_PART = 0.1  # of an operation's requests, or of its time
MAX_POINTS = 200  # earlier runs that a chart shows: the latest

METRICS = (  # column, name in a sentence, unit
    ("runtime", "run time", "s"),
    ("io_stall", "I/O stall time", "s"),
    ("rate", "rate of reads and writes", "B/s"),
    ("request_bytes", "request size", "B"),
    ("operations", "number of reads and writes", "count"),
    ("metadata", "number of metadata calls", "count"),
    ("files", "number of files", "count"),
    ("stripe_count", "stripe count", "count"),
    ("collective", "share of collective calls", "share"),
)
SLOWNESS = ("runtime", "io_stall")


def own_history(
    facts: Mapping[str, Any],
    rows: Sequence[AchievedRate],
    jobs: pl.DataFrame,
    rates: pl.DataFrame,
) -> History:
    """Compare a run with the earlier ones of its program at similar scale.

    Args:
        facts: of the run, as the table `jobs` has them.
        rows: the ways in which it moves data.
        jobs: all other jobs of the site.
        rates: their ways of moving data.
    """
    earlier = earlier_runs(facts, jobs)
    since = float(earlier["start"][0]) if earlier.height else None
    program = None if facts["application"] is None else printable(str(facts["application"]))
    if earlier.height < MIN_RUNS:
        return History(program, earlier.height, since)
    metrics = {
        column: _metric(name, unit, float(facts[column]), earlier.drop_nulls(column), column)
        for column, name, unit in METRICS
        if facts[column] is not None and earlier[column].count() >= MIN_RUNS
    }
    lines = [*_slowness(metrics, earlier), *_habits(facts, rows, metrics, earlier, rates)]
    return History(program, earlier.height, since, tuple(lines), tuple(metrics.values()))


def earlier_runs(facts: Mapping[str, Any], jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the earlier runs of the same program with similar ranks and bytes, oldest first."""
    if facts["application"] is None or facts["start"] is None:
        return jobs.clear()
    moved = facts["bytes_read"] + facts["bytes_written"]
    total = pl.col("bytes_read") + pl.col("bytes_written")
    return jobs.filter(
        (pl.col("application") == facts["application"])
        & (pl.col("start") < facts["start"])
        & _near(pl.col("ranks"), facts["ranks"])
        & _near(total, moved)
    ).sort("start")


def _near(column: pl.Expr, value: float) -> pl.Expr:
    return column.is_between(value / SIMILAR_SCALE, value * SIMILAR_SCALE)


def _metric(
    name: str, unit: str, value: float, earlier: pl.DataFrame, column: str
) -> MetricHistory:
    numbers = earlier[column].cast(pl.Float64).to_numpy()
    low, middle, high = (float(x) for x in np.quantile(numbers, (0.1, 0.5, 0.9)))
    latest = earlier.select("start", pl.col(column).cast(pl.Float64)).tail(MAX_POINTS)
    return MetricHistory(
        name=name,
        unit=unit,
        value=value,
        median=middle,
        lower_tenth=low,
        upper_tenth=high,
        above=int((numbers < value).sum()),
        unusual=_is_unusual(
            value,
            numbers,
            is_share=unit == "share",
            surpassed=SURPASSED_TIME if column in SLOWNESS else SURPASSED,
        ),
        earlier=tuple(latest.iter_rows()),
    )


def _is_unusual(value: float, numbers: Floats, *, is_share: bool, surpassed: float) -> bool:
    """Whether a number is far from the earlier ones, and beyond most of them."""
    beyond = max(float((numbers < value).mean()), float((numbers > value).mean()))
    if beyond < surpassed:
        return False
    if is_share:
        here, there, least = value, numbers, CHANGED_SHARE
    else:
        here, there, least = math.log1p(max(0.0, value)), np.log1p(numbers), math.log(UNUSUAL)
    middle = float(np.median(there))
    spread = max(MIN_SPREAD, 1.4826 * float(np.median(np.abs(there - middle))))
    return abs(here - middle) > max(least, DEVIATIONS * spread)


def _slowness(metrics: Mapping[str, MetricHistory], earlier: pl.DataFrame) -> Iterator[str]:
    """Say whether the run, or its I/O, takes unusually long or short."""
    for column in SLOWNESS:
        metric = metrics.get(column)
        if metric is None or not metric.unusual:
            continue
        longer = metric.value > metric.median
        count = metric.above if longer else earlier.height - metric.above
        runs = format_counted(earlier.height, "earlier run")
        usual = format_seconds(metric.median)
        yield (
            f"{'Slower' if longer else 'Faster'} than {count:,} of its {runs} since "
            f"{_day(earlier['start'][0])}: {metric.name} {format_seconds(metric.value)}, "
            f"usually {usual}."
        )
        return  # a longer stall makes the run longer: one sentence says both


def _habits(
    facts: Mapping[str, Any],
    rows: Sequence[AchievedRate],
    metrics: Mapping[str, MetricHistory],
    earlier: pl.DataFrame,
    rates: pl.DataFrame,
) -> Iterator[str]:
    """Say what the program does otherwise than before, in this run or since a date."""
    new = list(_new_sizes(rows, earlier, rates))
    yield from new
    for column, is_share in HABITS:
        metric = metrics.get(column)
        if metric is None or (new and column in ("request_bytes", "operations")):
            continue
        changed = _changed_since(facts, earlier, column, is_share=is_share)
        if changed is not None:
            yield changed
        elif metric.unusual:
            yield (
                f"New in this run: {metric.name} {format_amount(metric.value, metric.unit)}, "
                f"usually {format_amount(metric.median, metric.unit)}."
            )


def _new_sizes(
    rows: Sequence[AchievedRate], earlier: pl.DataFrame, rates: pl.DataFrame
) -> Iterator[str]:
    """Request sizes that no earlier run had in this operation."""
    before = rates.join(earlier.select("job"), on="job", how="semi").with_columns(
        size=pl.col("bytes") / pl.col("requests")
    )
    for operation in ("read", "write"):
        past = before.filter((pl.col("operation") == operation) & (pl.col("bytes") >= MIB))
        mine = [row for row in rows if row.operation == operation and row.bytes >= MIB]
        if past["job"].n_unique() < MIN_RUNS:
            continue
        known, requests = past["size"].to_numpy(), sum(row.requests for row in mine)
        seconds = sum(row.seconds for row in mine)
        for row in mine:
            main = row.requests >= MAIN_PART * requests or row.seconds >= MAIN_PART * seconds
            ratio = np.maximum(known / row.request_bytes, row.request_bytes / known)
            if main and float(ratio.min()) >= NEW_SIZE:
                yield (
                    f"{operation.capitalize()}s of {format_bytes(row.request_bytes)} are new: "
                    f"earlier runs {'wrote' if operation == 'write' else 'read'} "
                    f"{format_bytes(float(np.median(known)))} at a time."
                )


def _changed_since(
    facts: Mapping[str, Any], earlier: pl.DataFrame, column: str, *, is_share: bool
) -> str | None:
    """Say that a number changed for good some runs ago, this run being one of the later ones."""
    names = ["start", column, "ranks", "bytes_read", "bytes_written"]
    this = pl.DataFrame({name: [facts[name]] for name in names}, schema_overrides={
        name: earlier.schema[name] for name in names})  # fmt: skip
    series = pl.concat([earlier.select(names), this])
    alike = np.zeros(series.height, np.int64)  # they are of similar scale already
    change = find_change(series, column, alike, is_share=is_share, tried=len(HABITS))
    if change is None:
        return None
    title, unit = next((name, unit) for key, name, unit in METRICS if key == column)
    before, after = (
        format_amount(float(part[column].drop_nulls().median() or 0.0), unit)  # type: ignore[arg-type]
        for part in (series[: change.place], series[change.place :])
    )
    runs = format_counted(series.height - change.place, "run")
    day = _day(series["start"][change.place])
    return f"Since {day} ({runs}), {title} is {after}; before, it was {before}."


def _day(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment.day} {moment:%B %Y}"
