"""What lies behind one finding: the calls it is about, from several perspectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ioprism.analyses.bottlenecks.parts import MOST, longest_calls, parts
from ioprism.analyses.bottlenecks.rows import io_rows, main_view
from ioprism.analyses.bottlenecks.settings import Settings
from ioprism.analyses.evidence import evidence_of_trace
from ioprism.engine.base import Engine
from ioprism.errors import AnalysisError, NotEnoughDetailError
from ioprism.model.finding import Finding
from ioprism.model.schema import LAYERS, OPERATIONS
from ioprism.model.trace import Trace
from ioprism.rules.registry import RULES, finding_dict, judge
from ioprism.rules.rule import Rule
from ioprism.settings import Thresholds
from ioprism.views.call_class import SLOTS, SMALL_BINS
from ioprism.views.longest_calls import CallsWhere, LongestCalls

# Rules about calls that move no data; others are about reads, writes, or all calls.
CALLS_OF = {
    "metadata-heavy": ("open", "close", "seek", "stat", "metadata"),
    "many-seeks": ("seek",),
    "sync-storm": ("sync",),
}


@dataclass(frozen=True, slots=True, eq=False)
class FindingInspection:
    """A finding, taken apart."""

    finding: Finding
    parts: Mapping[str, pl.DataFrame]  # perspective -> name, time, operations, bytes
    calls: pl.DataFrame  # the longest calls, with names

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON holds."""
        return {
            "finding": finding_dict(self.finding),
            "parts": {name: table.to_dicts() for name, table in self.parts.items()},
            "calls": self.calls.to_dicts(),
        }


def rule_called(code: str) -> Rule | None:
    """Return the rule with this code, or with this name in another tool."""
    return next((rule for rule in RULES if code == rule.code or code in rule.aliases), None)


def inspected_finding(rule: Rule, trace: Trace, engine: Engine) -> FindingInspection:
    """Judge a trace by one rule, and take apart what it finds.

    Raises:
        NotEnoughDetailError: the trace cannot tell.
        AnalysisError: there is nothing to find.
    """
    thresholds = Thresholds()
    found = judge(evidence_of_trace(trace, engine, thresholds), [rule])
    for unchecked in found.not_checked:
        raise NotEnoughDetailError(
            needed=unchecked.needs,
            has=", ".join(sorted(trace.detail)) or "nothing",
            hint="`ioprism formats` tells what can be recorded.",
        )
    if not found.findings:
        raise AnalysisError(
            f"there is no finding {rule.code!r} in this trace.\n"
            "Hint: `ioprism insights` lists the findings."
        )
    (finding,) = found.findings
    concern = _Concern.of(rule, finding, trace, thresholds)
    chosen = Settings(views=("process", "file"), layer=_layer(finding))
    rows = io_rows(main_view(trace, chosen, engine), trace, chosen).rows.main
    behind = rows.filter(concern.of_rows())
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
class _Concern:
    """Which calls a finding is about; None: any."""

    operations: tuple[str, ...]
    below: float | None  # bytes
    files: Sequence[int] | None
    processes: Sequence[int] | None

    @classmethod
    def of(cls, rule: Rule, finding: Finding, trace: Trace, thresholds: Thresholds) -> _Concern:
        """Read it from the rule, and from the files and ranks that the finding names."""
        direction = (rule.direction,) if rule.direction else OPERATIONS
        return cls(
            CALLS_OF.get(rule.code, direction),
            thresholds.small_bytes if "small_bytes" in rule.thresholds else None,
            _rows_named(finding, trace.files, {"file": "path", "folder": "directory"}),
            _rows_named(finding, trace.processes, {"rank": "rank"}),
        )

    def of_rows(self) -> pl.Expr:
        """The condition on rows of the main view."""
        codes = [OPERATIONS.index(name) for name in self.operations]
        kind = (pl.col("class") // SLOTS % len(OPERATIONS)).is_in(codes)
        small = pl.lit(self.below is None) | (pl.col("class") % SLOTS // 2 < SMALL_BINS)
        return kind & small & self._places()

    def of_calls(self, rows: pl.DataFrame) -> pl.Expr:
        """The condition on events, in the interfaces of these rows."""
        layers = (rows["class"] // (SLOTS * len(OPERATIONS))).unique().to_list()
        layer = pl.col("layer").cast(pl.String).is_in([LAYERS[code] for code in layers])
        kind = pl.col("operation").cast(pl.String).is_in(self.operations)
        small = pl.lit(self.below is None) | (pl.col("bytes") < (self.below or 0))
        return layer & kind & small & self._places()

    def _places(self) -> pl.Expr:
        files = pl.lit(self.files is None) | pl.col("file").is_in(list(self.files or ()))
        ranks = pl.lit(self.processes is None) | pl.col("process").is_in(list(self.processes or ()))
        return files & ranks


def _rows_named(
    finding: Finding, table: pl.DataFrame, columns: Mapping[str, str]
) -> list[int] | None:
    """Return the rows of a table that the finding's details name; None if they name none."""
    found: list[int] = []
    for key, column in columns.items():
        named = [detail[key] for detail in finding.details if detail.get(key) is not None]
        rows = table.filter(pl.col(column).is_in(named)) if named else table.clear()
        found += rows.to_series(0).to_list()
    return found or None
