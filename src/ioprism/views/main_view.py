"""Who did what to which file when: the main view, from which every perspective is derived.

One row per process, file, time bucket, class of call and function. It is small, made in one
pass, and everything later is sums and maxima over its rows. Sums are exact, whatever the order
in which pieces are added: time is counted in whole nanoseconds, calls in parts of 2**-20.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl

from ioprism.errors import NoSuchTraceError, OutputError, TooManyPiecesError
from ioprism.model.schema import FILES, PROCESSES
from ioprism.model.trace import Completeness, Trace
from ioprism.storage.atomic import atomic_folder
from ioprism.storage.checked import checked_text, read_checked, read_document, write_checked
from ioprism.storage.trace_store import job_of
from ioprism.version import __version__
from ioprism.views.call_class import WRITE, Flags, RequestOrder, Whole, call_class, walk

Assignment = Literal["split", "start", "middle"]

VERSION = 3  # changes with the meaning of the columns, so that stored stages are not mistaken
KEYS = ("process", "file", "time", "class", "function")
SUMS = ("count", "bytes", "nanoseconds")
MAXIMA = ("slowest", "reach")
# More pieces than this come from times that are wrong or buckets that are far too short.
MOST_PIECES = 20_000_000
# What a row, and what a process did to a file in one time bucket, need in memory while views
# are derived from them; measured with both as many as the other, and with twenty rows to each.
BYTES_PER_ROW, BYTES_PER_CELL = 172, 260
PARTS_OF_A_CALL = 2**20  # a power of two: floats add such parts up without rounding

_READ = ("start", "end", "process", "file", "layer", "operation", "function", "offset", "bytes")
_MAIN = pl.Schema(
    {
        "process": pl.UInt32(),
        "file": pl.UInt32(),
        "time": pl.Int64(),
        "class": pl.UInt16(),
        "function": pl.Categorical(),
        "count": pl.Float64(),
        "bytes": pl.Int64(),
        "nanoseconds": pl.Int64(),
        "slowest": pl.Float64(),
        "reach": pl.Int64(),
    }
)
# Single requests at the edges of a piece, which say how it goes on from the piece before.
_EDGES = pl.Schema(
    {
        "start": pl.Float64(),
        "end": pl.Float64(),
        "gap": pl.Int64(),  # bytes from the end of the request before, if that is known
        "waits": pl.Boolean(),  # not yet judged, and so not yet in the sums; null: no edge
    }
)
_PIECE = pl.Schema({**_MAIN, **_EDGES})


@dataclass(frozen=True, slots=True)
class MainView:
    """Calls, bytes and seconds by process, file, time bucket, class of call and function."""

    shard_by: ClassVar = ("process", "file")  # what a stream of requests has in common

    bucket: float = 1.0  # seconds
    # split: a call is shared out among the buckets it spans, by duration.
    # start, middle: the whole call counts in one bucket, as WisIO does.
    assignment: Assignment = "split"
    after: float | None = None  # leave out calls that begin at or before this time
    origin: float = 0.0  # where bucket 0 begins, in seconds

    def partial(self, events: pl.LazyFrame) -> pl.LazyFrame:
        """Sum some of the events; requests that only earlier events can judge wait."""
        wanted = events if self.after is None else events.filter(pl.col("start") > self.after)
        return wanted.select(_READ).map_batches(self._piece, schema=_PIECE)

    def combine(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Add rows of the same key, and judge the requests at the edges between pieces."""
        return partials.map_batches(self._join_pieces, schema=_PIECE)

    def finalize(self, partials: pl.LazyFrame) -> pl.LazyFrame:
        """Combine all there are: what waits still is the beginning of its stream."""
        return partials.map_batches(self._decide_all, schema=_MAIN)

    def memory(self, summary: pl.DataFrame) -> int:
        """Bytes that a main view of this size needs, with all that is derived from it."""
        cells = summary.select(pl.struct("process", "file", "time").n_unique()).item()
        return summary.height * BYTES_PER_ROW + int(cells) * BYTES_PER_CELL

    def _piece(self, events: pl.DataFrame) -> pl.DataFrame:
        calls = events.select(
            "start",
            "end",
            "process",
            "file",
            "function",
            pl.col("bytes").fill_null(0),
            call_class(pl.lit(0)).alias("class"),
            reach=pl.col("offset") + pl.col("bytes"),
            slowest=pl.col("end") - pl.col("start"),
        )
        order = walk(calls, _placed_requests(events))
        judged = calls.with_columns(pl.col("class") + pl.Series(order.random))
        sums = _sum_rows(self._shared_out(judged, pl.Series(~order.undecided)))
        return _with_edges(sums, _edges(calls, order, order.undecided))

    def _join_pieces(self, pieces: pl.DataFrame) -> pl.DataFrame:
        sums, edges = _apart(pieces)
        order = walk(edges, np.arange(edges.height))
        waited = edges["waits"].to_numpy()
        waits = waited & order.undecided
        judged = self._rows_of_requests(edges, order, waited & ~waits)
        return _with_edges(_sum_rows(pl.concat([sums, judged])), _edges(edges, order, waits))

    def _decide_all(self, pieces: pl.DataFrame) -> pl.DataFrame:
        sums, edges = _apart(pieces)
        order = walk(edges, np.arange(edges.height))
        judged = self._rows_of_requests(edges, order, edges["waits"].to_numpy())
        # Groups come in any order from several threads; the same trace gives the same rows.
        return _sum_rows(pl.concat([sums, judged])).sort(KEYS)

    def _rows_of_requests(
        self, edges: pl.DataFrame, order: RequestOrder, wanted: Flags
    ) -> pl.DataFrame:
        """Turn requests that waited into rows of the main view, not yet summed."""
        requests = edges.with_columns(
            pl.col("class") + pl.Series(order.random), slowest=pl.col("end") - pl.col("start")
        )
        return self._shared_out(requests, pl.Series(wanted, dtype=pl.Boolean))

    def _shared_out(self, calls: pl.DataFrame, wanted: pl.Series) -> pl.DataFrame:
        """Turn the wanted calls into rows of the main view, not yet summed."""
        if self.assignment != "split":
            return self._whole(calls, self._bucket_of(self.assignment)).filter(wanted)
        return self._split(calls, wanted)

    def _bucket_of(self, assignment: Assignment) -> pl.Expr:
        if assignment == "start":
            return self._bucket(pl.col("start")).floor()
        # WisIO numbers midpoints from 0, each bucket with its right edge.
        middle = (pl.col("start") + pl.col("end")) / 2
        return self._bucket(middle).ceil()

    def _bucket(self, moment: pl.Expr) -> pl.Expr:
        return (moment - self.origin) / self.bucket

    def _whole(self, calls: pl.DataFrame, bucket: pl.Expr) -> pl.DataFrame:
        return calls.select(
            *_CARRIED,
            time=bucket.cast(pl.Int64, strict=False),
            count=pl.lit(1.0),
            nanoseconds=nanoseconds(pl.col("slowest")),
        ).select(_MAIN.names())

    def _split(self, calls: pl.DataFrame, wanted: pl.Series) -> pl.DataFrame:
        first = calls.select(self._bucket(pl.col("start")).floor()).to_series()
        last = calls.select(self._bucket(pl.col("end")).ceil() - 1).to_series()
        spans = (last > first) & wanted
        bucket = first.cast(pl.Int64, strict=False)  # null where a damaged time says nothing
        whole = self._whole(calls, pl.lit(bucket))
        if not spans.any():
            return whole.filter(wanted)
        pieces = float((last - first).filter(spans).sum())
        if not pieces <= MOST_PIECES:
            raise TooManyPiecesError(pieces, self.bucket)
        edges = {"first": bucket.filter(spans), "last": last.filter(spans).cast(pl.Int64)}
        across = calls.filter(spans).with_columns(**edges)
        return pl.concat([whole.filter(wanted & ~spans), self._pieces(across)])

    def _pieces(self, calls: pl.DataFrame) -> pl.DataFrame:
        """Share calls out among the buckets they span, by duration."""
        duration = pl.col("slowest")
        begin = pl.max_horizontal("start", pl.col("time") * self.bucket + self.origin)
        finish = pl.min_horizontal("end", (pl.col("time") + 1) * self.bucket + self.origin)
        is_first, is_last = (pl.col("time") == pl.col(name) for name in ("first", "last"))
        before = pl.when(is_first).then(0.0).otherwise((begin - pl.col("start")) / duration)
        until = pl.when(is_last).then(1.0).otherwise((finish - pl.col("start")) / duration)
        shared = calls.with_columns(
            time=pl.int_ranges("first", pl.col("last") + 1, dtype=pl.Int64)
        ).explode("time")
        return shared.with_columns(before=before, until=until).select(
            *(name for name in _CARRIED if name != "bytes"),
            "time",
            count=_part(PARTS_OF_A_CALL) / PARTS_OF_A_CALL,
            nanoseconds=_part(nanoseconds(duration)),
            bytes=_part(pl.col("bytes")),
        ).select(_MAIN.names())  # fmt: skip


