"""What lies behind one finding or bottleneck of a trace, by its code or id."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ioprism.analyses.bottlenecks.inspection import Inspection
from ioprism.analyses.evidence import evidence_of_trace
from ioprism.engine.base import Engine
from ioprism.model.trace import Trace
from ioprism.pipeline.bottlenecks import Source, prepared
from ioprism.pipeline.finding_inspection import FindingInspection, inspected_finding, rule_called
from ioprism.rules.bottlenecks.load import rules as load_rules
from ioprism.settings import Thresholds


def inspected_by_name(
    trace: Trace,
    identifier: str,
    engine: Engine,
    *,
    thresholds: Thresholds | None = None,
    rules: Sequence[str | Path] = (),
    **chosen: Any,  # noqa: ANN401 - as `Settings` has them
) -> Inspection | FindingInspection:
    """Take a finding or a bottleneck apart.

    Raises:
        UsageError: there is no bottleneck of this id.
        AnalysisError: there is no such finding in the trace.
    """
    rule = rule_called(identifier)
    if rule is not None:
        evidence = evidence_of_trace(trace, engine, thresholds or Thresholds())
        return inspected_finding(rule, evidence, trace, engine)
    looked_at = prepared(trace, engine, **chosen)
    known = load_rules(*map(Path, rules))
    return looked_at.inspect(identifier, known, engine, Source(trace.paths))
