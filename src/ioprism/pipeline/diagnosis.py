"""From a trace to its diagnosis in words: layout, causes, symptoms, advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from ioprism.analyses.diagnosis.diagnose import Finder
from ioprism.analyses.diagnosis.diagnose import diagnose as find_causes
from ioprism.analyses.diagnosis.result import Diagnosis
from ioprism.analyses.diagnosis.sampling import FIRST_LOOK
from ioprism.analyses.diagnosis.site_knowledge import judged_by_servers, no_faster_than
from ioprism.analyses.evidence import evidence_of_counters, evidence_of_trace
from ioprism.analyses.slowest_rank import SlowestRank, slowest_rank
from ioprism.engine.ahead import LookingAhead
from ioprism.engine.base import Engine, View
from ioprism.engine.local import LocalEngine
from ioprism.engine.memory import in_memory
from ioprism.model.ceiling import Ceiling
from ioprism.model.trace import Trace
from ioprism.model.usage import Striping
from ioprism.pipeline.counted_diagnosis import with_untraced
from ioprism.plugins import declared, load
from ioprism.records import dataclass
from ioprism.rules.causes.circumstances import Surroundings
from ioprism.rules.causes.wording import worded
from ioprism.rules.registry import Insights, judge
from ioprism.settings import Thresholds
from ioprism.views.counters.usage import file_facts

if TYPE_CHECKING:  # what only some sites know is loaded where it is said
    from ioprism.analyses.write_time.model import WriteTimeModel

GROUP = "ioprism.causes"


@dataclass(frozen=True, slots=True)
class DiagnosisOptions:
    """What a site knows beyond the trace."""

    layout: Mapping[str, Striping] = field(default_factory=dict)
    ceilings: Sequence[Ceiling] = ()
    model: WriteTimeModel | None = None
    servers: Path | None = None  # a store of the file system's counters
    symptoms: bool = True  # findings are looked for, to be folded below their causes


def diagnose(
    trace: Trace, *, options: DiagnosisOptions | None = None, engine: Engine | None = None
) -> Diagnosis:
    """Return what holds the job up, with titles and advice."""
    chosen = options or DiagnosisOptions()
    held = in_memory(with_layout(trace, chosen.layout))
    # Symptoms are looked for with what the search for causes has found out already.
    ahead = LookingAhead(engine or LocalEngine(), held, asked_first(held))
    return diagnosed(held, ahead, options=chosen)


def asked_first(trace: Trace) -> tuple[View, ...]:
    """What both rules and diagnosis ask of single calls, with nothing known before."""
    return FIRST_LOOK if trace.partitions else ()


def diagnosed(
    trace: Trace,
    engine: Engine,
    insights: Insights | None = None,
    *,
    options: DiagnosisOptions | None = None,
) -> Diagnosis:
    """Find the causes and word them; findings become their symptoms."""
    causes = find_causes(trace, engine, more=plugged_in())
    diagnosis = with_untraced(causes, _slowest(trace, insights)) if trace.counters else causes
    if options is not None:
        diagnosis = _sharpened(diagnosis, trace, engine, options)
    if not diagnosis.causes:
        return diagnosis
    if insights is None and (options is None or options.symptoms):
        insights = judge(evidence_of_trace(trace, engine, Thresholds()))
    findings = insights.findings if insights else ()
    return worded(diagnosis, surroundings(trace), [finding.code for finding in findings])


def _slowest(trace: Trace, insights: Insights | None) -> SlowestRank | None:
    """The slowest rank by the counters alone."""
    if insights is not None and not trace.partitions:
        return insights.slowest
    return slowest_rank(evidence_of_counters(trace))


def surroundings(trace: Trace) -> Surroundings:
    """Return what advice depends on besides the causes."""
    nodes = trace.processes["host"].drop_nulls().n_unique()
    return Surroundings(trace.job, file_facts(trace), frozenset(trace.counters), max(1, nodes))


def plugged_in() -> list[Finder]:
    """Load the causes that installed packages declare."""
    return [load(plugin) for plugin in declared(GROUP)]


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


def _sharpened(
    diagnosis: Diagnosis, trace: Trace, engine: Engine, options: DiagnosisOptions
) -> Diagnosis:
    """Use what the site knows: what its system can reach, and whether others were busy."""
    needed = max(
        _ceiling_seconds(trace, engine, options.ceilings), _model_seconds(trace, options.model)
    )
    diagnosis = no_faster_than(diagnosis, needed) if needed > 0 else diagnosis
    if options.servers is None:
        return diagnosis
    return judged_by_servers(diagnosis, _server_loads(diagnosis, trace, options.servers))


def _ceiling_seconds(trace: Trace, engine: Engine, ceilings: Sequence[Ceiling]) -> float:
    """Seconds that the job's bytes need at the best rates that were measured."""
    if not ceilings:
        return 0.0
    from ioprism.analyses.characterise import characterise

    moved = characterise(trace, engine).by_operation
    seconds = 0.0
    for direction in ("read", "write"):
        best = max((c.bandwidth.get(direction, 0.0) for c in ceilings), default=0.0)
        seconds += moved[direction].bytes / best if best > 0 else 0.0
    return seconds


def _model_seconds(trace: Trace, model: WriteTimeModel | None) -> float:
    """Seconds that the write phases need according to a write-time model."""
    if model is None or not trace.partitions:
        return 0.0
    from ioprism.analyses.write_time.measured_phases import compare_phases, phases_of
    from ioprism.views.time.write_intervals import write_intervals

    intervals = write_intervals(trace, gap=1.0).to_dicts()
    phases = phases_of(intervals, cores_per_node=model.system.cores_per_node, nodes=None)
    compared = compare_phases(phases, model=model, node_list=None, stripe_count=None)
    return sum(pair.estimate.seconds for pair in compared)


def _server_loads(diagnosis: Diagnosis, trace: Trace, store: Path) -> dict[int, float]:
    """How busy servers were while others are said to have interfered, next to the whole job."""
    start, runtime = trace.job.start_time, diagnosis.runtime
    if start is None or runtime <= 0:
        return {}
    from ioprism.analyses.background_load import background_load
    from ioprism.storage.counter_store import open_store

    source = open_store(store)
    whole = background_load(source, start=start, end=start + runtime)
    loads = {}
    for place, cause in enumerate(diagnosis.causes):
        if cause.code == "interference" and whole.bytes and whole.seconds:
            first, last = start + cause.culprit["from"], start + cause.culprit["to"]
            then = background_load(source, start=first, end=last)
            if then.seconds:
                loads[place] = (then.bytes / then.seconds) / (whole.bytes / whole.seconds)
    return loads
