"""What a program says it does: epochs, fetching, computing, checkpoints, from its own events."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ioprism.engine.base import Engine
from ioprism.model.arrays import Cover
from ioprism.model.trace import Trace
from ioprism.model.verdict import EpochShare, Stage
from ioprism.views.calls.totals import ApplicationEvents

# Words that training frameworks and tracers use, the first that fits counts. A loop's own events
# are `.iter`, waiting for the next item, and `.yield`, what is done with it.
KINDS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(words, re.IGNORECASE)
    for name, words in {
        "checkpoint": r"checkpoint|save_state|load_state|(^|\.)(capture|restart)$",
        "compute": r"compute|forward|backward|train_?step|training_step|optimizer",
        "sample": r"__getitem__|read_index|(get|read|load)_sample|(^|\.)item$|preprocess",
        "fetch": r"(?<!epoch)\.iter$|fetch|__next__|(get|next|load)_batch",
        "epoch": r"epoch|(^|[._])train$",
        "application": r"(^|\.)(run|main|application)$",
    }.items()
}
SHOWN = ("application", "epoch", "compute", "fetch", "sample", "checkpoint")


@dataclass(frozen=True, slots=True, eq=False)
class StageEvents:
    """Application events that have a meaning: start, end, rank, process, function, kind."""

    table: pl.DataFrame

    def of(self, kind: str) -> pl.DataFrame:
        """Those of one kind."""
        return self.table.filter(kind=kind)

    @property
    def computing(self) -> dict[Any, Cover]:
        """When each rank computes."""
        return {key[0]: cover_of(own) for key, own in self.of("compute").group_by("rank")}

    @property
    def trains(self) -> bool:
        """Whether the program tells computing from fetching samples."""
        kinds = set(self.table["kind"].unique())
        return "compute" in kinds and bool(kinds & {"fetch", "sample"})


def stage_events(trace: Trace, engine: Engine) -> StageEvents:
    """Read the events of the application that have a meaning."""
    (table,) = engine.run(trace, ApplicationEvents())
    kinds = {name: kind_of(name) for name in table["function"].drop_nulls().unique().to_list()}
    known = pl.col("function").replace_strict(kinds, default=None, return_dtype=pl.String)
    return StageEvents(table.with_columns(kind=known).drop_nulls("kind"))


def kind_of(function: str) -> str | None:
    """Return the kind of stage that a function's name tells of."""
    return next((kind for kind, words in KINDS.items() if words.search(function)), None)


def cover_of(events: pl.DataFrame) -> Cover:
    """The time that events take up."""
    return Cover(events["start"].to_numpy(), events["end"].to_numpy())


def list_stages(found: StageEvents) -> tuple[Stage, ...]:
    """Return the stages in order of nesting; none where the application tells nothing."""
    computing = found.computing
    whole = cover_of(found.of("application")) if found.of("application").height else None
    length = whole.seconds if whole else cover_of(found.table).seconds
    epochs = list(_epochs(found))
    result = []
    for kind in SHOWN:
        own = found.of(kind)
        if own.is_empty():
            continue
        all_of_it, outside = cover_of(own), _outside(own, computing)
        shares = tuple(_in_epoch(all_of_it, outside, *epoch) for epoch in epochs)
        functions = tuple(sorted(own["function"].unique()))
        seconds = all_of_it.seconds
        share = seconds / length if length > 0 else 0.0
        result.append(Stage(kind, functions, seconds, outside.seconds, share, shares))
    return tuple(result)


def _epochs(found: StageEvents) -> Iterator[tuple[float, float]]:
    """When each epoch begins and ends: the n-th of every process belong together."""
    own = found.of("epoch")
    if own.is_empty():
        return
    # Where epochs and training are both told, the most frequent is the epoch.
    counts = own.group_by("function").len().sort("len", "function", descending=[True, False])
    chosen = own.filter(function=counts["function"][0]).sort("rank", "start")
    number = pl.int_range(pl.len()).over("rank").alias("number")
    spans = (
        chosen.with_columns(number)
        .group_by("number")
        .agg(pl.col("start").min(), pl.col("end").max())
    )
    yield from spans.sort("number").select("start", "end").iter_rows()


def _outside(own: pl.DataFrame, computing: Mapping[object, Cover]) -> Cover:
    """The parts of events in which their process does not compute itself."""
    starts, ends = [np.empty(0)], [np.empty(0)]
    for key, events in own.group_by("rank"):
        start, end = events["start"].to_numpy(), events["end"].to_numpy()
        hidden = computing.get(key[0])
        begin, finish = (start, end) if hidden is None else hidden.gaps_in(start, end)
        starts.append(begin)
        ends.append(finish)
    return Cover(np.concatenate(starts), np.concatenate(ends))


def _in_epoch(all_of_it: Cover, outside: Cover, start: float, end: float) -> EpochShare:
    edges = np.array([start]), np.array([end])
    seconds, unhidden = (float(cover.within(*edges)[0]) for cover in (all_of_it, outside))
    return EpochShare(seconds, unhidden, seconds / (end - start) if end > start else 0.0)
