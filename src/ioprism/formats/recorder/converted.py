"""Recorder traces that its own tools have converted: to text, or to Parquet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.formats.calls import UNKNOWN, FilePointers, classify, nullable, pointer_key
from ioprism.formats.isolation import (
    UNREADABLE,
    columns_of,
    first_line,
    is_parquet,
    until_damage,
)
from ioprism.formats.recorder.reader import RecorderPartition, process_table, vocabulary
from ioprism.formats.recorder.signatures import STREAMS, BackReference, Signature, resolve_paths
from ioprism.formats.recorder.streams import Stream
from ioprism.formats.text import head, lines
from ioprism.model.schema import EVENTS, OPERATIONS, PROCESSES, Layer, Operation, file_table
from ioprism.model.trace import LAYERS, Completeness, Job, Trace, Warn
from ioprism.text import open_plain
from ioprism.units import format_counted

HEAD = 4096
LOOKED_AT = 8  # files of a folder that show what it is
_LINE = re.compile(
    r"(\d{1,12}\.\d{6,7}) (\d{1,12}\.\d{6,7}) (?:(-?\d{1,10}) )?([A-Za-z_]\w*) "
    r"(?:\d{1,4} (?:\d{1,20} )?)?\((.*)\)\s*$"
)
_NUMBERED = re.compile(r"\d{1,7}\.txt")


class RecorderTextReader:
    """Reads `N.txt`, or a folder of them, as recorder2text writes them."""

    name = "recorder-text"
    title = "Recorder's text (recorder2text: a folder of N.txt)"
    tells = frozenset({"calls", "metadata", "offsets", "ranks", "files", "collective", "layers"})

    def recognises(self, source: Path) -> bool:
        """Whether the lines are Recorder's. Never raises."""
        try:
            # The first file may be the one that is truncated.
            starts = (head(file, HEAD).partition("\n")[0] for file in _files(source)[:LOOKED_AT])
            return any(_LINE.match(start) is not None for start in starts)
        except OSError:
            return False

    def read(self, source: Path) -> Trace:
        """Read all calls once to learn files; events are read again when asked for."""
        paths: dict[str, int] = {}
        streams, words = {}, {}
        last = 0.0
        files = _files(source)
        for file in files:
            stream, signatures = read_text(file, lambda _: None)
            rank = int(file.stem) if len(files) > 1 else 0
            streams[rank] = partial(read_text_stream, file)
            words[rank] = vocabulary(signatures, paths)
            last = max(last, float(stream.end.max(initial=0.0)))
        if not paths and not last:
            raise BrokenTraceError(
                "no call can be read from it.\nHint: convert the Recorder trace again.",
                source=source,
            )
        count = max(streams) + 1
        completeness = Completeness()
        if count > len(streams):
            first = next(rank for rank in range(count) if rank not in streams)
            completeness.warn(
                f"{count - len(streams)} of {count} ranks have no file (rank {first} is the "
                "first); their calls are missing"
            )
        return Trace(
            format=self.name,
            paths=(source,),
            job=Job(ranks=count, runtime=last),
            partitions=(RecorderPartition(streams, words),),
            load_files=lambda: file_table(list(paths)),
            load_processes=partial(process_table, count),
            completeness=completeness,
        )


def _files(source: Path) -> list[Path]:
    """The text of each rank, in order of rank."""
    if source.is_file():
        return [source]
    every = [path for path in source.iterdir() if path.is_file()]
    numbered = [path for path in every if _NUMBERED.fullmatch(path.name)]
    return sorted(numbered, key=lambda p: int(p.stem)) if len(numbered) == len(every) else []


def read_text(path: Path, warn: Warn) -> tuple[Stream, dict[int, Signature]]:
    """Return one rank's calls."""
    numbers: dict[Signature, int] = {}
    opened = dict(STREAMS)
    rows = []
    damaged = 0
    for line in lines(path, warn):
        match = _LINE.match(line)
        if match is None:
            damaged += bool(line.strip())
            continue
        signature = _signature(match, opened)
        number = numbers.setdefault(signature, len(numbers))
        rows.append((number, float(match[1]), float(match[2])))
    if damaged:
        warn(f"{path.name}: {format_counted(damaged, 'damaged line')} left out")
    table = np.array(rows, np.float64).reshape(-1, 3)
    stream = Stream(table[:, 0].astype(np.int64), table[:, 1], table[:, 2])
    return stream, {number: signature for signature, number in numbers.items()}


def read_text_stream(path: Path, warn: Warn) -> Stream:
    """Return one rank's calls without their signatures."""
    return read_text(path, warn)[0]


def _signature(match: re.Match[str], opened: dict[str, str]) -> Signature:
    arguments = tuple(match[5].strip(" ").split(" "))
    if match[3] is None:
        return Signature(match[4], arguments)
    return resolve_paths(BackReference(0, 0, int(match[3]), match[4], arguments), opened)


