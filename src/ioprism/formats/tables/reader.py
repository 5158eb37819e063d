"""A TOML file that says what the columns of a user's table mean.

[table]
path = "events.csv"        # beside the TOML file
time_unit = "ms"           # s (default), ms, us, ns

[columns]                  # ioprism's name = the table's name
start = "t0"
duration = "dt"            # or end
operation = "op"
file = "name"
bytes = "n"

[operations]               # what the table's words mean
R = "read"
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import polars as pl

from ioprism.errors import BrokenTraceError, OverBudgetError
from ioprism.formats.calls import classify
from ioprism.formats.isolation import UNREADABLE, columns_of, first_line, is_parquet, until_damage
from ioprism.formats.reading import Budget
from ioprism.formats.text import TORN_END, blocks_of, ends_torn, head
from ioprism.model.schema import EVENTS, OPERATIONS, PROCESSES, Layer, Operation, file_table
from ioprism.model.trace import LATEST, LAYERS, Completeness, Job, Trace, Warn
from ioprism.text import is_text, read_toml

SECONDS: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
KNOWN = (
    "start", "end", "duration", "rank", "process", "application", "host", "pid", "tid", "file",
    "layer", "operation", "function", "collective", "nonblocking", "offset", "bytes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TableMapping:
    """Which column is which, and what its words mean."""

    columns: Mapping[str, str] = field(default_factory=dict)  # ioprism's name -> the table's
    operations: Mapping[str, str] = field(default_factory=dict)
    layers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 1.0  # in one unit of the table's times

    def column(self, name: str) -> str:
        """The table's name for one of ioprism's columns."""
        return self.columns.get(name, name)


def is_mapping(path: Path) -> bool:
    """Whether a file is such a description."""
    try:
        read = read_toml(path)
    except (OSError, ValueError):
        return False
    return isinstance(read.get("columns"), dict) and isinstance(read.get("table"), dict)


def described_table(path: Path) -> Path:
    """Return the table that a file which `is_mapping` names, whether it is there or not."""
    return path.parent / str(read_toml(path)["table"].get("path"))


def read_mapping(path: Path) -> tuple[Path, TableMapping]:
    """Return the table that a TOML file describes, and what its columns mean.

    Raises:
        BrokenTraceError: it names a column, word or unit that does not exist.
    """
    try:
        read = read_toml(path)
        table, columns = read["table"], read["columns"]
        target = path.parent / str(table["path"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _wrong(path, f"it lacks [columns] or [table] path ({error})") from error
    unit = str(table.get("time_unit", "s"))
    mapping = TableMapping(
        columns=_words(columns, KNOWN, path, values=False),
        operations=_words(read.get("operations", {}), OPERATIONS, path),
        layers=_words(read.get("layers", {}), LAYERS, path),
        seconds=SECONDS.get(unit, 0.0),
    )
    if not mapping.seconds:
        raise _wrong(path, f"time_unit {unit!r} is not one of {', '.join(SECONDS)}")
    if not target.is_file():
        raise _wrong(path, f"the table {str(table['path'])!r} does not exist")
    return target, mapping


def _words(
    given: object, allowed: tuple[str, ...], path: Path, *, values: bool = True
) -> dict[str, str]:
    """Check that ioprism's side of each pair is a word it knows."""
    if not isinstance(given, dict):
        raise _wrong(path, "a section is not a table of names")
    pairs = {str(key): str(value) for key, value in given.items()}
    unknown = [word for word in (pairs.values() if values else pairs) if word not in allowed]
    if unknown:
        raise _wrong(path, f"{unknown[0]!r} is not one of {', '.join(allowed)}")
    return pairs


def _wrong(path: Path, why: str) -> BrokenTraceError:
    return BrokenTraceError(
        f"the description of the table cannot be used: {why}.\n"
        "Hint: see the example in docs/explanation/trace-formats.md.",
        source=path,
    )


