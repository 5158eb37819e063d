"""One list from all views: records that cover the same calls are one, parts go with the whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

import polars as pl

from ioprism.bottleneck_search.excess import FACTOR, Costs, above_peers

MOST = 40  # candidates of each view
SAME = 0.8  # of the unexplained seconds of both: they cover the same calls
INSIDE = 0.7  # of its unexplained seconds: a record is part of another
WORTH_TELLING = 0.5  # of the seconds of the whole: a larger part is listed separately
DOMINANT = 0.8  # of a record's unexplained seconds: where they happen
ALIKE = 0.67  # of the costliest: records of one view are folded
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
    alike: tuple[int, ...] = ()  # codes of the lead's view that cost about as much
    codes: Mapping[str, int] = field(default_factory=dict)  # by view: where it happens

    @property
    def records(self) -> tuple[int, ...]:
        """The codes of all its records in the lead's view."""
        return self.alike or (self.lead.code,)


@dataclass(frozen=True, slots=True)
class ViewCandidates:
    """The candidates of one view, and how many records it has."""

    view: str
    records: int
    found: tuple[Candidate, ...]


def candidates(view: str, costs: Costs, *, least: float) -> ViewCandidates:
    """Return the records of a view that cost at least `least` seconds above their peers."""
    records = above_peers(costs.of_records(view))
    code = f"{view}_code"
    chosen = records.filter((pl.col("excess") >= least) & (pl.col("factor") >= FACTOR))
    worst = chosen.sort("excess", code, descending=[True, False]).head(MOST)
    weights = dict(costs.table.group_by(code).agg(WEIGHT).iter_rows())
    names = ("seconds", "factor", "peers_seconds", "same_work", "peers_bytes", "bytes")
    costly = tuple(
        Candidate(view, row[code], row["excess"], weights[row[code]], {n: row[n] for n in names})
        for row in worst.iter_rows(named=True)
    )
    return ViewCandidates(view, records.height, costly)


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
    sizes = {view.view: view.records for view in views}
    # One record that costs as much as many similar ones together names them all.
    folded = sorted(
        _fold_similar(kept, costs), key=lambda one: (-_round_seconds(one.excess), len(one.alike))
    )
    told = _without_parts([one for one in folded if one.excess >= least], costs)
    return [_describe_place(group, costs, sizes) for group in told]


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


def _fold_similar(kept: list[Merged], costs: Costs) -> Iterator[Merged]:
    """Join records of one view that cost about the same; together they may cost more."""
    left = list(kept)
    while left:
        first, *rest = left
        alike = [o for o in rest if o.lead.view == first.lead.view and _as_costly(o, first)]
        left = [one for one in rest if one not in alike]
        if not alike:
            yield first
            continue
        codes = (first.lead.code, *(one.lead.code for one in alike))
        seconds, unexplained = costs.of(first.lead.view, codes)
        excess = max(first.excess, unexplained - (first.seconds - first.excess))
        shared = tuple(dict.fromkeys(view for one in (first, *alike) for view in one.views))
        yield replace(
            first, excess=min(excess, seconds), seconds=seconds, alike=codes, views=shared
        )


def _as_costly(one: Merged, other: Merged) -> bool:
    return one.excess >= ALIKE * other.excess


def _describe_place(group: Merged, costs: Costs, sizes: Mapping[str, int]) -> Merged:
    """Add in which application, directory, file and process it happens, where one dominates."""
    lead = group.lead
    rows = costs.table.filter(pl.col(f"{lead.view}_code").is_in(list(group.records)))
    whole = float(rows["weight"].sum())
    codes = {lead.view: lead.code}
    for view, records in sizes.items():
        if view in (lead.view, "time", "phase") or records < 2:
            continue
        named = costs.drop_unplaced(rows, view).group_by(f"{view}_code")
        most = named.agg(pl.col("weight").sum())
        best = most.sort("weight", f"{view}_code", descending=[True, False]).head(1)
        if best.height and best["weight"].item() >= DOMINANT * whole > 0:
            codes[view] = best[f"{view}_code"].item()
    return replace(group, codes=codes)
