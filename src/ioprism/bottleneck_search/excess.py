"""What records cost above their peers, in seconds of the run.

A call that moves data may take as long as its bytes take at the rate at which half of the job's
bytes move, or faster. What goes beyond is unexplained by the data: metadata calls, small and
random requests, slow ranks. Within a time bucket the job waits for its slowest process, so a
record costs the sum over buckets of the most that one process has: processes that run side by
side are not added up, those that follow each other are. From that, the median of the other
records of the view is subtracted: what all have in common singles out none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.model.schema import OPERATIONS
from ioprism.views.call_class import READ, SLOTS, WRITE
from ioprism.views.records import PER_SECOND, Rows, whole_number

FACTOR = 1.5  # over what peers take: less is chance, and records this near are folded
OWN_PACE = 0.05  # of all bytes: a direction that moves less is measured by the other one
# Factor between what may well be the same: paces of reads and writes, work of records.
SIMILAR = 2.0
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
        paces[kind] = min(pace, SIMILAR * min(others, default=pace)) if little else pace
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


MOST = 40  # candidates of each view; more of them can only be like one of these
# Of unexplained seconds in common: two records cover the same calls; of a record's own: this is
# where they happen.
MOSTLY = 0.8
INSIDE = 0.7  # of its unexplained seconds: a record is part of another
WORTH_TELLING = 0.5  # of the seconds of the whole: a larger part is listed separately
WHOLE = 0.9  # of all time, calls and bytes: such a record is the job, and singles out nothing
WEIGHT = pl.col("weight").sum()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A record that costs more than its peers."""

    view: str
    code: int
    excess: float
    weight: float  # unexplained nanoseconds of all its rows
    numbers: Mapping[str, float]  # seconds, factor, peers_seconds, same_work


@dataclass(frozen=True, slots=True)
class Merged:
    """A record with the other perspectives in which it is the same."""

    lead: Candidate
    views: tuple[str, ...]
    excess: float
    seconds: float
    alike: tuple[Candidate, ...] = ()  # of the lead's view: it and those that cost about as much
    codes: Mapping[str, int] = field(default_factory=dict)  # by view: where it happens

    @property
    def records(self) -> tuple[int, ...]:
        """The codes of all its records in the lead's view."""
        return tuple(one.code for one in self.alike or (self.lead,))


@dataclass(frozen=True, slots=True)
class ViewCandidates:
    """The candidates of one view, and how many records it has."""

    view: str
    records: int
    found: tuple[Candidate, ...]
    others: tuple[Candidate, ...]  # that cost less than those
    whole: tuple[int, ...]  # codes of records that have nearly all of the job's I/O


def candidates(view: str, costs: Costs, *, least: float) -> ViewCandidates:
    """Return the records of a view that cost at least `least` seconds above their peers."""
    records = above_peers(costs.of_records(view))
    code = f"{view}_code"
    costly = (pl.col("excess") >= least) & (pl.col("factor") >= FACTOR)
    whole = records.filter(_is_whole(costs))[code].to_list()
    chosen = records.filter(costly & ~pl.col(code).is_in(whole))
    worst = chosen.sort("excess", code, descending=[True, False])
    weights = dict(costs.table.group_by(code).agg(WEIGHT).iter_rows())
    names = ("seconds", "factor", "peers_seconds", "same_work", "count", "bytes")
    worst_first = tuple(
        Candidate(view, row[code], row["excess"], weights[row[code]], {n: row[n] for n in names})
        for row in worst.iter_rows(named=True)
    )
    return ViewCandidates(
        view, records.height, worst_first[:MOST], worst_first[MOST:], tuple(whole)
    )


def _is_whole(costs: Costs) -> pl.Expr:
    """Whether a record has nearly all of the job's I/O: its parts say more than it does."""
    nanoseconds, *work = costs.table.select(pl.col("nanoseconds", "count", "bytes").sum()).row(0)
    job = (nanoseconds / PER_SECOND, *work)
    columns = ("all_seconds", "count", "bytes")
    return pl.all_horizontal(
        pl.col(name) >= WHOLE * of_job for name, of_job in zip(columns, job, strict=True)
    )


def merge_views(views: list[ViewCandidates], costs: Costs, *, least: float) -> list[Merged]:
    """Join what covers the same calls, fold similar records, and add where it happens."""
    every = [one for view in views for one in view.found]
    sizes = {view.view: view.records for view in views}
    # Where both cost the same, the view with more records is narrower and names it.
    every.sort(key=lambda one: (-_round_seconds(one.excess), -sizes[one.view], one.view, one.code))
    together = _overlaps(views, costs)
    kept: list[Merged] = []
    for one in every:
        _add(one, kept, together)
    # One record that costs as much as many similar ones together names them all.
    folded = sorted(
        _fold_similar(kept, costs, {view.view: view.others for view in views}),
        key=lambda one: (-_round_seconds(one.excess), len(one.alike)),
    )
    told = _without_parts([one for one in folded if one.excess >= least], costs)
    return [_describe_place(group, costs, views) for group in told]


