"""What single calls tell of a job, in as few passes over them as possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from ioprism.analyses.phases import LayerPhases, phases
from ioprism.engine.base import Engine
from ioprism.model.trace import Trace
from ioprism.model.usage import RankLoad, Usage
from ioprism.settings import Thresholds
from ioprism.views.access import AccessPattern, TouchedRanges, stitched
from ioprism.views.module_usage import MODULES
from ioprism.views.targets import TargetLoad
from ioprism.views.usage import event_usages, rank_loads, target_bytes


@dataclass(frozen=True, slots=True, eq=False)
class CallEvidence:
    """Tables over all calls."""

    access: pl.DataFrame
    touched: pl.DataFrame
    loads: Mapping[str, RankLoad]
    phases: Mapping[str, LayerPhases]
    targets: Mapping[str, Mapping[int, int]] | None
    hosts: Mapping[int, str]
    callers: Mapping[int, frozenset[int]]

    @classmethod
    def of(cls, trace: Trace, engine: Engine, thresholds: Thresholds) -> CallEvidence:
        """Look at all calls of a trace."""
        access = AccessPattern(thresholds.small_bytes, max(1, int(thresholds.alignment)))
        striping = trace.files.drop_nulls(["stripe_size", "targets"])
        load = TargetLoad(striping.select("file", "stripe_size", "targets"))
        counted = {MODULES[name].layer for name in trace.counters if name in MODULES}
        # Where counters tell of every layer, the ranges that calls touch are not needed.
        ranges = [] if {"posix", "mpiio"} <= counted or "posix" in counted else [TouchedRanges()]
        pieces, targets, *rest = engine.run(trace, access, load, *ranges)
        touched = rest[0] if rest else TouchedRanges().partial(_nothing()).collect()
        whole = stitched(pieces)
        return cls(
            whole,
            touched,
            rank_loads(_by_rank(whole)),
            phases(trace, engine).layers,
            target_bytes(targets) if striping.height else None,
            _hosts(trace),
            _callers(whole),
        )

    def usages(self, without: frozenset[int]) -> Iterator[Usage]:
        """The columns of each layer."""
        return event_usages(self.access, self.touched, without=sorted(without))


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


def _callers(access: pl.DataFrame) -> dict[int, frozenset[int]]:
    """The ranks that read or write each file in POSIX."""
    data = access.filter(
        (pl.col("layer") == "posix") & pl.col("operation").is_in(["read", "write"])
    )
    grouped = data.drop_nulls("file").group_by("file").agg(pl.col("rank").unique())
    return {file: frozenset(ranks) for file, ranks in grouped.iter_rows()}
