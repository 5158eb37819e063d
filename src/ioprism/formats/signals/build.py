"""Turn intervals and series into traces, leaving out what cannot be true."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgpack
import numpy as np

from ioprism.errors import BrokenTraceError
from ioprism.model.arrays import FloatArray, StepFunction, TimeSeries
from ioprism.model.trace import Completeness, Job, Trace, Warn
from ioprism.units import format_counted

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Calls, or phases of calls, of one direction: start, end in seconds, and bytes moved."""

    start: FloatArray
    end: FloatArray
    bytes: FloatArray
    operation: str = "other"  # read, write, or other where the trace does not say
    nonblocking: bool | None = None


@dataclass(frozen=True, slots=True)
class IntervalPartition:
    """Intervals as arrays; they become a table of events when one is asked for."""

    judged: ClassVar[bool] = True  # what cannot be true was left out when they were built
    intervals: tuple[Intervals, ...]
    process: int | None = None  # also the rank; None where the file does not tell

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:  # noqa: ARG002 - nothing is lost
        """Yield all intervals as events, in the order of their starts."""
        import polars as pl

        from ioprism.model.schema import EVENTS

        tables = [EVENTS.conform(self._frame(part)) for part in self.intervals]
        yield pl.concat(tables).sort("start").lazy()

    def _frame(self, part: Intervals) -> pl.DataFrame:
        import polars as pl

        arrays = {"start": part.start, "end": part.end, "bytes": part.bytes.astype(np.int64)}
        return pl.DataFrame(arrays).with_columns(
            layer=pl.lit("mpiio"),
            operation=pl.lit(part.operation),
            nonblocking=pl.lit(part.nonblocking, dtype=pl.Boolean),
            rank=pl.lit(self.process, dtype=pl.Int32),
            process=pl.lit(self.process, dtype=pl.UInt32),
        )


@dataclass(frozen=True, slots=True)
class Content:
    """What a file of this family holds."""

    intervals: Sequence[Intervals] = ()
    series: Sequence[TimeSeries] = ()
    ranks: int | None = None
    host: str | None = None
    pid: int | None = None


def numbers(values: object) -> FloatArray:
    """Return a list of numbers as an array; ValueError if some are not numbers."""
    if not isinstance(values, list | tuple):
        raise ValueError("expected a list of numbers")
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError("expected a flat list of numbers")
    return array


def interval_bytes(rate: FloatArray, start: FloatArray, end: FloatArray) -> FloatArray:
    """Bytes that a rate moves from start to end; the three must be equally long."""
    if not len(rate) == len(start) == len(end):
        raise ValueError(f"{len(rate)} rates do not fit {len(start)} starts and {len(end)} ends")
    with np.errstate(over="ignore", invalid="ignore"):  # infinite values are left out later
        return np.asarray(rate * (end - start), dtype=np.float64)


def steps(time: FloatArray, values: FloatArray) -> StepFunction:
    """Return a step function; values hold to the next time, the last one has no length."""
    if len(time) != len(values) or len(time) < 2:
        raise ValueError(f"{len(time)} times do not fit {len(values)} values")
    if not (np.isfinite(time).all() and np.isfinite(values).all()):
        raise ValueError("times and values must be finite")
    if (np.diff(time) < 0).any():
        raise ValueError("times must be ascending")
    return StepFunction(time, values[:-1])


def build_trace(source: Path, content: Content, completeness: Completeness, *, name: str) -> Trace:
    """Return the trace of one file.

    Raises:
        BrokenTraceError: there is neither an interval nor a series in it.
    """
    intervals = tuple(_sound(content.intervals, source, completeness))
    if not intervals and not content.series:
        raise BrokenTraceError(
            f"this {name} file holds no interval with a start, an end and bytes.\n"
            "Hint: was the program traced to its end?",
            source=source,
        )
    ends = [float(part.end.max()) for part in intervals]
    ends += [float(series.steps.edges[-1]) for series in content.series]
    known = content.host is not None or content.pid is not None
    return Trace(
        format=name,
        paths=(source,),
        job=Job(ranks=content.ranks, runtime=max(ends)),
        partitions=(IntervalPartition(intervals, 0 if known else None),) if intervals else (),
        series={series.name: series for series in content.series},
        load_files=_no_files,
        load_processes=partial(_processes, content.host, content.pid),
        completeness=completeness,
    )