_CARRIED = ("process", "file", "class", "function", "bytes", "slowest", "reach")


def nanoseconds(seconds: pl.Expr) -> pl.Expr:
    """Whole nanoseconds: tracers write no finer times, and sums of them are exact."""
    return (seconds * 1e9).round().cast(pl.Int64, strict=False)


def _part(whole: pl.Expr | int) -> pl.Expr:
    """What of a whole number falls between two shares of a call; parts add up to all of it."""

    def until(share: pl.Expr) -> pl.Expr:
        exact = pl.when(share >= 1).then(whole).otherwise(whole * share)
        return exact.cast(pl.Int64)

    return until(pl.col("until")) - until(pl.col("before"))


def _placed_requests(events: pl.DataFrame) -> Whole:
    """Return the rows of reads and writes whose place in the file is known."""
    moves = pl.col("operation").to_physical() <= WRITE
    known = moves & pl.col("offset").is_not_null() & pl.col("bytes").is_not_null()
    return np.flatnonzero(events.select(known).to_series().to_numpy())


def _sum_rows(rows: pl.DataFrame) -> pl.DataFrame:
    sums = rows.lazy().group_by(KEYS).agg(pl.col(SUMS).sum(), pl.col(MAXIMA).max())
    return sums.collect()


def _edges(calls: pl.DataFrame, order: RequestOrder, waits: Flags) -> pl.DataFrame:
    """Return the requests that are needed when the piece is joined with its neighbours."""
    wanted = waits | order.last
    return calls.filter(wanted).with_columns(
        gap=order.gaps(wanted), waits=pl.Series(waits[wanted], dtype=pl.Boolean)
    )