ROWS = 250_000  # rows read together
MERGE_SIZE = 64 * 2**20  # bytes of names that are held before those that came twice are joined
COPIES_HELD = 3  # of a table of names: itself, the one it is joined from, and with the events
ROWS_PER_PARTITION = 1_000_000
HEAD = 65536
NO_NUMBER = -1  # a size that is given and is none: it cannot be true, and is counted so
PROCESS = ("application", "host", "pid", "tid", "rank", "process")
_WHOLE = ("rank", "process", "pid", "tid", "offset", "bytes")
_WORDS = ("application", "host", "file", "layer", "operation", "function")


class TableReader:
    """Reads tables with the event columns, or with a TOML file that names the columns."""

    name = "table"
    title = "Tables of events (CSV, Parquet, JSON lines), or a TOML file describing one"
    tells = frozenset({"calls", "metadata", "offsets", "ranks", "threads", "hosts", "files",
                       "collective", "layers"})  # fmt: skip

    def recognises(self, source: Path) -> bool:
        """Whether it has the event columns, or describes a table. Never raises."""
        if not source.is_file():
            return False
        try:
            return is_mapping(source) or _sufficient(_columns(source))
        except (ValueError, *UNREADABLE):
            return False

    def read(self, source: Path) -> Trace:
        """Look up files and processes now; events are read when asked for."""
        try:
            path, mapping = read_mapping(source) if is_mapping(source) else (source, TableMapping())
            if not is_text(path):
                raise ValueError("its name is not UTF-8: give it another one")
            return _TableContent(source, ForeignTable(path, mapping)).trace()
        except OverBudgetError:
            raise
        except (ValueError, *UNREADABLE) as error:
            raise BrokenTraceError(
                f"the table cannot be read ({first_line(error)}).\n"
                "Hint: it needs the columns start, end or duration, and operation or function.",
                source=source,
            ) from error


def _kind(path: Path) -> str:
    """What a table is written in, by its content."""
    if is_parquet(path):
        return "parquet"
    return "json" if head(path, 64).lstrip().startswith("{") else "csv"


def _columns(path: Path) -> list[str]:
    kind = _kind(path)
    if kind == "parquet":
        return columns_of([path])[0]
    first = head(path, HEAD).removeprefix("\ufeff").partition("\n")[0].strip()
    if kind == "json":
        try:
            read = json.loads(first)
        except (ValueError, RecursionError):
            return []
        return list(read) if isinstance(read, dict) else []
    return [name.strip().strip('"') for name in first.split(",")]


def _sufficient(columns: list[str]) -> bool:
    present = set(columns)
    return (
        "start" in present
        and bool({"end", "duration"} & present)
        and bool({"operation", "function"} & present)
    )


