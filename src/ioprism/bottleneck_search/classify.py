"""Walk through every combination of views and classify their records.

Drill-down: the view (file, time) is the time view of what bottleneck files did, so its shares
are those of these rows only. Cross: the view (file, time) has a record for every pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from operator import and_
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.bottleneck_search.result import LABELS, Settings, ViewSummary, rate_records
from ioprism.views.records import (
    PER_SECOND,
    Rows,
    all_fields,
    longest_functions,
    main_operation,
    summed_records,
)

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Filter:
    """Only rows whose code in a view is marked."""

    view: str
    marked: Flags

    def keep(self, rows: pl.DataFrame) -> Flags:
        """Mark the rows that stay."""
        flags: Flags = self.marked[_numbers(rows[f"{self.view}_code"])]
        return flags


@dataclass(frozen=True, slots=True, eq=False)
class ViewRecords:
    """A view, and what was found in it."""

    summary: ViewSummary
    kept: pl.DataFrame  # the bottlenecks that are reported: codes of the view, and every field
    filters: tuple[Filter, ...] = ()  # what the views before the last one leave


def classify_views(rows: Rows, settings: Settings, *, ranks: int) -> Iterator[ViewRecords]:
    """Yield every view of the settings, in order, with its bottlenecks."""
    walk = Walk(rows, settings, io_time(rows, settings, ranks))
    if settings.combine == "cross":
        yield from walk.view_combinations()
    else:
        records = list(walk.drill_down((), rows.cells, ()))
        order = {name: number for number, name in enumerate(settings.views)}
        yield from sorted(
            records, key=lambda v: (len(v.summary.view), [order[n] for n in v.summary.view])
        )


def io_time(rows: Rows, settings: Settings, ranks: int) -> float:
    """Seconds of I/O: of the slowest process, or of all, as the settings say.

    Of what stands for all ranks together each has the mean, and the slowest of a file its part.
    """
    times = rows.main.group_by("process", "file").agg(pl.col("nanoseconds").sum())
    if settings.across != "max":
        return float(times["nanoseconds"].sum()) / PER_SECOND
    of_all = times.filter(pl.col("process").is_null()).drop("process")
    mean = float(of_all["nanoseconds"].sum()) / max(1, ranks)
    own = times.filter(pl.col("process").is_not_null()).select(
        "process", pl.col("nanoseconds").cast(pl.Float64)
    )
    if rows.shared is not None and rows.shared.height:
        beyond = pl.col("nanoseconds") * (pl.col("part") - 1 / max(1, ranks))
        slowest = rows.shared.join(of_all, on="file").select("process", beyond.alias("nanoseconds"))
        own = pl.concat([own, slowest], how="vertical_relaxed")
    longest = own.group_by("process").agg(pl.col("nanoseconds").sum())["nanoseconds"].to_numpy()
    return (mean + float(longest.max(initial=0.0))) / PER_SECOND


@dataclass(frozen=True, slots=True)
class Walk:
    """Goes through the views of the rows."""

    rows: Rows
    settings: Settings
    io_time: float

    def view_combinations(self) -> Iterator[ViewRecords]:
        """Yield every combination, with a record for each pair, triple and so on."""
        views = self.settings.views
        for size in range(1, len(views) + 1):
            for view in combinations(views, size):
                yield self._classify(view, self.rows.cells, by=view, filters=())

    def drill_down(
        self, prefix: tuple[str, ...], cells: pl.DataFrame, filters: tuple[Filter, ...]
    ) -> Iterator[ViewRecords]:
        """Yield every order of the views, each of what the bottlenecks before it did."""
        for name in self.settings.views:
            if name in prefix:
                continue
            view = (*prefix, name)
            records = self._classify(view, cells, by=(name,), filters=filters)
            yield records
            if len(view) < len(self.settings.views):
                marked = self._mark(name, records.kept)
                inside = cells.filter(pl.Series(marked.keep(cells)))
                yield from self.drill_down(view, inside, (*filters, marked))

    def _mark(self, name: str, kept: pl.DataFrame) -> Filter:
        marked = np.zeros(len(self.rows.perspectives[name].values), bool)
        marked[_numbers(kept[f"{name}_code"])] = True
        return Filter(name, marked)

    def _classify(
        self,
        view: tuple[str, ...],
        cells: pl.DataFrame,
        *,
        by: tuple[str, ...],
        filters: tuple[Filter, ...],
    ) -> ViewRecords:
        records = summed_records(cells, by=by)
        if self.settings.work is not None:
            fields = self.fields(records, by, cells, filters)
            # A metric of one's own may need every field of every record.
            sound = self.settings.work.fill_null(0.0).fill_nan(0.0).clip(lower_bound=0.0)
            records = records.with_columns(fields.select(work=sound).to_series())
        critical = rate_records(records, self.settings, io_time=self.io_time).filter("critical")
        share = critical["time"] / self.io_time if self.io_time else critical["time"]
        kept = critical.with_columns(job_share=share).filter(
            pl.col("job_share") >= self.settings.floor
        )
        codes = [f"{name}_code" for name in by]
        kept = kept.sort("severity", "time", *codes, descending=[True, True, *(False for _ in by)])
        counts = Counter(critical["label"].to_list())
        summary = ViewSummary(
            view,
            records.height,
            critical.height,
            critical.height - kept.height,
            {name: counts[name] for name in LABELS if name in counts},
        )
        rating = kept.select(
            *codes, "label", "severity", "time_share", "work_share",
            "count_share", "size_share", "job_share", at_stake="time",
            slowest_process_time="slowest_process",
        )  # fmt: skip
        whole = rating.hstack(self.fields(kept, by, cells, filters))
        return ViewRecords(summary, whole, filters)

    def fields(
        self,
        records: pl.DataFrame,
        by: tuple[str, ...],
        cells: pl.DataFrame,
        filters: tuple[Filter, ...],
    ) -> pl.DataFrame:
        """Return every field of these records, whose codes of `by` are given."""
        rows = self._number_records(self.rows.code_table, records, by, filters)
        inside, height = self._number_records(cells, records, by), records.height
        functions = longest_functions(rows, self.rows.functions, records=height)
        fields = all_fields(rows, inside, classes=self.rows.classes, records=height)
        kinds = main_operation(fields) if height else functions
        return fields.with_columns(function=functions.zip_with(functions.is_not_null(), kinds))

    def _number_records(
        self,
        rows: pl.DataFrame,
        records: pl.DataFrame,
        by: tuple[str, ...],
        filters: tuple[Filter, ...] = (),
    ) -> pl.DataFrame:
        """Return the rows of these records, with each record's number in `record`."""
        codes = [f"{name}_code" for name in by]
        numbers = records.select(codes).with_row_index("record")
        if len(codes) > 1:
            return rows.join(numbers, on=codes, how="inner")
        lookup = np.full(len(self.rows.perspectives[by[0]].values), -1, np.int32)
        lookup[_numbers(numbers[codes[0]])] = _numbers(numbers["record"])
        record = lookup[_numbers(rows[codes[0]])]
        keep = reduce(and_, (f.keep(rows) for f in filters), record >= 0)
        return rows.filter(pl.Series(keep)).with_columns(
            record=pl.Series(record[keep].astype(np.uint32))
        )


def _numbers(codes: pl.Series) -> npt.NDArray[np.integer[Any]]:
    """Codes to index with; those of an empty table have no dtype."""
    numbers: npt.NDArray[np.integer[Any]] = codes.to_numpy()
    return numbers if len(numbers) else numbers.astype(np.int64)