NEEDED = frozenset({"rank", "tstart", "tend", "func_id", "file_name", "size"})
ROWS = 1_000_000  # rows read together
TICK = 1e-7  # seconds; what `tmid` counts
METADATA = "_metadata"  # dask's: what all parts hold
METADATA_BYTES = 64 * 2**20
PART = re.compile(rb"part\.\d{1,7}\.parquet")
MOST_PARTS = 10**6
_PROCESS = ("app", "hostname", "rank", "thread_id")
_DEFAULTS = {
    "app": pl.lit(None, dtype=pl.String),
    "hostname": pl.lit(None, dtype=pl.String),
    "thread_id": pl.lit(None, dtype=pl.Int64),
    "duration": pl.col("tend").cast(pl.Float64) - pl.col("tstart").cast(pl.Float64),
    "tmid": pl.lit(None, dtype=pl.Int64),
}


class RecorderParquetReader:
    """Reads a Parquet file or a folder of them with Recorder's events."""

    name = "recorder-parquet"
    title = "Recorder events as Parquet (recorder2parquet, WisIO)"
    tells = frozenset({"calls", "metadata", "ranks", "threads", "hosts", "files"})

    def recognises(self, source: Path) -> bool:
        """Whether these are Parquet files with Recorder's columns. Never raises."""
        try:
            parts = _parts(source)
            return bool(parts) and set(*columns_of(parts[:1])) >= NEEDED
        except UNREADABLE:
            return False

    def read(self, source: Path) -> Trace:
        """Look up files and processes now; events are read when asked for."""
        try:
            parts = _parts(source)
            if not parts:
                raise _broken(source, "none of its files is Parquet")
            columns_of(parts)
            trace = _ParquetContent(source, parts).trace()
        except UNREADABLE as error:
            raise _broken(source, first_line(error)) from error
        for name in _missing_parts(source, parts):
            trace.completeness.warn(f"{name} is missing, and its calls with it")
        return trace


def _missing_parts(source: Path, parts: Sequence[Path]) -> list[str]:
    """The parts that dask's metadata names, or that their numbers leave out."""
    if not source.is_dir():
        return []
    present = {part.name for part in parts}
    numbers = [int(part.stem[5:]) for part in parts if PART.fullmatch(part.name.encode())]
    named = {
        f"part.{number}.parquet" for number in range(min(max(numbers, default=-1), MOST_PARTS))
    }
    if (source / METADATA).is_file():
        with open_plain(source / METADATA) as file:
            named |= {name.decode() for name in PART.findall(file.read(METADATA_BYTES))}
    return sorted(named - present, key=lambda name: (len(name), name)) if numbers else []


def _broken(source: Path, why: str) -> BrokenTraceError:
    return BrokenTraceError(
        f"its Parquet files cannot be read ({why}).\nHint: convert the Recorder trace again.",
        source=source,
    )


def _parts(source: Path) -> list[Path]:
    """The Parquet files, by their content: dask's metadata files hold no rows."""
    if source.is_file():
        return [source] if is_parquet(source) else []
    names = [p for p in source.iterdir() if p.suffix == ".parquet" and p.is_file()]
    return sorted((p for p in names if is_parquet(p)), key=lambda p: (len(p.name), p.name))


@dataclass(frozen=True)
class _ParquetContent:
    source: Path
    parts: Sequence[Path]

    def trace(self) -> Trace:
        times = self._rows().select(
            pl.col("tstart").min().cast(pl.Float64), pl.col("tend").max().cast(pl.Float64)
        )
        _, last = times.collect(engine="streaming").row(0)
        processes = self.processes
        partitions = [
            RecorderParquetPartition(part, self.files.select("path", "file"), self.keys)
            for part in self.parts
        ]
        return Trace(
            format=RecorderParquetReader.name,
            paths=(self.source,),
            job=Job(ranks=processes["rank"].n_unique() or None, runtime=last),
            partitions=tuple(partitions),
            load_files=lambda: self.files,
            load_processes=lambda: processes,
        )

    def _rows(self) -> pl.LazyFrame:
        return pl.concat(rows(part) for part in self.parts)

    @cached_property
    def files(self) -> pl.DataFrame:
        names = self._rows().select("file_name").unique().collect(engine="streaming")
        sorted_names = names["file_name"].drop_nulls().sort()
        return file_table(sorted_names.filter(sorted_names != ""))

    @cached_property
    def keys(self) -> pl.DataFrame:
        """Every process, with its row and its rank in the trace."""
        seen = self._rows().select(_PROCESS).unique().collect(engine="streaming")
        seen = seen.sort(_PROCESS, nulls_last=False).with_row_index("process")
        # Several applications each have a rank 0: then ranks are counted through.
        own = seen.select("app", "rank").n_unique() == seen["rank"].n_unique()
        through = pl.struct("app", "rank").rank("dense").cast(pl.Int32) - 1
        return seen.with_columns(number=pl.col("rank").cast(pl.Int32) if own else through)

    @cached_property
    def processes(self) -> pl.DataFrame:
        return PROCESSES.conform(
            self.keys.select(
                "process",
                rank="number",
                application="app",
                host="hostname",
                tid=pl.when(pl.col("thread_id") >= 0).then("thread_id"),
            )
        )


