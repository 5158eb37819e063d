"""What lies behind one finding: the calls it is about, from several perspectives."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from ioprism.analyses.bottlenecks.counted_once import io_rows, main_view
from ioprism.analyses.bottlenecks.parts import MOST, longest_calls, parts
from ioprism.analyses.bottlenecks.settings import Settings
from ioprism.analyses.evidence import Evidence
from ioprism.engine.base import Engine
from ioprism.errors import AnalysisError, NotEnoughDetailError
from ioprism.model.finding import Finding
from ioprism.model.layers import LAYERS
from ioprism.model.result import Result, whole_numbers
from ioprism.model.schema import OPERATIONS
from ioprism.model.trace import Partition, Trace, Warn
from ioprism.model.usage import NAMELESS
from ioprism.rules.concerns import concerned_calls
from ioprism.rules.registry import RULES, finding_of
from ioprism.rules.rule import Hit, Rule, Unknown
from ioprism.settings import Thresholds
from ioprism.views.calls.call_class import SLOTS
from ioprism.views.calls.longest_calls import CallsWhere, LongestCalls


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FindingInspection(Result):
    """A finding, taken apart."""

    finding: Finding
    parts: Mapping[str, pl.DataFrame]  # perspective -> name, time, operations, bytes
    calls: pl.DataFrame  # the longest calls, with names

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON holds."""
        plain: dict[str, Any] = whole_numbers(
            {
                "finding": self.finding.to_dict(),
                "parts": {name: table.to_dicts() for name, table in self.parts.items()},
                "calls": self.calls.to_dicts(),
            }
        )
        return plain

    def to_frame(self) -> pl.DataFrame:
        """Return the longest calls."""
        return self.calls

    def summary(self) -> str:
        """Return the answer in one line."""
        return self.finding.title


def rule_called(code: str) -> Rule | None:
    """Return the rule with this code, or with this name in another tool."""
    return next((rule for rule in RULES if code == rule.code or code in rule.aliases), None)


def inspected_finding(
    rule: Rule, evidence: Evidence, trace: Trace, engine: Engine
) -> FindingInspection:
    """Judge a trace by one rule, and take apart what it finds.

    Raises:
        NotEnoughDetailError: the trace cannot tell.
        AnalysisError: there is nothing to find.
    """
    answer = rule.check(evidence)
    if isinstance(answer, Unknown):
        raise NotEnoughDetailError(
            needed=answer.needs,
            has=", ".join(sorted(trace.detail)) or "nothing",
            hint="`ioprism formats` tells what can be recorded.",
        )
    if answer is None:
        raise AnalysisError(
            f"there is no finding {rule.code!r} in this trace.\n"
            "Hint: `ioprism insights` lists the findings; give the same --thresholds and --servers."
        )
    finding = finding_of(rule, answer, evidence)
    concern = _Concern.of(rule, answer, trace, evidence.thresholds)
    chosen = Settings(views=("process", "file"), layer=_layer(finding))
    main = main_view(concern.of_trace(trace), chosen, engine)
    behind = io_rows(main, trace, chosen).rows.main.filter(concern.of_rows())
    calls = CallsWhere(concern.of_calls(behind))
    return FindingInspection(
        finding,
        parts(behind, trace, chosen),
        longest_calls(LongestCalls(calls, most=MOST), trace, engine),
    )


def _layer(finding: Finding) -> str:
    """The interface to look at; what is told of ranks is told of all that touch storage."""
    named = finding.interface
    return "deepest" if named in (None, "application", "trace") else named


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
class _Concern:
    """Which calls a finding is about; None: any."""

    operations: tuple[str, ...]
    below: float | None  # bytes
    unaligned_to: int | None  # bytes
    collective: bool | None
    files: Collection[int] | None  # rows of the file table
    processes: Collection[int] | None  # rows of the process table

    @classmethod
    def of(cls, rule: Rule, hit: Hit, trace: Trace, limits: Thresholds) -> _Concern:
        """Read it from the rule, and from all files and ranks that it found."""
        calls = concerned_calls(rule.code, rule.direction)
        of_ranks = trace.processes.filter(pl.col("rank").is_in(list(hit.ranks)))["process"]
        return cls(
            calls.operations,
            limits.small_bytes if calls.small else None,
            int(limits.alignment) or None if calls.misaligned else None,
            calls.collective,
            hit.files or None,
            of_ranks.to_list() if hit.ranks else None,
        )

    def of_trace(self, trace: Trace) -> Trace:
        """Leave out calls that rows of the main view would not tell from the others."""
        if self.below is None and self.unaligned_to is None and self.collective is None:
            return trace
        condition = ~self._kind() | self._single()
        some = tuple(_Some(partition, condition) for partition in trace.partitions)
        return replace(trace, partitions=some, load_files=lambda: trace.files,
                       load_processes=lambda: trace.processes)  # fmt: skip

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

    def _kind(self) -> pl.Expr:
        return pl.col("operation").cast(pl.String).is_in(self.operations)

    def _single(self) -> pl.Expr:
        """What is asked of single calls; those of which the trace does not tell may be meant."""
        holds = pl.lit(value=True)
        if self.below is not None:
            holds &= (pl.col("bytes") < self.below).fill_null(value=False)
        if self.unaligned_to is not None:
            holds &= (pl.col("offset") % self.unaligned_to != 0).fill_null(value=True)
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
