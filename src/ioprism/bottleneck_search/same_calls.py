"""One list from all views: records that cover the same calls are one, parts go with the whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

import polars as pl

from ioprism.bottleneck_search.excess import FACTOR, Costs, above_peers
from ioprism.views.perspectives.records import PER_SECOND

MOST = 40  # candidates of each view; more of them can only be like one of these
SAME = 0.8  # of the unexplained seconds of both: they cover the same calls
INSIDE = 0.7  # of its unexplained seconds: a record is part of another
WORTH_TELLING = 0.5  # of the seconds of the whole: a larger part is listed separately
DOMINANT = 0.8  # of a record's unexplained seconds: where they happen
ALIKE = 0.67  # of the costliest: records of one view are folded
SAME_WORK_FACTOR = 2.0  # between calls and bytes of records that are folded: they do the same
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
    every.sort(
        key=lambda one: (-_round_seconds(one.excess), _breadth(one, views), one.view, one.code)
    )
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


def _breadth(one: Candidate, views: list[ViewCandidates]) -> int:
    """Fewer records: a broader view; where both cost the same, the narrower one names it."""
    return -next(view.records for view in views if view.view == one.view)


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
        if common >= SAME * max(one.weight, lead.weight):
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
    if one.excess < ALIKE * other.excess:
        return False
    pairs = ((one.numbers[name], other.numbers[name]) for name in ("count", "bytes"))
    return all(max(pair) <= SAME_WORK_FACTOR * min(pair) for pair in pairs)


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
        if best.height and best["weight"].item() >= DOMINANT * whole > 0:
            codes[view] = best[f"{view}_code"].item()
    return replace(group, codes=codes)
