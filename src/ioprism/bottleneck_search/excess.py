"""What records cost above their peers, in seconds of the run.

A call that moves data may take as long as its bytes take at the rate at which half of the job's
bytes move, or faster. What goes beyond is unexplained by the data: metadata calls, small and
random requests, slow ranks. Within a time bucket the job waits for its slowest process, so a
record costs the sum over buckets of the most that one process has: processes that run side by
side are not added up, those that follow each other are. From that, the median of the other
records of the view is subtracted: what all have in common singles out none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.model.schema import OPERATIONS
from ioprism.views.calls.call_class import READ, SLOTS, WRITE
from ioprism.views.perspectives.records import PER_SECOND, Rows, whole_number

FACTOR = 1.5  # over what peers take: less is chance
OWN_PACE = 0.05  # of all bytes: a direction that moves less is measured by the other one
SLACK = 2.0  # reads and writes may well differ by this factor
LONGEST = 1e15  # nanoseconds that bytes explain: 11 days; sums of more would overflow
SAME_WORK = 0.2  # by how much calls and bytes may differ to be called the same
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """What processes did to files in each time bucket, with the time data do not explain."""

    # codes of the views, process, time, count, bytes, and in nanoseconds: nanoseconds,
    # unexplained, weight (unexplained where calls are slower than their data, and no less)
    table: pl.DataFrame
    across: str  # max or sum: processes of one time bucket
    io_time: float  # seconds of the run in which processes are in I/O calls, joined the same way
    nameless: Mapping[str, tuple[int, ...]]  # by view: code of what the trace does not place

    def of_records(self, view: str) -> pl.DataFrame:
        """Return seconds, unexplained seconds, calls and bytes of each record of a view.

        Counters say of some calls neither when they were nor whose: these are no record.
        """
        return join_processes(self.drop_unplaced(self.table, view), (f"{view}_code",), self.across)

    def drop_unplaced(self, rows: pl.DataFrame, view: str) -> pl.DataFrame:
        """Leave out the rows of which the trace does not say where they belong in a view."""
        return rows.filter(~pl.col(f"{view}_code").is_in(list(self.nameless[view])))

    def of(self, view: str, codes: Sequence[int]) -> tuple[float, float]:
        """Return seconds and unexplained seconds of several records taken together."""
        rows = self.table.filter(pl.col(f"{view}_code").is_in(list(codes)))
        whole = join_processes(rows, (), self.across)
        return whole["seconds"].item(), whole["unexplained"].item()


def costs(rows: Rows, *, across: str, ranks: int) -> Costs:
    """Compute what each row costs beyond its data, added up by process, file and time.

    Args:
        rows: rows of the main view.
        across: how processes of one time bucket are joined.
        ranks: of the job; rows without a process are sums over all of them.
    """
    rates = {kind: _typical_rate(rows.main, kind) for kind in (READ, WRITE)}
    per_byte = _kind().replace_strict(_paces(rates), default=0.0, return_dtype=pl.Float64)
    explained = (pl.col("bytes") * per_byte).clip(upper_bound=LONGEST)
    unexplained = pl.col("nanoseconds") - whole_number(explained)
    cells = rows.add_up_cells(
        pl.col("count", "bytes", "nanoseconds").sum(),
        unexplained=unexplained.sum(),
        weight=unexplained.clip(lower_bound=0).sum(),
    )
    nobody = pl.col("process").is_null()
    times = pl.col("nanoseconds", "unexplained", "weight")
    if across == "max":
        part = slowest_part(cells, rows, ranks)
        times = pl.when(nobody).then(whole_number(times * part)).otherwise(times)
    table = cells.with_columns(times)
    nameless = {
        name: tuple(rows.perspectives[name].values.is_null().arg_true().to_list())
        for name in rows.views
    }
    return Costs(
        table, across, float(join_processes(table, (), across)["seconds"].item()), nameless
    )


def slowest_part(cells: pl.DataFrame, rows: Rows, ranks: int) -> pl.Series:
    """What part of each cell its slowest rank has, where it stands for all ranks together.

    The mean rank's, where nothing tells of the slowest.
    """
    mean = 1 / max(1, ranks)
    if rows.shared is None or not rows.shared.height:
        return pl.repeat(mean, cells.height, eager=True)
    parts = rows.shared.select("file", "part")
    parts_of_cells = cells.select("file").join(parts, on="file", how="left", maintain_order="left")
    return parts_of_cells["part"].fill_null(mean)


def _kind() -> pl.Expr:
    """The operation of calls that move data; null for others."""
    operation = pl.col("class") // SLOTS % len(OPERATIONS)
    return pl.when(operation <= WRITE).then(operation)


def _typical_rate(rows: pl.DataFrame, kind: int) -> tuple[float, int] | None:
    """Nanoseconds per byte of reads or of writes, at the rate of the median byte; all bytes."""
    data = rows.lazy().filter(_kind() == kind, pl.col("bytes") > 0, pl.col("nanoseconds") > 0)
    pace = pl.col("nanoseconds") / pl.col("bytes")
    paced = data.select("bytes", pace=pace).sort("pace").collect()
    half = pl.col("bytes").cum_sum() * 2 >= pl.col("bytes").sum()
    rate = paced.select(pl.col("pace").filter(half).first(), pl.col("bytes").sum()).row(0)
    return None if rate[0] is None else rate


def _paces(rates: Mapping[int, tuple[float, int] | None]) -> dict[int, float]:
    """The pace of each direction.

    A direction that moves next to nothing sets no pace of its own: the few bytes of many small
    reads would otherwise explain themselves.
    """
    known = {kind: rate for kind, rate in rates.items() if rate is not None}
    everything = sum(size for _, size in known.values())
    paces = {}
    for kind, (pace, size) in known.items():
        others = [other for name, (other, _) in known.items() if name != kind]
        little = size < OWN_PACE * everything
        paces[kind] = min(pace, SLACK * min(others, default=pace)) if little else pace
    return paces


def join_processes(rows: pl.DataFrame, by: tuple[str, ...], across: str) -> pl.DataFrame:
    """Join processes within each time bucket, and add up the buckets; in seconds."""
    sums = pl.col("nanoseconds", "unexplained", "count", "bytes").sum()
    most = pl.col("nanoseconds", "unexplained")
    per_process = rows.lazy().group_by(*by, "time", "process").agg(sums)
    per_time = per_process.group_by(*by, "time").agg(
        (most.max() if across == "max" else most.sum()).clip(lower_bound=0),
        pl.col("count", "bytes").sum(),
        all_seconds=pl.col("nanoseconds").sum(),
        all_unexplained=pl.col("unexplained").sum(),
    )
    every = (sums, pl.col("all_seconds", "all_unexplained").sum())
    whole = per_time.group_by(by).agg(*every).sort(by) if by else per_time.select(*every)
    times = pl.col("nanoseconds", "unexplained", "all_seconds", "all_unexplained") / PER_SECOND
    return whole.with_columns(times).rename({"nanoseconds": "seconds"}).collect()


def above_peers(records: pl.DataFrame) -> pl.DataFrame:
    """Add `excess`, `factor` and what the median of the other records has.

    Records without peers stand out from nothing: their excess is zero.
    """
    unexplained, seconds = (records[name].to_numpy() for name in ("unexplained", "seconds"))
    excess = unexplained - _median_of_others(unexplained)
    if records.height < 2:
        excess = np.zeros_like(unexplained)
    expected = np.maximum(seconds - excess, 1e-9)
    # The slowest process of each bucket is slow by chance; over all of them chance evens out.
    explained = pl.max_horizontal(pl.col("all_seconds") - pl.col("all_unexplained"), 1e-9)
    peers = {
        f"peers_{name}": pl.Series(_median_of_others(records[name].to_numpy().astype(np.float64)))
        for name in ("seconds", "count", "bytes")
    }
    return records.with_columns(
        excess=pl.Series(excess),
        factor=pl.min_horizontal(pl.Series(seconds / expected), pl.col("all_seconds") / explained),
        **peers,
    ).with_columns(same_work=_alike("count") & _alike("bytes"))


def _alike(name: str) -> pl.Expr:
    own, other = pl.col(name), pl.col(f"peers_{name}")
    return (own - other).abs() <= SAME_WORK * pl.max_horizontal(own, other)


def _median_of_others(values: Floats) -> Floats:
    """The lower median of all values but one's own."""
    count = len(values)
    if count < 2:
        return np.zeros(count)
    order = np.argsort(values, kind="stable")
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    middle = (count - 2) // 2
    medians: Floats = values[order][np.where(place <= middle, middle + 1, middle)]
    return medians
