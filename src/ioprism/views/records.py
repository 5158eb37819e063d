"""What each record of a view adds up to: first the sums that severity needs, then all fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.model.schema import OPERATIONS
from ioprism.views.call_class import (
    CLASSES,
    OF_CALLS,
    READ,
    SIZE_NAMES,
    SLOTS,
    SMALL_BINS,
    WRITE,
    Codes,
    Perspective,
    operation_of,
    perspective,
    random_of,
    size_bin_of,
)

Unit = Literal["s", "B", ""]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Field:
    """A number that every record has."""

    name: str
    unit: Unit
    meaning: str


def _is(*operations: str) -> Callable[[Codes], Flags]:
    wanted = [OPERATIONS.index(name) for name in operations]
    return lambda classes: np.isin(operation_of(classes), wanted)


def _small(operation: int) -> Callable[[Codes], Flags]:
    return lambda c: (operation_of(c) == operation) & (size_bin_of(c) < SMALL_BINS)


def _data(*, random: bool) -> Callable[[Codes], Flags]:
    return lambda c: (operation_of(c) <= WRITE) & (random_of(c) == random)


def _bin(number: int) -> Callable[[Codes], Flags]:
    return lambda c: (operation_of(c) <= WRITE) & (size_bin_of(c) == number)


# Groups of calls; each has a time, a count and, where bytes are moved, a size.
MOVING: Mapping[str, tuple[str, Callable[[Codes], Flags]]] = {
    "": ("all calls", lambda c: np.ones(len(c), bool)),
    "read_": ("reads", _is("read")),
    "write_": ("writes", _is("write")),
    "data_": ("reads and writes", _is("read", "write")),
    "small_read_": ("reads below 1 MiB", _small(READ)),
    "small_write_": ("writes below 1 MiB", _small(WRITE)),
    "sequential_": ("reads and writes that follow the last one, or keep its stride",
                    _data(random=False)),
    "random_": ("reads and writes that jump around in their file", _data(random=True)),
}  # fmt: skip
CALLING: Mapping[str, tuple[str, Callable[[Codes], Flags]]] = {
    "metadata_": ("calls that move no data", lambda c: operation_of(c) > WRITE),
    "open_": ("opens", _is("open")),
    "close_": ("closes", _is("close")),
    "seek_": ("seeks", _is("seek")),
    "stat_": ("stats", _is("stat")),
    "sync_": ("syncs and flushes", _is("sync")),
    "other_metadata_": ("other metadata calls: rename, mkdir, …", _is("metadata", "other")),
}
BINS = tuple(
    (f"count_{name}", number)
    for number, name in enumerate(
        ("below_4k", "4k_16k", "16k_64k", "64k_256k", "256k_1m", "1m_4m", "4m_16m", "16m_64m",
         "64m_and_more")
    )
)  # fmt: skip


def _sum_fields() -> dict[str, tuple[str, Callable[[Codes], Flags], Field]]:
    """Field -> column of the main view, classes to add up, and its description."""
    fields = {}
    for prefix, (what, wanted) in {**MOVING, **CALLING}.items():
        measures: list[tuple[str, str, Unit, str]] = [
            ("time", "nanoseconds", "s", "seconds in"),
            ("count", "count", "", "number of"),
        ]
        if prefix in MOVING:
            measures.append(("size", "bytes", "B", "bytes moved by"))
        for measure, column, unit, words in measures:
            name = f"{prefix}{measure}"
            fields[name] = (column, wanted, Field(name, unit, f"{words} {what}"))
    for name, number in BINS:
        meaning = f"number of reads and writes of {SIZE_NAMES[number]}"
        fields[name] = ("count", _bin(number), Field(name, "", meaning))
    return fields


SUMMED = _sum_fields()
OTHERS = (
    Field("slowest_call", "s", "the longest single call"),
    Field("slowest_process_time", "s", "seconds in calls of the process that has most of them"),
    Field("first_open_time", "s", "seconds in opens during the first bucket a file is opened in"),
    Field("reread_size", "B", "bytes read beyond what is in the file, at least"),
    Field("shared_time", "s", "seconds on files that several processes use in the same bucket"),
    Field("sharers", "", "most processes that use one file in one bucket"),
    Field("files", "", "number of files"),
    Field("processes", "", "number of processes"),
    Field("periods", "", "number of time buckets with calls"),
    Field("applications", "", "number of programs"),
    Field("hosts", "", "number of nodes"),
    Field("time_share", "", "share of the view's time, from 0 to 1, as used for the severity"),
    Field("work_share", "", "share of the view's work: operations, bytes, or what the metric says"),
    Field("count_share", "", "share of the view's operations"),
    Field("size_share", "", "share of the view's bytes"),
    Field("job_share", "", "share of the job's I/O time"),
    Field("severity", "", "degrees, from 0 to 90"),
    Field("excess_time", "s", "seconds in excess of the record's share of the work"),
    Field("job_processes", "", "number of processes of the job that do I/O"),
    Field("job_files", "", "number of files of the job"),
)
FIELDS: Mapping[str, Field] = {
    field.name: field for field in (*(entry[2] for entry in SUMMED.values()), *OTHERS)
}


Floats = npt.NDArray[np.float64]
OPEN = OPERATIONS.index("open")
MATRIX_CELLS = 2**23  # of the record-by-class matrix that is in memory at a time
PER_SECOND = 1e9  # nanoseconds, in which time is counted
_TIMES = ("nanoseconds", "data_nanoseconds")
_SUMS = ("count", "bytes", *_TIMES)


@dataclass(frozen=True)
class Rows:
    """The rows of the main view that count, and the perspectives asked for."""

    main: pl.DataFrame
    files: pl.DataFrame
    processes: pl.DataFrame
    views: tuple[str, ...]
    shared: pl.DataFrame | None = None  # file, process, part: of its rows for all ranks together

    @cached_property
    def perspectives(self) -> dict[str, Perspective]:
        """The perspectives by name."""
        return {name: self._perspective(name, self.main) for name in self.views}

    def _perspective(self, name: str, rows: pl.DataFrame) -> Perspective:
        return perspective(name, rows, files=self.files, processes=self.processes)

    @cached_property
    def code_table(self) -> pl.DataFrame:
        """What sums by class need: the class, the sums, and the codes of the views."""
        codes = [self._code_column(name) for name in self.views]
        place = np.zeros(CLASSES, np.uint16)
        place[self.classes] = np.arange(len(self.classes))
        return self.main.select("count", "bytes", "nanoseconds").with_columns(
            *codes,
            class_number=pl.Series(place[self.main["class"].to_numpy()]),
            function_number=self._functions.codes,
        )

    @cached_property
    def classes(self) -> Codes:
        """The classes that occur, by `class_number`."""
        return np.flatnonzero(np.bincount(self.main["class"].to_numpy(), minlength=1))

    @property
    def functions(self) -> pl.Series:
        """The names behind `function_number`; the last one is unknown."""
        return pl.concat([self._functions.values, pl.Series([None], dtype=pl.String)])

    @cached_property
    def _functions(self) -> Perspective:
        return self._perspective("function", self.main)

    @cached_property
    def cells(self) -> pl.DataFrame:
        """The main view without classes: all that severity and the other fields need."""
        operation = pl.col("class") // SLOTS % len(OPERATIONS)
        reads = operation == READ
        time = pl.col("nanoseconds")
        cells = self.add_up_cells(
            pl.col("count", "bytes", "nanoseconds").sum(),
            pl.col("slowest").max(),
            data_nanoseconds=time.filter(operation <= WRITE).sum(),
            read_bytes=pl.col("bytes").filter(reads).sum(),
            reach=pl.col("reach").filter(reads).max(),
            open_nanoseconds=time.filter(operation == OPEN).sum(),
        )
        return self._describe_cells(cells)

    def add_up_cells(self, *sums: pl.Expr, **named: pl.Expr) -> pl.DataFrame:
        """Add rows up by all that views tell apart; the codes of the views go with the sums."""
        codes = [name for name in self.views if name in OF_CALLS]
        rows = self.main.lazy().with_columns(self._code_column(name) for name in codes)
        keys = [f"{name}_code" for name in codes]
        summed = rows.group_by("process", "file", "time", *keys).agg(*sums, **named)
        cells = summed.collect(engine="streaming")
        # All values of the rows are in the cells, so both have the same numbers.
        others = [
            self._perspective(name, cells).codes.alias(f"{name}_code")
            for name in self.views
            if name not in OF_CALLS
        ]
        return cells.with_columns(others)

    def _code_column(self, name: str) -> pl.Series:
        return self.perspectives[name].codes.alias(f"{name}_code")

    def _describe_cells(self, cells: pl.DataFrame) -> pl.DataFrame:
        """Add what a cell has in common with others of its file or process."""
        first_opened = pl.col("time").filter(pl.col("open_nanoseconds") > 0).min().over("file")
        known_before = 1 - pl.col("reach").max() / pl.col("read_bytes").sum()
        one_each = not set(self.views) & set(OF_CALLS)
        processes = pl.len() if one_each else pl.col("process").n_unique()
        return cells.with_columns(
            application=self._perspective("application", cells).codes,
            host=self._perspective("host", cells).codes,
            sharers=pl.when(pl.col("file").is_not_null())
            .then(processes.over("file", "time"))
            .otherwise(1),
            first_open=pl.when(pl.col("time") == first_opened)
            .then("open_nanoseconds")
            .otherwise(0),
            reread=whole_number(
                pl.col("read_bytes")
                * known_before.over("process", "file").fill_nan(0.0).fill_null(0.0).clip(0, 1)
            ),
        )


def whole_number(values: pl.Expr) -> pl.Expr:
    """Whole numbers add up to the same sum in any order."""
    return values.round().cast(pl.Int64)


def summed_records(cells: pl.DataFrame, *, by: Sequence[str]) -> pl.DataFrame:
    """Add cells up to the records of a view.

    Returns:
        The codes of `by`, seconds (over all processes), slowest_process (the most that one
        process has), count, bytes, data_seconds and slowest_process_data.
    """
    codes = [f"{name}_code" for name in by]
    sums = pl.col(_SUMS).sum()
    per_process = cells.lazy().group_by(*codes, "process").agg(sums)
    summed = per_process.group_by(codes).agg(
        sums,
        slowest_process=pl.col("nanoseconds").max(),
        slowest_process_data=pl.col("data_nanoseconds").max(),
    )
    floats = summed.select(
        *codes,
        "count",
        "bytes",
        pl.col("slowest_process", "slowest_process_data") / PER_SECOND,
        seconds=pl.col("nanoseconds") / PER_SECOND,
        data_seconds=pl.col("data_nanoseconds") / PER_SECOND,
    )
    return floats.sort(codes).collect()  # shares are sums of floats, which depend on the order


def all_fields(
    rows: pl.DataFrame, cells: pl.DataFrame, *, classes: Codes, records: int
) -> pl.DataFrame:
    """Return every field that is a sum, maximum or number of different things.

    Args:
        rows: rows as `Rows.code_table` has them, with each one's record in `record`.
        cells: cells as `Rows.cells` has them, with each one's record in `record`.
        classes: what `class_number` stands for.
        records: how many records there are.
    """
    blocks = _blocks(records, len(classes))
    summed = pl.concat(
        _class_sums(_of_block(rows, block, blocks), block, classes) for block in blocks
    )
    others = cells.lazy().group_by("record").agg(
        slowest_call=pl.col("slowest").max(),
        first_open_time=pl.col("first_open").sum() / PER_SECOND,
        reread_size=pl.col("reread").sum(),
        shared_time=pl.col("nanoseconds").filter(pl.col("sharers") > 1).sum() / PER_SECOND,
        sharers=pl.col("sharers").max(),
        files=pl.col("file").drop_nulls().n_unique(),
        processes=pl.col("process").drop_nulls().n_unique(),
        periods=pl.col("time").drop_nulls().n_unique(),
        applications=pl.col("application").drop_nulls().n_unique(),
        hosts=pl.col("host").drop_nulls().n_unique(),
    )  # fmt: skip
    numbers = pl.DataFrame({"record": pl.Series(range(records), dtype=pl.UInt32)})
    joined = numbers.lazy().join(others, on="record", how="left", maintain_order="left").collect()
    return summed.hstack(joined.drop("record").with_columns(pl.all().fill_null(0)))


def longest_functions(rows: pl.DataFrame, names: pl.Series, *, records: int) -> pl.Series:
    """Return the name of the function that each record spends most time in."""
    places = [np.empty(0, np.int64)]
    blocks = _blocks(records, len(names))
    for first, last in blocks:
        block = _of_block(rows, (first, last), blocks)
        record = block["record"].to_numpy().astype(np.int64) - first
        place = record * len(names) + block["function_number"].to_numpy()
        sums = _add_up(place, block["nanoseconds"], (last - first) * len(names))
        places.append(sums.reshape(last - first, len(names)).argmax(axis=1))
    return names.gather(pl.Series(np.concatenate(places)[:records])).alias("function")


def main_operation(fields: pl.DataFrame) -> pl.Series:
    """Return the kind of call that each record spends most time in."""
    names = ("read", "write", "open", "close", "seek", "stat", "sync", "other_metadata")
    most = fields.select(f"{name}_time" for name in names).to_numpy().argmax(axis=1)
    return pl.Series([name.replace("_", " ") for name in names]).gather(pl.Series(most))


def _blocks(records: int, classes: int) -> list[tuple[int, int]]:
    """Ranges of records whose matrix of sums fits into memory."""
    step = max(1, MATRIX_CELLS // max(1, classes))
    return [(first, min(records, first + step)) for first in range(0, max(records, 1), step)]


def _of_block(
    rows: pl.DataFrame, block: tuple[int, int], blocks: Sequence[tuple[int, int]]
) -> pl.DataFrame:
    first, last = block
    return rows if len(blocks) == 1 else rows.filter(pl.col("record").is_between(first, last - 1))


def _class_sums(rows: pl.DataFrame, block: tuple[int, int], classes: Codes) -> pl.DataFrame:
    """Add up by record and class once, then every field as a sum over classes."""
    first, last = block
    height, width = last - first, len(classes)
    record = rows["record"].to_numpy().astype(np.int64) - first
    place = record * width + rows["class_number"].to_numpy()
    matrices: dict[str, Floats] = {
        column: _add_up(place, rows[column], height * width).reshape(height, width)
        for column in ("count", "bytes", "nanoseconds")
    }
    sums = {
        name: matrices[column][:, wanted(classes)].sum(axis=1)
        / (PER_SECOND if column == "nanoseconds" else 1)
        for name, (column, wanted, _) in SUMMED.items()
    }
    # Parts of calls add up to whole calls but for rounding.
    return pl.DataFrame(sums).with_columns(pl.col("^(.*_)?count(_.*)?$").round(9))


def _add_up(place: npt.NDArray[np.int64], values: pl.Series, size: int) -> Floats:
    """Add values up by place, exactly: in two halves where a float has too few digits."""
    numbers = values.to_numpy()
    if values.dtype.is_integer() and int(np.abs(numbers).sum()) >= 2**53:
        high, low = (
            _bincount(place, part, size) for part in (numbers >> 20, numbers & (2**20 - 1))
        )
        return high * 2**20 + low
    return _bincount(place, numbers, size)


def _bincount(place: npt.NDArray[np.int64], values: npt.NDArray[Any], size: int) -> Floats:
    return np.bincount(place, weights=values, minlength=size).astype(np.float64)
