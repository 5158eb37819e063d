"""Turn intervals and series into traces, leaving out what cannot be true."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.model.schema import EVENTS, FILES, PROCESSES
from ioprism.model.signal import FloatArray, StepFunction, TimeSeries
from ioprism.model.trace import Completeness, Job, MemoryPartition, Trace


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Calls, or phases of calls, of one direction: start, end in seconds, and bytes moved."""

    start: FloatArray
    end: FloatArray
    bytes: FloatArray
    operation: str = "other"  # read, write, or other where the trace does not say
    nonblocking: bool | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """What a file of this family holds."""

    intervals: Sequence[Intervals] = ()
    series: Sequence[TimeSeries] = ()
    ranks: int | None = None
    host: str | None = None
    pid: int | None = None
    metadata: Mapping[str, str] | None = None


def numbers(values: object) -> FloatArray:
    """Return a list of numbers as an array; what is no number raises ValueError."""
    if not isinstance(values, list):
        raise ValueError("expected a list of numbers")
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError("expected a flat list of numbers")
    return array


def interval_bytes(rate: FloatArray, start: FloatArray, end: FloatArray) -> FloatArray:
    """Bytes that a rate moves from start to end; the three must be equally long."""
    if not len(rate) == len(start) == len(end):
        raise ValueError(f"{len(rate)} rates do not fit {len(start)} starts and {len(end)} ends")
    return np.asarray(rate * (end - start), dtype=np.float64)


def steps(time: FloatArray, values: FloatArray) -> StepFunction:
    """Return a step function; values hold to the next time, the last one has no length."""
    if len(time) != len(values) or len(time) < 2:
        raise ValueError(f"{len(time)} times do not fit {len(values)} values")
    if not (np.isfinite(time).all() and np.isfinite(values).all()):
        raise ValueError("times and values must be finite")
    if (np.diff(time) < 0).any():
        raise ValueError("times must ascend")
    return StepFunction(time, values[:-1])


def build_trace(source: Path, content: Content, completeness: Completeness, *, name: str) -> Trace:
    """Return the trace of one file.

    Raises:
        BrokenTraceError: there is neither an interval nor a series in it.
    """
    events = _events(content.intervals, source, completeness)
    if not events.height and not content.series:
        raise BrokenTraceError(
            f"this {name} file holds no interval with a start, an end and bytes.\n"
            "Hint: was the program traced to its end?",
            source=source,
        )
    ends = [float(np.max(events["end"].to_numpy()))] if events.height else []
    ends += [float(series.steps.edges[-1]) for series in content.series]
    process = pl.DataFrame(
        {"process": [0], "rank": [0], "host": [content.host], "pid": [content.pid]},
        schema_overrides={"host": pl.String, "pid": pl.Int64},
    )
    known = content.host is not None or content.pid is not None
    return Trace(
        format=name,
        paths=(source,),
        job=Job(ranks=content.ranks, runtime=max(ends), metadata=dict(content.metadata or {})),
        partitions=(MemoryPartition(_of_process(events, known=known)),) if events.height else (),
        series={series.name: series for series in content.series},
        load_files=FILES.empty,
        load_processes=lambda: PROCESSES.conform(process) if known else PROCESSES.empty(),
        completeness=completeness,
    )


def _of_process(events: pl.DataFrame, *, known: bool) -> pl.DataFrame:
    return EVENTS.conform(events.with_columns(rank=0, process=0)) if known else events


def _events(parts: Iterable[Intervals], source: Path, completeness: Completeness) -> pl.DataFrame:
    tables = [EVENTS.empty()]
    dropped = 0
    for part in parts:
        sound = _sound(part)
        dropped += len(sound) - int(sound.sum())
        tables.append(_table(part, sound))
    if dropped:
        completeness.warn(
            f"{source.name}: {dropped} intervals are left out: they end before they begin, move "
            "less than nothing, or are not numbers"
        )
    return pl.concat(tables).sort("start")


def _sound(part: Intervals) -> npt.NDArray[np.bool_]:
    finite = np.isfinite(part.start) & np.isfinite(part.end) & np.isfinite(part.bytes)
    return finite & (part.end >= part.start) & (part.bytes >= 0)


def _table(part: Intervals, sound: npt.NDArray[np.bool_]) -> pl.DataFrame:
    frame = pl.DataFrame(
        {
            "start": part.start[sound],
            "end": part.end[sound],
            "bytes": np.rint(part.bytes[sound]).astype(np.int64),
        }
    ).with_columns(
        layer=pl.lit("mpiio"),
        operation=pl.lit(part.operation),
        nonblocking=pl.lit(part.nonblocking, dtype=pl.Boolean),
    )
    return EVENTS.conform(frame)
