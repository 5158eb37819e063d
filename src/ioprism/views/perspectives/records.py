"""What each record of a view adds up to: first the sums that severity needs, then all fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.model.schema import OPERATIONS
from ioprism.views.calls.call_class import CLASSES, READ, SLOTS, WRITE, Codes
from ioprism.views.perspectives.codes import OF_CALLS, Perspective, perspective
from ioprism.views.perspectives.fields import SUMMED

Floats = npt.NDArray[np.float64]
OPEN = OPERATIONS.index("open")
MATRIX_CELLS = 2**23  # of the record-by-class matrix that is in memory at a time
_SUMS = ("count", "bytes", "seconds", "data_seconds")


@dataclass(frozen=True)
class Rows:
    """The rows of the main view that count, and the perspectives asked for."""

    main: pl.DataFrame
    files: pl.DataFrame
    processes: pl.DataFrame
    views: tuple[str, ...]

    @cached_property
    def perspectives(self) -> dict[str, Perspective]:
        """The perspectives by name."""
        return {name: self._perspective(name, self.main) for name in self.views}

    def _perspective(self, name: str, rows: pl.DataFrame) -> Perspective:
        return perspective(name, rows, files=self.files, processes=self.processes)

    @cached_property
    def coded(self) -> pl.DataFrame:
        """What sums by class need: the class, the sums, and the codes of the views."""
        codes = [self._code_column(name) for name in self.views]
        place = np.zeros(CLASSES, np.uint16)
        place[self.classes] = np.arange(len(self.classes))
        return self.main.select("count", "bytes", "seconds").with_columns(
            *codes,
            class_number=pl.Series(place[self.main["class"].to_numpy()]),
            function_number=self._function_codes.codes,
        )

    @cached_property
    def classes(self) -> Codes:
        """The classes that occur, by `class_number`."""
        return np.flatnonzero(np.bincount(self.main["class"].to_numpy(), minlength=1))

    @property
    def functions(self) -> pl.Series:
        """The names behind `function_number`; the last one is unknown."""
        return self._function_codes.names

    @cached_property
    def _function_codes(self) -> _FunctionCodes:
        return _FunctionCodes.of(self.main["function"])

    @cached_property
    def cells(self) -> pl.DataFrame:
        """The main view without classes: all that severity and the other fields need."""
        operation = pl.col("class") // SLOTS % len(OPERATIONS)
        reads = operation == READ
        rows = self.main.lazy().with_columns(
            *(self._code_column(name) for name in self.views if name in OF_CALLS),
            data_seconds=pl.when(operation <= WRITE).then("seconds").otherwise(0.0),
            read_bytes=pl.when(reads).then("bytes").otherwise(0),
            reach=pl.when(reads).then("reach"),
            open_seconds=pl.when(operation == OPEN).then("seconds").otherwise(0.0),
        )
        keys = [f"{name}_code" for name in self.views if name in OF_CALLS]
        summed = rows.group_by("process", "file", "time", *keys).agg(
            pl.col(*_SUMS, "read_bytes", "open_seconds").sum(), pl.col("slowest", "reach").max()
        )
        return self._described(summed.collect())

    def _code_column(self, name: str) -> pl.Series:
        return self.perspectives[name].codes.alias(f"{name}_code")

    def _described(self, cells: pl.DataFrame) -> pl.DataFrame:
        """Add what a cell has in common with others of its file or process."""
        first_opened = pl.col("time").filter(pl.col("open_seconds") > 0).min().over("file")
        known_before = 1 - pl.col("reach").max() / pl.col("read_bytes").sum()
        one_each = not set(self.views) & set(OF_CALLS)
        processes = pl.len() if one_each else pl.col("process").n_unique()
        # All values of the rows are in the cells, so both are numbered alike.
        codes = [
            self._perspective(name, cells).codes.alias(f"{name}_code")
            for name in self.views
            if name not in OF_CALLS
        ]
        return cells.with_columns(
            *codes,
            application=self._perspective("application", cells).codes,
            host=self._perspective("host", cells).codes,
            sharers=pl.when(pl.col("file").is_not_null())
            .then(processes.over("file", "time"))
            .otherwise(1),
            first_open=pl.when(pl.col("time") == first_opened).then("open_seconds").otherwise(0.0),
            reread=pl.col("read_bytes")
            * known_before.over("process", "file").fill_nan(0.0).fill_null(0.0).clip(0, 1),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _FunctionCodes:
    codes: pl.Series
    names: pl.Series

    @classmethod
    def of(cls, functions: pl.Series) -> _FunctionCodes:
        """Number the functions that occur from 0 on; null comes last."""
        names = functions.unique().drop_nulls()
        lookup = np.full(int(names.to_physical().max() or 0) + 2, len(names), np.uint16)  # type: ignore[arg-type]
        lookup[names.to_physical().to_numpy()] = np.arange(len(names), dtype=np.uint16)
        physical = functions.to_physical().fill_null(len(lookup) - 1).to_numpy()
        texts = pl.concat([names.cast(pl.String), pl.Series([None], dtype=pl.String)])
        return cls(pl.Series(lookup[physical]), texts)


def summed_records(cells: pl.DataFrame, *, by: Sequence[str]) -> pl.DataFrame:
    """Add cells up to the records of a view.

    Returns:
        The codes of `by`, seconds (over all processes), slowest_process (the most that one
        process has), count, bytes, data_seconds and slowest_process_data.
    """
    codes = [f"{name}_code" for name in by]
    sums = pl.col(_SUMS).sum()
    per_process = cells.lazy().group_by(*codes, "process").agg(sums)
    return (
        per_process.group_by(codes)
        .agg(
            sums,
            slowest_process=pl.col("seconds").max(),
            slowest_process_data=pl.col("data_seconds").max(),
        )
        .collect()
    )


def all_fields(
    rows: pl.DataFrame, cells: pl.DataFrame, *, classes: Codes, records: int
) -> pl.DataFrame:
    """Return every field that is a sum, maximum or number of different things.

    Args:
        rows: rows as `Rows.coded` has them, with each one's record in `record`.
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
        first_open_time=pl.col("first_open").sum(),
        reread_size=pl.col("reread").sum(),
        shared_time=pl.col("seconds").filter(pl.col("sharers") > 1).sum(),
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
        sums = np.bincount(
            place, weights=block["seconds"].to_numpy(), minlength=(last - first) * len(names)
        )
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
        column: _summed(place, rows[column], height * width).reshape(height, width)
        for column in ("count", "bytes", "seconds")
    }
    sums = {
        name: matrices[column][:, wanted(classes)].sum(axis=1)
        for name, (column, wanted, _) in SUMMED.items()
    }
    # Parts of calls add up to whole calls but for rounding.
    return pl.DataFrame(sums).with_columns(pl.col("^(.*_)?count(_.*)?$").round(9))


def _summed(place: npt.NDArray[np.int64], values: pl.Series, size: int) -> Floats:
    return np.bincount(place, weights=values.to_numpy(), minlength=size).astype(np.float64)
