"""One job as rows of the site tables."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ioprism.characteristics.breakdown import by_file, by_host, by_target
from ioprism.characteristics.totals import Characteristics, characterise
from ioprism.engine.base import Engine
from ioprism.formats.darshan.meaning import MODULES
from ioprism.model.trace import Trace
from ioprism.model.verdict import Cause, Verdict

HOUR = 3600.0
ROUNDING = 1e-3  # rates that differ by less are the same
MOST_PATTERNS = 20  # of a job: those that take longest
Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What is known of a job beside its trace."""

    digest: str
    path: Path
    cores_per_node: int = 1  # to estimate nodes where the log does not name them


def job_rows(trace: Trace, verdict: Verdict, engine: Engine, facts: JobFacts) -> Rows:
    """Return the rows of every table."""
    characteristics = characterise(trace, engine)
    ranks = trace.population.ranks or 1
    nodes = characteristics.hosts or -(-ranks // facts.cores_per_node)
    runtime = trace.job.runtime or verdict.runtime
    hours = nodes * runtime / HOUR
    per_second = nodes / HOUR
    return {
        "jobs": [
            {
                "job": facts.digest,
                "path": str(facts.path),
                **_program(trace),
                "runtime": runtime,
                "ranks": ranks,
                "nodes": nodes,
                "node_hours": hours,
                "io_stall": verdict.io_stall.seconds,
                "io_stall_node_hours": verdict.io_stall.seconds * per_second,
                "first_cause": verdict.first,
                "saving": _saving(verdict),
                "saving_node_hours": _saving(verdict) * per_second,
                **_amounts(characteristics),
                "collective": _collective(trace),
                "layers": "+".join(characteristics.by_layer),
                "files": characteristics.files,
                "stripe_count": trace.files["stripe_count"].mean(),
                "warnings": len(trace.completeness.warnings),
            }
        ],
        "causes": [_cause(facts.digest, cause, per_second) for cause in verdict.causes],
        "targets": _parts(by_target(trace, engine), "target", trace, facts.digest),
        "hosts": _parts(by_host(trace, engine), "host", trace, facts.digest),
        "files": _patterns(trace, engine, facts.digest),
    }


def _program(trace: Trace) -> dict[str, Any]:
    job = trace.job
    words = (job.executable or "").split()
    return {
        "job_id": job.job_id,
        "user": None if job.user is None else str(job.user),
        "application": Path(words[0]).name if words else None,
        "start": job.start_time,
    }


def _saving(verdict: Verdict) -> float:
    return min(verdict.io_stall.seconds, sum(c.saving.seconds for c in verdict.causes))


def _amounts(characteristics: Characteristics) -> dict[str, Any]:
    read, write, other = (
        characteristics.by_operation[kind] for kind in ("read", "write", "metadata")
    )
    calls, moved = read.operations + write.operations, read.bytes + write.bytes
    seconds = read.time + write.time
    return {
        "bytes_read": read.bytes,
        "bytes_written": write.bytes,
        "operations": calls,
        "metadata": other.operations,
        "request_bytes": moved / calls if calls else None,
        "rate": moved / seconds if moved and seconds > 0 else None,
    }


def _collective(trace: Trace) -> float | None:
    """The share of collective calls among the job's MPI-IO reads and writes."""
    table = trace.counters.get("MPI-IO")
    if table is None or not table.height:
        return None
    module = MODULES["MPI-IO"]

    def total(counters: Mapping[str, Sequence[str]]) -> int:
        names = {module.counter_name(name) for names in counters.values() for name in names}
        return int(table.select(pl.sum_horizontal(pl.col(sorted(names)).sum())).item() or 0)

    every = total(module.calls)
    return total(module.collective) / every if every else None


def _cause(digest: str, cause: Cause, per_second: float) -> dict[str, Any]:
    return {
        "job": digest,
        "code": cause.code,
        "subject": ", ".join(f"{key} {value}" for key, value in cause.culprit.items()),
        "culprit": json.dumps(dict(cause.culprit), default=str),
        "saving": cause.saving.seconds,
        "low": cause.saving.low,
        "high": cause.saving.high,
        "node_hours": cause.saving.seconds * per_second,
        "confidence": cause.confidence,
        "title": cause.title,
        "advice": cause.advice[0].text if cause.advice else None,
    }


def _parts(table: pl.DataFrame, key: str, trace: Trace, digest: str) -> list[dict[str, Any]]:
    """Rows of targets or nodes that moved data, each beside the others of its job."""
    if table.height < 2:
        return []
    moved = pl.col("bytes_read") + pl.col("bytes_written")
    used = table.filter((moved > 0) & (pl.col("seconds") > 0)).with_columns(bytes=moved)
    if used.height < 2:
        return []
    rates = sorted(used["rate"].to_list())
    # Counters of files over several targets are shared evenly: they tell nothing of one target.
    told_apart = rates[-1] > (1 + ROUNDING) * rates[0]
    rows = used.select(key, "operations", "bytes", "seconds", "rate").rows(named=True)
    return [
        {
            **row,
            "job": digest,
            "start": trace.job.start_time,
            key: str(row[key]),
            "relative": row["rate"] / _median_without(rates, row["rate"]) if told_apart else None,
        }
        for row in rows
    ]


def _median_without(ordered: list[float], one: float) -> float:
    """The median of sorted numbers, one of which is left out."""
    place, last = bisect_left(ordered, one), len(ordered) - 2
    low, high = (ordered[i + (place <= i)] for i in (last // 2, (last + 1) // 2))
    return (low + high) / 2


def _patterns(trace: Trace, engine: Engine, digest: str) -> list[dict[str, Any]]:
    used = by_file(trace, engine).filter(pl.col("bytes_read") + pl.col("bytes_written") > 0)
    if not used.height:
        return []
    # Layers of one file tell the same bytes again: the one with most counts.
    once = used.unique("file", keep="first", maintain_order=True)
    named = once.join(
        trace.files.select("file", "pattern"), on="file", how="inner", maintain_order="left"
    )
    sums = named.group_by("pattern", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("files"),
        pl.col("bytes_read", "bytes_written", "seconds").sum(),
    )
    kept = sums.sort("seconds", "pattern", descending=[True, False]).head(MOST_PATTERNS)
    return [{"job": digest, **row} for row in kept.rows(named=True)]
