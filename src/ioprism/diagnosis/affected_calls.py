"""Which calls of a trace a finding is about, as conditions on events and on main-view rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from ioprism.diagnosis.evidence_of_calls import stripe_sizes
from ioprism.diagnosis.limits import MAJORITY
from ioprism.diagnosis.rules.rule import Hit, Rule
from ioprism.diagnosis.sampling import MOST_CALLS, first_look
from ioprism.engine.base import Engine
from ioprism.model.schema import OPERATIONS
from ioprism.model.trace import LAYERS, Partition, Trace, Warn
from ioprism.model.usage import DIRECTIONS, NAMELESS
from ioprism.settings import Thresholds
from ioprism.views.access import BACKWARD, REPEATED, TimeOfCalls, misalignment
from ioprism.views.call_class import SLOTS


@dataclass(frozen=True, slots=True)
class _Some:
    """Those events of a partition for which something holds."""

    partition: Partition
    condition: pl.Expr

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        """Yield them in pieces of bounded size."""
        for batch in self.partition.batches(warn):
            yield batch.filter(self.condition)


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
        condition = ~self._kind() | self._single()
        some = tuple(_Some(partition, condition) for partition in trace.partitions)
        return trace.derive(partitions=some)

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
