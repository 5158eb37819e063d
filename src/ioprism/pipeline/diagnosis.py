"""From a trace to its diagnosis in words: layout, causes, symptoms, advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from ioprism.analyses.diagnosis.diagnose import diagnose as find_causes
from ioprism.analyses.diagnosis.result import Diagnosis
from ioprism.analyses.evidence import evidence_of_trace
from ioprism.engine.base import Engine
from ioprism.engine.local import LocalEngine
from ioprism.engine.memory import in_memory
from ioprism.model.ceiling import Ceiling
from ioprism.model.trace import Trace
from ioprism.model.usage import Striping
from ioprism.rules.causes.wording import worded
from ioprism.rules.registry import Insights, judge
from ioprism.settings import Thresholds


@dataclass(frozen=True, slots=True)
class DiagnosisOptions:
    """What a site knows beyond the trace."""

    layout: Mapping[str, Striping] = field(default_factory=dict)
    ceilings: Sequence[Ceiling] = ()
    servers: Path | None = None


def diagnose(
    trace: Trace, *, options: DiagnosisOptions | None = None, engine: Engine | None = None
) -> Diagnosis:
    """Return what holds the job up, with titles and advice."""
    chosen = options or DiagnosisOptions()
    held = in_memory(with_layout(trace, chosen.layout))
    return diagnosed(held, engine or LocalEngine())


def diagnosed(trace: Trace, engine: Engine, insights: Insights | None = None) -> Diagnosis:
    """Find the causes and word them; findings become their symptoms."""
    found = find_causes(trace, engine)
    if not found.causes:
        return found
    known = insights or judge(evidence_of_trace(trace, engine, Thresholds()))
    return worded(found, trace, [finding.code for finding in known.findings])


def with_layout(trace: Trace, layout: Mapping[str, Striping]) -> Trace:
    """Return the trace with the targets of its files; those that the trace knows stay."""
    if not layout:
        return trace
    known = pl.DataFrame(
        {
            "path": list(layout),
            "said_size": [striping.size for striping in layout.values()],
            "said_targets": [list(striping.targets) for striping in layout.values()],
        },
        schema={"path": pl.String, "said_size": pl.Int64, "said_targets": pl.List(pl.Int64)},
    )

    def files() -> pl.DataFrame:
        table = trace.files.join(known, on="path", how="left", maintain_order="left")
        return table.with_columns(
            stripe_size=pl.coalesce("stripe_size", "said_size"),
            stripe_count=pl.coalesce("stripe_count", pl.col("said_targets").list.len()).cast(
                pl.Int64
            ),
            targets=pl.coalesce("targets", "said_targets"),
        ).drop("said_size", "said_targets")

    return replace(trace, load_files=files, load_processes=lambda: trace.processes)
