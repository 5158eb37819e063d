"""What a per-call trace adds to counters, in as few passes as possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from ioprism.diagnosis.evidence import Callers
from ioprism.engine.base import Engine, View
from ioprism.formats.darshan.meaning import DATA_MODULES
from ioprism.model.trace import Trace
from ioprism.model.usage import RankLoad, Usage
from ioprism.phase_detection.find import LayerPhases, phases_beside
from ioprism.settings import Thresholds
from ioprism.views.access import AccessPattern, TouchedRanges
from ioprism.views.counters import event_usages, rank_loads, target_bytes
from ioprism.views.intervals import Extent
from ioprism.views.totals import TargetLoad


@dataclass(frozen=True, slots=True, eq=False)
class CallEvidence:
    """Tables over all calls."""

    access: pl.DataFrame
    touched: pl.DataFrame
    loads: Mapping[str, RankLoad]
    phases: Mapping[str, LayerPhases]
    targets: Mapping[str, Mapping[int, int]] | None
    hosts: Mapping[int, str]
    callers: Callers

    @classmethod
    def of(cls, trace: Trace, engine: Engine, thresholds: Thresholds) -> CallEvidence:
        """Look at all calls of a trace."""
        views = call_views(trace, thresholds)
        phases, (seen, targets, *rest, _) = phases_beside(trace, engine, *views)
        whole = seen.filter(pl.col("operation") != "other")  # waitpid and similar calls are not I/O
        touched = rest[0] if rest else TouchedRanges().partial(_nothing()).collect()
        return cls(
            whole,
            touched,
            rank_loads(_by_rank(whole)),
            phases.layers,
            target_bytes(targets) if striped_files(trace).height else None,
            _hosts(trace),
            _callers(whole),
        )

    def usages(self, without: frozenset[int]) -> Iterator[Usage]:
        """The columns of each layer."""
        return event_usages(self.access, self.touched, without=sorted(without))

    def concurrency(self) -> float | None:
        """Return how many processes are at work at a time; those of a workflow follow each other.

        A process is at work from its first call to its last; times when none is do not count.
        """
        spans = self.access.group_by("rank").agg(pl.col("begin").min(), pl.col("finish").max())
        reached = pl.col("finish").cum_max()
        since = pl.max_horizontal(pl.col("begin"), reached.shift(1))
        busy = spans.sort("begin").select((reached - since).clip(lower_bound=0.0).sum()).item()
        whole = float((spans["finish"] - spans["begin"]).sum())
        return whole / busy if busy else None

    def peers(self, processes: pl.DataFrame, without: frozenset[int]) -> frozenset[int] | None:
        """The ranks of the program that moves most; None where all run the same one.

        What launchers, shells and small tools move says nothing of the balance between ranks.
        """
        named = processes.drop_nulls("application").unique("rank", keep="first")
        if named["application"].n_unique() < 2:
            return None
        data = pl.col("operation").is_in(["read", "write"]) & ~pl.col("file").is_in(sorted(without))
        moved = self.access.filter(data).group_by("rank").agg(pl.col("bytes").sum())
        sums = named.join(moved, on="rank").group_by("application").agg(pl.col("bytes").sum())
        most = sums.sort("bytes", "application", descending=[True, False]).head(1)
        return frozenset(named.join(most, on="application", how="semi")["rank"])


def call_views(trace: Trace, thresholds: Thresholds) -> tuple[View, ...]:
    """Return what rules, and bursts among phases, ask of calls with nothing known before."""
    access = AccessPattern(
        thresholds.small_bytes, max(1, int(thresholds.alignment)), stripe_sizes(trace)
    )
    counted = {DATA_MODULES[name].layer for name in trace.counters if name in DATA_MODULES}
    # Where POSIX counters exist, the byte ranges of calls are not needed.
    ranges = () if "posix" in counted else (TouchedRanges(),)
    return access, TargetLoad(striped_files(trace)), *ranges, Extent()


def striped_files(trace: Trace) -> pl.DataFrame:
    """Return file, stripe_size and targets of each file whose targets are known."""
    return trace.files.drop_nulls(["stripe_size", "targets"]).select(
        "file", "stripe_size", "targets"
    )


def stripe_sizes(trace: Trace) -> dict[int, int]:
    """Return the stripe size of each file whose layout is known."""
    known = trace.files.filter(pl.col("stripe_size") > 0)
    return dict(known.select("file", "stripe_size").iter_rows())


def _nothing() -> pl.LazyFrame:
    from ioprism.model.schema import EVENTS

    return EVENTS.empty().lazy()


def _by_rank(access: pl.DataFrame) -> pl.DataFrame:
    return access.group_by("layer", "rank", "operation").agg(
        pl.col("operations", "bytes", "seconds").sum()
    )


def _hosts(trace: Trace) -> dict[int, str]:
    known = trace.processes.drop_nulls("host").unique("rank", keep="first")
    return dict(known.select("rank", "host").iter_rows())


def _callers(access: pl.DataFrame) -> Callers:
    """The ranks that read, and those that write, each file in POSIX."""
    data = access.filter(
        (pl.col("layer") == "posix") & pl.col("operation").is_in(["read", "write"])
    )
    grouped = data.drop_nulls("file").group_by("file", "operation").agg(pl.col("rank").unique())
    return {(file, direction): frozenset(ranks) for file, direction, ranks in grouped.iter_rows()}