def _round_seconds(seconds: float) -> float:
    """Sums of the same calls may differ in their last digits; that must not decide an order."""
    return float(f"{seconds:.9g}")


def _without_parts(groups: list[Merged], costs: Costs) -> list[Merged]:
    """Drop groups whose calls are those of a costlier one, after records were folded."""
    weights = costs.table["weight"]
    kept: list[tuple[Merged, pl.Series]] = []
    for group in groups:
        codes = costs.table[f"{group.lead.view}_code"]
        inside = codes.is_in(pl.Series(group.records, dtype=codes.dtype).implode())
        own = float(weights.filter(inside).sum())
        parts = (float(weights.filter(inside & other).sum()) for _, other in kept)
        part = max(parts, default=0.0)
        bigger = max((one.excess for one, _ in kept), default=0.0)
        if part < INSIDE * own or (not group.alike and group.excess >= WORTH_TELLING * bigger):
            kept.append((group, inside))
    return [group for group, _ in kept]


Overlaps = Mapping[tuple[str, int, str, int], float]


def _overlaps(views: list[ViewCandidates], costs: Costs) -> Overlaps:
    """Unexplained nanoseconds that two candidates of different views have in common."""
    overlaps: dict[tuple[str, int, str, int], float] = {}
    for one, other in combinations([view for view in views if view.found], 2):
        keys = [f"{one.view}_code", f"{other.view}_code"]
        wanted = [
            pl.col(key).is_in([candidate.code for candidate in view.found])
            for key, view in zip(keys, (one, other), strict=True)
        ]
        sums = costs.table.lazy().filter(*wanted).group_by(keys).agg(WEIGHT).collect()
        for first, second, weight in sums.iter_rows():
            overlaps[one.view, first, other.view, second] = weight
            overlaps[other.view, second, one.view, first] = weight
    return overlaps


def _add(one: Candidate, kept: list[Merged], together: Overlaps) -> None:
    for place, group in enumerate(kept):
        lead = group.lead
        common = together.get((one.view, one.code, lead.view, lead.code), 0.0)
        if common >= MOSTLY * max(one.weight, lead.weight):
            if one.view not in group.views:
                kept[place] = replace(group, views=(*group.views, one.view))
            return
        if common >= INSIDE * one.weight and one.excess < WORTH_TELLING * group.excess:
            return
    kept.append(Merged(one, (one.view,), one.excess, one.numbers["seconds"]))


def _fold_similar(
    kept: list[Merged], costs: Costs, others: Mapping[str, tuple[Candidate, ...]]
) -> Iterator[Merged]:
    """Join records of one view that cost about the same; together they may cost more."""
    left = list(kept)
    while left:
        first, *rest = left
        lead = first.lead
        alike = [o for o in rest if o.lead.view == lead.view and _is_alike(o.lead, lead)]
        left = [one for one in rest if one not in alike]
        if not alike:
            yield first
            continue
        less = (one for one in others[lead.view] if _is_alike(one, lead))
        leads = (lead, *(one.lead for one in alike), *less)
        seconds, unexplained = costs.of(lead.view, [one.code for one in leads])
        excess = max(first.excess, unexplained - (first.seconds - first.excess))
        shared = tuple(dict.fromkeys(view for one in (first, *alike) for view in one.views))
        yield replace(
            first, excess=min(excess, seconds), seconds=seconds, alike=leads, views=shared
        )


def _is_alike(one: Candidate, other: Candidate) -> bool:
    """Whether two records of a view cost about the same, and do about the same."""
    if FACTOR * one.excess < other.excess:
        return False
    pairs = ((one.numbers[name], other.numbers[name]) for name in ("count", "bytes"))
    return all(max(pair) <= SIMILAR * min(pair) for pair in pairs)


def _describe_place(group: Merged, costs: Costs, views: list[ViewCandidates]) -> Merged:
    """Add in which application, directory, file and process it happens, where one dominates.

    A place where the whole job's I/O happens is not worth a word.
    """
    lead = group.lead
    rows = costs.table.filter(pl.col(f"{lead.view}_code").is_in(list(group.records)))
    whole = float(rows["weight"].sum())
    codes = {lead.view: lead.code}
    for other in views:
        view = other.view
        if view in (lead.view, "time", "phase") or other.records < 2:
            continue
        named = costs.drop_unplaced(rows, view).group_by(f"{view}_code")
        most = named.agg(pl.col("weight").sum())
        best = most.sort("weight", f"{view}_code", descending=[True, False]).head(1)
        best = best.filter(~pl.col(f"{view}_code").is_in(list(other.whole)))
        if best.height and best["weight"].item() >= MOSTLY * whole > 0:
            codes[view] = best[f"{view}_code"].item()
    return replace(group, codes=codes)