@dataclass(frozen=True, slots=True)
class ForeignTable:
    """A table and what its columns mean."""

    path: Path
    mapping: TableMapping
    rows: tuple[int, int] | None = None  # first and number, of Parquet; None: all

    def parts(self) -> Iterator[ForeignTable]:
        """Cut Parquet by rows: polars reads only the row groups that they are in."""
        if _kind(self.path) != "parquet":
            yield self
            return
        height = self._scan().select(pl.len()).collect().item()
        for first in range(0, max(height, 1), ROWS_PER_PARTITION):
            yield replace(self, rows=(first, ROWS_PER_PARTITION))

    def pieces(self, warn: Warn = lambda _: None) -> Iterator[pl.LazyFrame]:
        """The known columns under ioprism's names; text comes in many pieces."""
        kind = _kind(self.path)
        if kind == "parquet":
            yield self._with_known_columns(self._scan())
            return
        wanted = {self.mapping.column(name) for name in KNOWN}
        blocks = blocks_of(self.path, wanted, lines_are_json=kind == "json", warn=warn)
        yield from (self._with_known_columns(block.lazy()) for block in blocks)

    def every(self, step: Callable[[pl.LazyFrame], pl.LazyFrame]) -> pl.DataFrame:
        """What a step finds in all rows; it is applied to pieces, and to what it found in them."""
        collected: list[pl.DataFrame] = []
        size, most = 0, MERGE_SIZE
        for piece in self.pieces():
            collected.append(step(piece).collect(engine="streaming"))
            size += int(collected[-1].estimated_size())
            if size > most:
                collected = [step(pl.concat(collected).lazy()).collect()]
                size = int(collected[0].estimated_size())
                Budget(self.path).take(COPIES_HELD * size, "the names in it")
                most = max(MERGE_SIZE, 2 * size)
        return step(pl.concat(collected).lazy()).collect()

    def _scan(self) -> pl.LazyFrame:
        columns_of([self.path])
        table = pl.scan_parquet(self.path, glob=False)
        return table if self.rows is None else table.slice(*self.rows)

    def _with_known_columns(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """The known columns; those it lacks are null."""
        schema = frame.collect_schema()
        present = set(schema.names())
        wanted = {name: self.mapping.column(name) for name in KNOWN}
        matching = [name for name, own in wanted.items() if own in present]
        if not _sufficient(matching):
            raise ValueError(f"it has only the columns {', '.join(sorted(present))[:200]}")
        texts = {name for name in matching if schema[wanted[name]] == pl.String}
        return frame.select([pl.col(wanted[name]).alias(name) for name in matching]).select(
            [_column(name, name in matching, text=name in texts) for name in KNOWN]
        )


def _whole(column: pl.Expr, *, text: bool) -> pl.Expr:
    """Whole numbers; libraries that know no missing ones write 4096 as 4096.0."""
    return (column.str.strip_suffix(".0") if text else column).cast(pl.Int64, strict=False)


def _column(name: str, present: bool, *, text: bool) -> pl.Expr:
    column = pl.col(name) if present else pl.lit(None).alias(name)
    if name in ("offset", "bytes") and present:
        given = column.is_not_null() & (column.cast(pl.String, strict=False) != "")
        number = _whole(column, text=text)
        return pl.when(number.is_null() & given).then(NO_NUMBER).otherwise(number).alias(name)
    if name in _WHOLE:
        return _whole(column, text=text and present)
    if name in _WORDS:
        return column.cast(pl.String, strict=False)
    if name in ("collective", "nonblocking"):
        return (
            column.cast(pl.String, strict=False).str.to_lowercase().is_in(["true", "1"]).alias(name)
        )
    return column.cast(pl.Float64, strict=False)


@dataclass(frozen=True)
class _TableContent:
    source: Path
    table: ForeignTable

    def trace(self) -> Trace:
        first, last = self._span()
        processes = self.processes
        completeness = Completeness()
        if _kind(self.table.path) != "parquet" and ends_torn(self.table.path):
            completeness.warn(f"{self.table.path.name}: {TORN_END}")
        return Trace(
            format=TableReader.name,
            paths=(self.source,),
            job=Job(ranks=processes["rank"].n_unique() or None, runtime=last - first),
            partitions=tuple(
                TablePartition(part, self.files, self.keys, first) for part in self.table.parts()
            ),
            load_files=lambda: file_table(self.files["file"]),
            load_processes=lambda: processes,
            completeness=completeness,
        )

    def _span(self) -> tuple[float, float]:
        """Seconds of the first and the last event; tables that begin soon begin at zero."""
        start, end = _times(self.table.mapping.seconds)
        sound = (start.abs() < LATEST) & (end.abs() < LATEST) & (end >= start)
        plausible = (piece.filter(sound).select(start, end=end) for piece in self.table.pieces())
        spans = [
            piece.select(pl.col("start").min(), pl.col("end").max()).collect(engine="streaming")
            for piece in plausible
        ]
        first, last = pl.concat(spans).select(pl.col("start").min(), pl.col("end").max()).row(0)
        if first is None or last is None:
            raise ValueError("no row has a start and an end")
        return (0.0 if 0 <= first < last - first + 1 else first), last

    @cached_property
    def files(self) -> pl.DataFrame:
        named = self.table.every(lambda piece: piece.select("file").unique())
        return named.drop_nulls().filter(pl.col("file") != "").sort("file").with_row_index("row")

    @cached_property
    def keys(self) -> pl.DataFrame:
        """Every process, with its row and its rank."""
        seen = self.table.every(lambda piece: piece.select(PROCESS).unique())
        seen = seen.sort("rank", *PROCESS, nulls_last=False).with_row_index("own_row")
        who = pl.struct("application", "host", "pid").rank("dense").cast(pl.Int32) - 1
        return seen.with_columns(own_rank=pl.coalesce(pl.col("rank").cast(pl.Int32), who))

    @cached_property
    def processes(self) -> pl.DataFrame:
        thread = pl.when(pl.col("tid") >= 0).then("tid")
        names = ("application", "host", "pid")
        return PROCESSES.conform(
            self.keys.select(*names, process="own_row", rank="own_rank", tid=thread)
        )


def _times(seconds: float) -> tuple[pl.Expr, pl.Expr]:
    start = pl.col("start") * seconds
    return start, pl.coalesce(pl.col("end") * seconds, start + pl.col("duration") * seconds)


@dataclass(frozen=True, slots=True, eq=False)
class TablePartition:
    """The events of a table, or of some rows of it."""

    table: ForeignTable
    files: pl.DataFrame  # file (path), row
    keys: pl.DataFrame
    origin: float  # seconds

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield events in pieces of bounded size."""
        for rows in until_damage(self._tables(warn), self.table.path.name, warn):
            yield self._events(rows).lazy()

    def _tables(self, warn: Warn) -> Iterator[pl.DataFrame]:
        for piece in self.table.pieces(warn):
            yield from piece.collect_batches(chunk_size=ROWS, maintain_order=True)

    def _events(self, rows: pl.DataFrame) -> pl.DataFrame:
        start, end = _times(self.table.mapping.seconds)
        named = rows.join(self.files, on="file", how="left", maintain_order="left").join(
            self.keys, on=PROCESS, how="left", nulls_equal=True, maintain_order="left"
        )
        kinds = _kinds(named.select("layer", "operation", "function").unique(), self.table.mapping)
        named = named.join(
            kinds, on=["layer", "operation", "function"], how="left", nulls_equal=True,
            maintain_order="left",
        )  # fmt: skip
        columns = named.with_columns(start - self.origin, end.alias("end") - self.origin)
        return EVENTS.conform(
            columns.with_columns(
                file="row",
                process="own_row",
                rank="own_rank",
                layer=named["layer_code"].cat.to(Layer),
                operation=named["operation_code"].cat.to(Operation),
            )
        )


def _kinds(words: pl.DataFrame, mapping: TableMapping) -> pl.DataFrame:
    """Layer and operation of every combination of the table's words."""
    codes = [_codes(row, mapping) for row in words.iter_rows()]
    return words.with_columns(
        layer_code=pl.Series([layer for layer, _ in codes], dtype=pl.UInt8),
        operation_code=pl.Series([operation for _, operation in codes], dtype=pl.UInt8),
    )


def _codes(words: tuple[str | None, ...], mapping: TableMapping) -> tuple[int, int]:
    """What the words mean: as mapped, as ioprism's own words, or as a function's name."""
    layer, operation, function = words
    call = classify(function or operation or "")
    known_layer = mapping.layers.get(layer or "", (layer or "").lower())
    known_operation = mapping.operations.get(operation or "", (operation or "").lower())
    if known_layer not in LAYERS:
        known_layer = call.layer if call.layer != "other" else "posix"
    if known_operation not in OPERATIONS:
        known_operation = call.operation
    return LAYERS.index(known_layer), OPERATIONS.index(known_operation)