def _with_edges(sums: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([sums, edges], how="diagonal").select(_PIECE.names())


def _apart(pieces: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the sums, and the requests at the edges of the pieces."""
    is_edge = pieces["waits"].is_not_null()
    return pieces.filter(~is_edge).select(_MAIN.names()), pieces.filter(is_edge)


def empty_main_view() -> pl.DataFrame:
    """Return the main view of a trace without events."""
    return _MAIN.to_frame()


FACTS = "stage.json"


@dataclass(frozen=True, slots=True)
class KeptMainView:
    """A main view and what has to be known of its trace."""

    trace: Trace  # without events
    main: pl.DataFrame


@dataclass(frozen=True, slots=True)
class StageStore:
    """A folder of stages."""

    folder: Path

    def load(self, key: str, *, paths: Sequence[Path]) -> KeptMainView | None:
        """Return a stored stage, or None if there is none or it is damaged."""
        place = self.folder / key
        try:
            facts, sound = read_document(place / FACTS)
            if not sound:
                return None
            tables = {name: read_checked(place / f"{name}.parquet") for name in _TABLES}
            return KeptMainView(_trace(facts, tables, paths), tables["main"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def save(self, key: str, stage: KeptMainView) -> None:
        """Keep a stage; it appears when it is complete."""
        trace = stage.trace
        facts = {
            "format": trace.format,
            "job": asdict(trace.job),
            "warnings": trace.completeness.warnings,
        }
        tables = {"main": stage.main, "files": trace.files, "processes": trace.processes}
        try:
            with atomic_folder(self.folder / key, marker=FACTS, replace=True) as temporary:
                for name, table in tables.items():
                    write_checked(table, temporary / f"{name}.parquet")
                (temporary / FACTS).write_text(checked_text(facts), encoding="utf-8")
        except OSError as error:
            raise OutputError(
                f"{self.folder}: the stage cannot be kept ({error.strerror}).\n"
                "Hint: choose another folder with --stages, or leave it out."
            ) from error


_TABLES = ("main", "files", "processes")


def stage_key(
    paths: Sequence[Path], view: MainView, *, format_name: str | None, layout: str = ""
) -> str:
    """Name the stage of these traces under these settings.

    Raises:
        NoSuchTraceError: there is nothing at one of the paths.
    """
    digest = hashlib.blake2b(digest_size=20)
    said = [__version__, VERSION, asdict(view), format_name, layout, pl.__version__]
    digest.update(json.dumps(said, sort_keys=True).encode())
    for path in paths:
        if not path.exists():
            raise NoSuchTraceError(path)
        for name, file in _contents(path):
            digest.update(f"\0{len(name)}:{name}:".encode(errors="surrogateescape"))
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "blake2b").digest())
    return digest.hexdigest()


def _contents(path: Path) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield path.name, path
        return
    for file in sorted(path.rglob("*")):
        if file.is_file():
            yield str(file.relative_to(path)), file


def _trace(facts: dict[str, Any], tables: dict[str, pl.DataFrame], paths: Sequence[Path]) -> Trace:
    completeness = Completeness()
    for message in facts["warnings"]:
        completeness.warn(str(message))
    return Trace(
        format=str(facts["format"]),
        paths=tuple(paths),
        job=job_of(facts["job"]),
        load_files=lambda: FILES.conform(tables["files"]),
        load_processes=lambda: PROCESSES.conform(tables["processes"]),
        completeness=completeness,
    )
