"""One gate for the events of all readers: what cannot be true is left out, and counted.

Traces are untrusted, and a single call of 1e308 seconds or -5 bytes would make every sum of an
answer wrong. Readers pass on what a trace says; this is where it is judged.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ioprism.formats.partition_steps import add_step
from ioprism.model.layers import LARGEST_PLAUSIBLE, MOST_RANKS
from ioprism.model.trace import Job, Trace, Warn
from ioprism.units import format_counted

if TYPE_CHECKING:  # small signals are read without a table library
    import polars as pl

    from ioprism.formats.partition_steps import Batches

LATEST = 1e11  # seconds; beyond any clock
SIZES = ("bytes", "offset")


def leave_out_impossible(batches: Batches, warn: Warn, *, source: str) -> Batches:
    """Pass on what is plausible; warn about what was left out of a trace."""
    impossible = dict.fromkeys(("times", *SIZES), 0)
    for batch in batches:
        implausible = batch.select(times=_wrong_times(), **_wrong_sizes()).sum().collect()
        for name, number in implausible.row(0, named=True).items():
            impossible[name] += number or 0
        yield _sound(batch) if sum(implausible.row(0)) else batch
    _warn_of_impossible(impossible, lambda message: warn(f"{source}: {message}"))


def _wrong_times() -> pl.Expr:
    import polars as pl

    start, end = pl.col("start"), pl.col("end")
    sound = (start.abs() < LATEST) & (end.abs() < LATEST) & (end >= start)
    return sound.fill_null(False).not_()  # NaN compares as larger than every number


def _possible(name: str) -> pl.Expr:
    import polars as pl

    return pl.col(name).is_between(0, LARGEST_PLAUSIBLE)


def _wrong_sizes() -> dict[str, pl.Expr]:
    """Sizes that a call which counts gives, and that cannot be."""
    counts = _wrong_times().not_()
    return {name: _possible(name).not_().fill_null(False) & counts for name in SIZES}


def _sound(batch: pl.LazyFrame) -> pl.LazyFrame:
    import polars as pl

    kept = [pl.when(_possible(name)).then(pl.col(name)).alias(name) for name in SIZES]
    return batch.filter(_wrong_times().not_()).with_columns(kept)


def _warn_of_impossible(impossible: dict[str, int], warn: Warn) -> None:
    if impossible["times"]:
        warn(f"{format_counted(impossible['times'], 'call')} with impossible times left out")
    for name in SIZES:
        if impossible[name]:
            what = "size" if name == "bytes" else "offset"
            many = format_counted(impossible[name], "call")
            warn(f"{many} with an impossible {what}, which is left out")


def _plausible_job(job: Job, warn: Warn) -> Job:
    for name in ("runtime", "start_time", "end_time"):
        value = getattr(job, name)
        if value is not None and not 0 <= value < LATEST:
            what = name.replace("_", " ")
            warn(f"the job's {what} of {value:g} s is impossible; it is left out")
            changed: dict[str, Any] = {name: None}
            job = replace(job, **changed)
    if job.ranks is not None and not 0 <= job.ranks <= MOST_RANKS:
        warn("the job's number of ranks is impossible; it is left out")
        job = replace(job, ranks=None)
    return job


def check_plausibility(trace: Trace) -> Trace:
    """Return a trace without events and facts about the job that cannot be true."""
    name = trace.paths[0].name if trace.paths else trace.format
    check = partial(leave_out_impossible, source=name)
    return trace.derive(
        job=_plausible_job(trace.job, trace.completeness.warn),
        partitions=tuple(
            # Some readers have judged every event themselves.
            one if getattr(one, "judged", False) else add_step(one, check)
            for one in trace.partitions
        ),
    )
