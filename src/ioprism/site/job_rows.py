"""One job as rows of the site tables, with its names or without."""

from __future__ import annotations

import hmac
import json
import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from ioprism.characteristics.details import by_file, by_host, by_target
from ioprism.characteristics.totals import Characteristics, characterise
from ioprism.diagnosis.observed import Observed, achieved_rates
from ioprism.engine.base import Engine
from ioprism.formats.darshan.meaning import MODULES
from ioprism.model.trace import Trace, file_system_of
from ioprism.model.verdict import Cause, Verdict

ROUNDING = 1e-3  # rates that differ by less are the same
MOST_FILES = 20  # of a job: those that take longest, one by one
MOST_ROWS = 40  # of a job: files and kinds of files
# Columns that hold one name. `pattern` is a path too.
NAMES = ("user", "application", "path", "job_id", "pattern", "host", "file", "file_system")
PLAIN = ("operation",)  # of a culprit: words of ioprism, not of the user
Rows = dict[str, list[dict[str, Any]]]


def job_rows(
    trace: Trace,
    verdict: Verdict,
    observed: Observed | None,
    engine: Engine,
    *,
    digest: str,
    path: Path,
    cores_per_node: int | None,
) -> Rows:
    """Return the rows of every table; cores of a node are for logs that do not name their nodes."""
    characteristics = characterise(trace, engine)
    job = {"job": digest}
    rates = [] if observed is None else achieved_rates(observed, trace.job.mounts)
    return {
        "jobs": [
            {
                **job,
                "path": os.fsencode(path).decode("utf-8", "backslashreplace"),
                **run_facts(trace, verdict, characteristics),
                "job_id": trace.job.job_id,
                "user": None if trace.job.user is None else str(trace.job.user),
                "nodes": characteristics.hosts,
                "cores_per_node": cores_per_node,
                "status": verdict.status,
                "first_cause": verdict.first,
                "saving": None if verdict.status == "cannot-judge" else _saving(verdict),
                "layers": "+".join(characteristics.by_layer),
                "warnings": len(trace.completeness.warnings),
            }
        ],
        "causes": [_cause(digest, cause) for cause in verdict.causes],
        "targets": list(_targets(trace, engine, digest)),
        "hosts": _parts(by_host(trace, engine), "host", trace, digest),
        "files": _files(trace, engine, digest),
        "rates": [{**job, **asdict(rate)} for rate in rates],
    }


def run_facts(trace: Trace, verdict: Verdict, characteristics: Characteristics) -> dict[str, Any]:
    """Return the columns of a job that its other runs are compared by."""
    words = (trace.job.executable or "").split()
    judged = verdict.status != "cannot-judge"
    return {
        "application": Path(words[0]).name if words else None,
        "start": trace.job.start_time,
        "runtime": trace.job.runtime or verdict.runtime,
        "ranks": trace.population.ranks or 1,
        "io_stall": verdict.io_stall.seconds if judged else None,
        **_amounts(characteristics),
        "collective": _collective(trace),
        "files": characteristics.files,
        "stripe_count": trace.files["stripe_count"].mean(),
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


def _cause(digest: str, cause: Cause) -> dict[str, Any]:
    return {
        "job": digest,
        "code": cause.code,
        "subject": ", ".join(f"{key} {value}" for key, value in cause.culprit.items()),
        "culprit": json.dumps(dict(cause.culprit), default=str),
        "saving": cause.saving.seconds,
        "low": cause.saving.low,
        "high": cause.saving.high,
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


def _targets(trace: Trace, engine: Engine, digest: str) -> Iterator[dict[str, Any]]:
    """Rows of storage targets, file system by file system: both number them from 0."""
    striped = trace.files.filter(pl.col("targets").list.len() > 0)
    for (name,), files in _with_file_system(trace, striped).group_by("file_system"):
        for row in _parts(by_target(trace, engine, files=files), "target", trace, digest):
            yield {**row, "file_system": name}


def _with_file_system(trace: Trace, files: pl.DataFrame) -> pl.DataFrame:
    names = [file_system_of(path, trace.job.mounts) for path in files["path"].to_list()]
    return files.with_columns(file_system=pl.Series(names, dtype=pl.String))


def _files(trace: Trace, engine: Engine, digest: str) -> list[dict[str, Any]]:
    """The files that take longest, one by one, and the others by kind."""
    used = by_file(trace, engine).filter(pl.col("bytes_read") + pl.col("bytes_written") > 0)
    if not used.height:
        return []
    # Layers of one file count the same bytes again: the one with most counts.
    counted = used.with_columns(operations=pl.col("reads") + pl.col("writes")).drop("path")
    once = counted.unique("file", keep="first", maintain_order=True)
    names = _with_file_system(trace, trace.files.join(once, on="file", how="semi"))
    named = once.join(
        names.select("file", "path", "pattern", "file_system"), on="file", maintain_order="left"
    ).drop("file")
    alone = pl.when(pl.int_range(pl.len()) < MOST_FILES).then("path").alias("file")
    keys = ("file_system", "pattern", "file")
    sums = (
        named.with_columns(alone)
        .group_by(keys, maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("files"),
            pl.col("operations", "bytes_read", "bytes_written", "seconds").sum(),
        )
    )
    kept = sums.sort("seconds", *keys, descending=[True, False, False, False])
    return [{"job": digest, **row} for row in kept.head(MOST_ROWS).rows(named=True)]


def anonymous(rows: Rows, key: bytes) -> Rows:
    """Replace names by digests, and sentences that may hold names by the code of their cause."""
    return {table: [_anonymous_row(row, key) for row in lines] for table, lines in rows.items()}


def _anonymous_row(row: Mapping[str, Any], key: bytes) -> dict[str, Any]:
    hidden = {
        name: _hidden(name, value, key) if name in NAMES else value for name, value in row.items()
    }
    return hidden if "culprit" not in row else {**hidden, **_anonymous_cause(row, key)}


def _anonymous_cause(row: Mapping[str, Any], key: bytes) -> dict[str, Any]:
    culprit = {
        name: value if name in PLAIN else _hidden(name, value, key)
        for name, value in json.loads(row["culprit"]).items()
    }
    return {
        "culprit": json.dumps(culprit),
        "subject": ", ".join(f"{name} {value}" for name, value in culprit.items()),
        "title": row["code"].replace("-", " ").capitalize(),
        "advice": None,
    }


def _hidden(name: str, value: Any, key: bytes) -> Any:  # noqa: ANN401 - cells are of any kind
    if isinstance(value, list):
        return [_hidden(name, one, key) for one in value]
    if not isinstance(value, str):
        return value
    digest = hmac.new(key, value.encode(errors="surrogateescape"), "sha256").hexdigest()
    return f"{name}-{digest[:12]}"
