"""Write a trace so that Perfetto opens it: one track per rank, counters for bandwidth.

Kept are all calls with their times to a nanosecond, paths, offsets and bytes, the process
table, and the job's facts. Counters and stripe layouts have no place in the format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt
import polars as pl
from isal import igzip

from ioprism.model.trace import Progress, Trace
from ioprism.storage.atomic import atomic_write

BINS = 1000  # of the bandwidth counters
MICROSECONDS = 1e6
MOST_WARNINGS = 50  # the head of the file stays small
LONGEST_COMMAND = 8192


def write_chrome(
    trace: Trace, path: Path, *, replace: bool = False, progress: Progress | None = None
) -> None:
    """Write `.json`, or `.json.gz`, which Perfetto opens as well."""
    with atomic_write(path, replace=replace) as temporary:
        packed = path.name.lower().endswith(".gz")
        with _open_output(temporary, packed=packed) as file:
            _write(trace, file, progress)


def _open_output(path: Path, *, packed: bool) -> BinaryIO:
    if not packed:
        return path.open("wb")
    file = igzip.open(path, "wb", compresslevel=1)  # type: ignore[no-untyped-call]
    return cast("BinaryIO", file)


def _write(trace: Trace, file: BinaryIO, progress: Progress | None) -> None:
    paths = _escaped_paths(trace.files)
    bandwidth = {direction: _Bandwidth() for direction in ("read", "write")}
    file.write(b'{"displayTimeUnit": "ns",\n"otherData": ')
    file.write(json.dumps({"ioprism": _facts(trace)}).encode())
    file.write(b',\n"traceEvents": [\n')
    file.write(b",\n".join(_tracks(trace)))
    for number, batch in enumerate(trace.batches(), start=1):
        table = batch.collect()
        for direction, counted in bandwidth.items():
            counted.add(table.filter(pl.col("operation") == direction))
        lines = _events(table, paths)
        if len(lines):
            file.write(b",\n" + "\n".join(lines.to_list()).encode()[:-1])
        if progress is not None:
            progress(number)
    file.write(b"".join(b",\n" + line for line in _counters(bandwidth)))
    file.write(b"\n]}\n")


def _facts(trace: Trace) -> dict[str, object]:
    job = trace.job
    return {
        "version": 1,
        "job": {
            "ranks": job.ranks,
            "start_time": job.start_time,
            "end_time": job.end_time,
            "runtime": job.runtime,
            "executable": job.executable and job.executable[:LONGEST_COMMAND],
        },
        "warnings": list(trace.completeness.warnings)[:MOST_WARNINGS],
    }


def _tracks(trace: Trace) -> Iterator[bytes]:
    """Name the tracks; the one of the counters comes first."""
    yield _event("M", -1, "process_name", args={"name": "bandwidth"})
    seen = trace.processes.select("rank", "host").unique("rank", keep="first").sort("rank")
    for rank, host in seen.iter_rows():
        name = f"rank {rank}" + (f" on {host}" if host else "")
        yield _event("M", rank, "process_name", args={"name": name})
        yield _event("M", rank, "process_sort_index", args={"sort_index": rank})
    for row in trace.processes.iter_rows(named=True):
        facts = {key: row[key] for key in ("application", "host", "pid", "tid")}
        named = {"name": row["application"] or f"process {row['process']}", "ioprism": facts}
        yield _event("M", row["rank"], "thread_name", tid=row["process"], args=named)


def _event(phase: str, rank: int, name: str, **others: object) -> bytes:
    return json.dumps({"ph": phase, "pid": rank, "name": name, **others}).encode()


def _escaped_paths(files: pl.DataFrame) -> pl.DataFrame:
    """Paths as JSON, by row of the file table."""
    escaped = [f'"file":{json.dumps(path)},' for path in files["path"].to_list()]
    return files.select("file", path=pl.Series(escaped, dtype=pl.String))


def _events(table: pl.DataFrame, paths: pl.DataFrame) -> pl.Series:
    """One line of JSON for every event, each with a comma at its end."""
    functions = table["function"].cast(pl.String)
    known = functions.unique().drop_nulls().to_list()
    escaped = {name: json.dumps(name)[1:-1] for name in known}
    named = table.join(paths, on="file", how="left", maintain_order="left")
    operation = pl.col("operation").cast(pl.String)
    start = (pl.col("start") * MICROSECONDS).round(3)
    length = ((pl.col("end") - pl.col("start")) * MICROSECONDS).round(3).clip(lower_bound=0)
    arguments = pl.concat_str(
        pl.col("path").fill_null(""),
        *(_argument(name) for name in ("offset", "bytes", "collective", "nonblocking")),
        pl.when(pl.col("function").is_null()).then(pl.lit('"unnamed":true,')).otherwise(pl.lit("")),
    ).str.strip_chars_end(",")
    function = functions.replace_strict(escaped, default=None, return_dtype=pl.String)
    line = pl.concat_str(
        pl.lit('{"ph":"X","pid":'),
        pl.col("rank").fill_null(0),  # a viewer needs a track, also for calls of unknown processes
        pl.lit(',"tid":'),
        pl.col("process").fill_null(0),
        pl.lit(',"ts":'),
        start,
        pl.lit(',"dur":'),
        length,
        pl.lit(',"name":"'),
        pl.coalesce(pl.lit(function), operation),
        pl.lit('","cat":"'),
        pl.col("layer").cast(pl.String),
        pl.lit(","),
        operation,
        pl.lit('","args":{'),
        arguments,
        pl.lit("}},"),
    )
    return named.select(line.alias("line"))["line"]


def _argument(name: str) -> pl.Expr:
    value = pl.col(name).cast(pl.String)
    return pl.concat_str(pl.lit(f'"{name}":'), value, pl.lit(",")).fill_null("")


@dataclass(slots=True)
class _Bandwidth:
    """Bytes moved in equal steps of time; the steps grow with the trace."""

    width: float = 0.001  # seconds
    bytes: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(BINS))

    def add(self, calls: pl.DataFrame) -> None:
        """Count the calls' bytes at the time of their middle."""
        calls = calls.filter(pl.col("bytes") > 0)
        if calls.is_empty():
            return
        middle = ((calls["start"] + calls["end"]) / 2).to_numpy().clip(min=0)
        while middle.max() >= self.width * BINS:
            halves = self.bytes.reshape(-1, 2).sum(axis=1)
            self.bytes = np.concatenate((halves, np.zeros(BINS // 2)))
            self.width *= 2
        np.add.at(self.bytes, (middle / self.width).astype(np.int64), calls["bytes"].to_numpy())


def _counters(bandwidth: dict[str, _Bandwidth]) -> Iterator[bytes]:
    """A counter event wherever the rate changes."""
    for direction, counted in bandwidth.items():
        rates = counted.bytes / counted.width
        changes = np.flatnonzero(np.diff(rates, prepend=0.0, append=0.0))
        for place in changes.tolist():
            rate = float(rates[place]) if place < len(rates) else 0.0
            ts = round(place * counted.width * MICROSECONDS, 3)
            yield _event("C", -1, f"{direction} bandwidth in B/s", ts=ts, args={direction: rate})