class SignalReader:
    """Reads files whose arrays become intervals or series."""

    name: str
    holds = "arrays"  # what cannot be read of a damaged file

    def content(self, source: Path, completeness: Completeness) -> Content:
        """Return what a file holds; any exception about values means damage."""
        raise NotImplementedError

    def read(self, source: Path) -> Trace:
        """Read all that the file holds.

        Raises:
            BrokenTraceError: it cannot be read, or there is nothing in it.
        """
        completeness = Completeness()
        try:
            content = self.content(source, completeness)
        except (ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
            raise broken(source, f"its {self.holds} cannot be read ({error})") from error
        return build_trace(source, content, completeness, name=self.name)


def _sound(
    parts: Iterable[Intervals], source: Path, completeness: Completeness
) -> Iterator[Intervals]:
    """Keep what can be true of each part, and the parts of which something is left."""
    dropped = 0
    for part in parts:
        finite = np.isfinite(part.start) & np.isfinite(part.end) & np.isfinite(part.bytes)
        good = finite & (part.end >= part.start) & (part.bytes >= 0)
        dropped += len(good) - int(good.sum())
        if good.any():
            arrays = (part.start[good], part.end[good], np.rint(part.bytes[good]))
            yield Intervals(*arrays, part.operation, part.nonblocking)
    if dropped:
        completeness.warn(
            f"{source.name}: {format_counted(dropped, 'interval')} left out: end before start, "
            "negative size, or not a number"
        )


# Tables are made when they are asked for: a period is found without them.


def _no_files() -> pl.DataFrame:
    from ioprism.model.schema import FILES

    return FILES.empty()


def _processes(host: str | None, pid: int | None) -> pl.DataFrame:
    import polars as pl

    from ioprism.model.schema import PROCESSES

    if host is None and pid is None:
        return PROCESSES.empty()
    only = {"process": [0], "rank": [0], "host": [host], "pid": [pid]}
    return PROCESSES.conform(pl.DataFrame(only, schema_overrides={"host": pl.String}))


HEAD = 64 * 1024
END = object()  # after the last object


def head(source: Path) -> bytes:
    """Return the beginning of a file, empty if it cannot be read."""
    try:
        with source.open("rb") as file:
            return file.read(HEAD)
    except OSError:
        return b""


def json_document(source: Path) -> Any:  # noqa: ANN401 - any JSON
    """Return the one JSON value of a file.

    Raises:
        BrokenTraceError: it is not JSON.
    """
    try:
        return json.loads(source.read_bytes())
    except (ValueError, RecursionError) as error:
        raise broken(source, f"it is not valid JSON ({_short(error)})") from error


def json_lines(source: Path, completeness: Completeness) -> Iterator[Any]:
    """Yield the JSON value of each line; a line that is damaged is left out with a warning."""
    damaged: list[int] = []
    number = 0
    with source.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                damaged.append(number)
    if damaged == [number]:
        completeness.warn(f"{source.name}: the last line is cut off and left out")
    elif damaged:
        completeness.warn(
            f"{source.name}: {format_counted(len(damaged), 'line')} left out as not JSON, "
            f"the first is line {damaged[0]}"
        )


def msgpack_objects(source: Path, completeness: Completeness) -> Iterator[Any]:
    """Yield the objects of a msgpack file; a damaged rest is left out with a warning."""
    size = source.stat().st_size
    with source.open("rb") as file:
        unpacker = msgpack.Unpacker(
            file, use_list=False, strict_map_key=False, max_buffer_size=max(size, 1)
        )
        try:
            while (value := _next(unpacker)) is not END:
                yield value
        except (ValueError, TypeError, msgpack.exceptions.UnpackException, RecursionError) as error:
            completeness.warn(
                f"{source.name}: damaged after {unpacker.tell()} of {size} bytes "
                f"({_short(error)}); the rest is left out"
            )
            return
        if unpacker.tell() < size:
            completeness.warn(
                f"{source.name}: cut off after {unpacker.tell()} of {size} bytes; "
                "the last flush is left out"
            )


def _next(unpacker: Iterator[Any]) -> Any:  # noqa: ANN401 - any msgpack object
    """Unpack one object without the garbage collector, which would look at each list many times."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return next(unpacker, END)
    finally:
        if collecting:
            gc.enable()


def broken(source: Path, why: str) -> BrokenTraceError:
    """Return the error for a file of a known format that cannot be read."""
    return BrokenTraceError(f"{why}.\nHint: was the file copied completely?", source=source)


def _short(error: BaseException) -> str:
    return str(error).partition("\n")[0][:120] or type(error).__name__
