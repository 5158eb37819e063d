"""What findings ask of a per-call trace: what it adds to counters, and which calls they concern."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from operator import methodcaller

import polars as pl

from ioprism.diagnosis.evidence import Callers
from ioprism.diagnosis.limits import MAJORITY
from ioprism.diagnosis.rules.rule import Hit, Rule
from ioprism.diagnosis.sampling import MOST_CALLS, first_look
from ioprism.diagnosis.training import change_events
from ioprism.engine.base import Engine, View
from ioprism.formats.darshan.meaning import DATA_MODULES
from ioprism.model.schema import EVENTS, OPERATIONS
from ioprism.model.trace import LAYERS, Trace
from ioprism.model.usage import DIRECTIONS, NAMELESS, RankLoad, Usage
from ioprism.phase_detection.find import LayerPhases, phases_beside
from ioprism.settings import Thresholds
from ioprism.views.access import (
    BACKWARD,
    REPEATED,
    AccessPattern,
    TimeOfCalls,
    TouchedRanges,
    misalignment,
)
from ioprism.views.call_class import SLOTS
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
        by_rank = whole.group_by("layer", "rank", "operation").agg(
            pl.col("operations", "bytes", "seconds").sum()
        )
        touched = rest[0] if rest else TouchedRanges().partial(EVENTS.empty().lazy()).collect()
        hosts = trace.processes.drop_nulls("host").unique("rank", keep="first")
        return cls(
            whole,
            touched,
            rank_loads(by_rank),
            phases.layers,
            target_bytes(targets) if striped_files(trace).height else None,
            dict(hosts.select("rank", "host").iter_rows()),
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


def _callers(access: pl.DataFrame) -> Callers:
    """The ranks that read, and those that write, each file in POSIX."""
    data = access.filter(
        (pl.col("layer") == "posix") & pl.col("operation").is_in(["read", "write"])
    )
    grouped = data.drop_nulls("file").group_by("file", "operation").agg(pl.col("rank").unique())
    return {(file, direction): frozenset(ranks) for file, direction, ranks in grouped.iter_rows()}


@dataclass(frozen=True, slots=True)
class Concern:
    """Which calls a finding is about; None: any."""

    operations: tuple[str, ...]
    below: float | None  # bytes
    misaligned: pl.Expr | None
    collective: bool | None
    backward: bool
    repeated: bool
    files: Collection[int] | None  # rows of the file table
    processes: Collection[int] | None  # rows of the process table

    @classmethod
    def of(cls, rule: Rule, hit: Hit, trace: Trace, limits: Thresholds) -> Concern:
        """Read it from the rule, and from all files and ranks that it found."""
        calls = rule.call_kind
        of_ranks = trace.processes.filter(pl.col("rank").is_in(list(hit.ranks)))["process"]
        return cls(
            calls.operations,
            limits.small_bytes if calls.small else None,
            misalignment(max(1, int(limits.alignment)), stripe_sizes(trace))
            if calls.misaligned
            else None,
            calls.collective,
            calls.backward,
            calls.repeated,
            hit.files or None,
            of_ranks.to_list() if hit.ranks else None,
        )

    def of_trace(self, trace: Trace) -> Trace:
        """Leave out calls that rows of the main view would not tell from the others."""
        if self.below is None and self.misaligned is None and self.collective is None:
            return trace
        return change_events(trace, methodcaller("filter", ~self._kind() | self._single()))

    def of_rows(self) -> pl.Expr:
        """The condition on rows of the main view; of counters, only the mean size is known."""
        codes = [OPERATIONS.index(name) for name in self.operations]
        kind = (pl.col("class") // SLOTS % len(OPERATIONS)).is_in(codes)
        if self.below is not None:
            kind &= pl.col("time").is_not_null() | (pl.col("bytes") < self.below * pl.col("count"))
        return kind & self._places()

    def of_calls(self, rows: pl.DataFrame) -> pl.Expr:
        """The condition on events, in the interfaces of these rows."""
        layers = (rows["class"] // (SLOTS * len(OPERATIONS))).unique().to_list()
        layer = pl.col("layer").cast(pl.String).is_in([LAYERS[code] for code in layers])
        return layer & self._kind() & self._single() & self._places()

    def of_layer(self, layer: str) -> pl.Expr:
        """The condition on events of one interface."""
        inside = pl.col("layer") == layer
        holds = inside & self._kind() & self._single() & self._places()
        holds &= BACKWARD if self.backward else pl.lit(value=True)
        return holds & REPEATED if self.repeated else holds

    def _kind(self) -> pl.Expr:
        return pl.col("operation").is_in(list(self.operations))

    def _single(self) -> pl.Expr:
        """The conditions on calls; a call without the value is kept."""
        holds = pl.lit(value=True)
        if self.below is not None:
            holds &= (pl.col("bytes") < self.below).fill_null(value=False)
        if self.misaligned is not None:
            holds &= self.misaligned.fill_null(value=True)
        if self.collective is not None:
            holds &= pl.col("collective").ne_missing(not self.collective)
        if self.collective is False:  # calls that do not wait are counted apart
            holds &= pl.col("nonblocking").ne_missing(other=True)
        return holds

    def _places(self) -> pl.Expr:
        holds = pl.lit(value=True)
        if self.files is not None:
            named = pl.col("file").is_in([file for file in self.files if file != NAMELESS])
            nameless = pl.col("file").is_null() & pl.lit(NAMELESS in self.files)
            holds &= named.fill_null(value=False) | nameless
        if self.processes is not None:
            holds &= pl.col("process").is_in(list(self.processes))
        return holds


def measured_seconds(
    hits: Mapping[str, tuple[Rule, Hit]], trace: Trace, engine: Engine, limits: Thresholds
) -> dict[str, float]:
    """Add up the calls that findings are about, for the rank most concerned, by code.

    Codes are missing where the trace does not hold the calls: Darshan's extended tracing has
    no metadata calls, and nothing of some interfaces.
    """
    chosen = {
        code: Concern.of(rule, hit, trace, limits).of_layer(hit.interface or rule.interface)
        for code, (rule, hit) in hits.items()
        if hit.of_calls and _has_calls(rule, hit, trace)
    }
    if not chosen:
        return {}
    kinds = [hits[code][0].call_kind for code in chosen]
    ordered = any(kind.backward or kind.repeated for kind in kinds)
    view = TimeOfCalls(tuple(chosen.values()), ordered)
    *_, calls = engine.run(trace, *first_look())
    if calls.height <= MOST_CALLS:  # these are all
        sums = view.partial(calls.lazy()).collect()
    else:
        (sums,) = engine.run(trace, view)
    seconds_by_code = {}
    for number, (code, kind) in enumerate(zip(chosen, kinds, strict=True)):
        seconds, hit = sums[str(number)].max(), hits[code][1]
        repeated = float(sums[f"{number} bytes"].sum())
        # Where the same bytes move again in other pieces, calls do not show which.
        if kind.repeated and repeated < MAJORITY * hit.evidence["redundant"]:
            continue
        if seconds:
            seconds_by_code[code] = float(seconds) * hit.part  # type: ignore[arg-type]
    return seconds_by_code


def _has_calls(rule: Rule, hit: Hit, trace: Trace) -> bool:
    layer = hit.interface or rule.interface
    if not trace.partitions or layer not in LAYERS:
        return False
    operations = rule.call_kind.operations
    return not trace.counters or set(operations) <= set(DIRECTIONS)