def rows(part: Path) -> pl.LazyFrame:
    """Return the columns that matter; those the file lacks are filled in."""
    scan = pl.scan_parquet(part, glob=False)
    present = set(scan.collect_schema())
    missing = [what.alias(name) for name, what in _DEFAULTS.items() if name not in present]
    return scan.with_columns(missing).select(
        pl.col("app", "hostname").cast(pl.String),
        pl.col("rank", "thread_id", "size", "tmid").cast(pl.Int64),
        pl.col("tstart", "tend", "duration").cast(pl.Float64),
        pl.col("func_id", "file_name").cast(pl.String),
    )


@dataclass(frozen=True, slots=True, eq=False)
class RecorderParquetPartition:
    """The events of one Parquet file."""

    path: Path
    files: pl.DataFrame  # path, file
    keys: pl.DataFrame  # app, hostname, rank, thread_id, process, number

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield events in pieces of bounded size."""
        pointers = FilePointers()
        for calls in until_damage(self._calls(), self.path.name, warn):
            yield self._events(calls, pointers).lazy()

    def _calls(self) -> Iterator[pl.DataFrame]:
        height: int = pl.scan_parquet(self.path, glob=False).select(pl.len()).collect().item()
        for first in range(0, height, ROWS):
            yield rows(self.path).slice(first, ROWS).collect()

    def _events(self, calls: pl.DataFrame, pointers: FilePointers) -> pl.DataFrame:
        named = calls.join(
            self.files, left_on="file_name", right_on="path", how="left", maintain_order="left"
        ).join(self.keys, on=_PROCESS, how="left", nulls_equal=True, maintain_order="left")
        kinds = _kinds(named["func_id"].unique())
        named = named.join(kinds, on="func_id", how="left", maintain_order="left")
        # The middle of a call is kept in 100 ns; its start only in single precision.
        middle = pl.col("tmid") * TICK - pl.col("duration") / 2
        start = pl.coalesce(middle, "tstart").clip(lower_bound=0.0)
        moves = pl.col("operation").is_in([OPERATIONS.index("read"), OPERATIONS.index("write")])
        named = named.with_columns(
            start=start,
            end=start + pl.col("duration"),
            bytes=pl.when(moves).then("size"),
        )
        offset = _offsets(named, pointers)
        return EVENTS.conform(
            named.with_columns(
                rank="number",
                layer=named["layer"].cat.to(Layer),
                operation=named["operation"].cat.to(Operation),
                function="func_id",
                offset=offset,
            )
        )


def _kinds(names: pl.Series) -> pl.DataFrame:
    known = names.drop_nulls().to_list()
    calls = [classify(name) for name in known]
    return pl.DataFrame(
        {
            "func_id": pl.Series(known, dtype=pl.String),
            "layer": pl.Series([call.layer_code for call in calls], dtype=pl.UInt8),
            "operation": pl.Series([call.operation_code for call in calls], dtype=pl.UInt8),
            "collective": pl.Series([call.collective for call in calls], dtype=pl.Boolean),
            "nonblocking": pl.Series([call.nonblocking for call in calls], dtype=pl.Boolean),
            "positional": pl.Series([call.positional for call in calls], dtype=pl.Boolean),
        }
    )


def _offsets(named: pl.DataFrame, pointers: FilePointers) -> pl.Series:
    """The replayed file pointer; seeks do not say where they lead, so it is lost behind them."""
    operation = named["operation"].fill_null(OPERATIONS.index("other")).to_numpy()
    file = named["file"].cast(pl.Int64).fill_null(-1).to_numpy()
    process = named["process"].cast(pl.Int64).fill_null(0).to_numpy()
    moved = named["bytes"].fill_null(0).to_numpy()
    data = operation <= OPERATIONS.index("write")
    opens = operation == OPERATIONS.index("open")
    seeks = operation == OPERATIONS.index("seek")
    layer = named["layer"].fill_null(LAYERS.index("other")).to_numpy()
    plain = (file >= 0) & (layer <= LAYERS.index("stdio"))
    own = named["positional"].fill_null(False).to_numpy()
    position = pointers.replay(
        pointer_key(process, file),
        sets=plain & (opens | seeks),
        moves=plain & data & ~own,
        amount=np.where(data, moved, np.where(opens, 0, UNKNOWN)),
    )
    return nullable(position, (position == UNKNOWN) | ~data)
