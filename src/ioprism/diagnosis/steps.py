"""From a trace to one judgement: verdict, findings and one sentence, for every command and page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ioprism.diagnosis.checks import CHECKS, Check
from ioprism.diagnosis.checks.uneven_load import check_computation
from ioprism.diagnosis.evidence import Evidence, evidence_of_counters, evidence_of_trace
from ioprism.diagnosis.from_counters import observe_counters
from ioprism.diagnosis.limits import DOMINANT, MAJORITY, NEARLY_ALL, Limits
from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.rank_balance import SlowestRank, slowest_rank
from ioprism.diagnosis.replay import Proposal
from ioprism.diagnosis.rows import KINDS, METADATA, Flags
from ioprism.diagnosis.rules.registry import Insights, Measure, RuleAnswers, judge, rank_findings
from ioprism.diagnosis.rules.rule import Hit, Rule
from ioprism.diagnosis.site_knowledge import check_against_servers, limit_to_rate
from ioprism.diagnosis.verdict import Attribution, attribute, ledger, opportunities
from ioprism.diagnosis.wording import JobContext, word_verdict
from ioprism.model.usage import Striping
from ioprism.model.verdict import (
    SERIOUS,
    Cause,
    LedgerLine,
    NotChecked,
    Saving,
    StallTime,
    Verdict,
    core_hours,
)
from ioprism.plugins import declared, load
from ioprism.settings import Thresholds

if TYPE_CHECKING:  # a small log is judged without a table library
    from ioprism.engine.base import Engine, View
    from ioprism.model.machine import Ceiling, ServerLoads
    from ioprism.model.trace import Trace


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """A verdict, with the rows that it is about."""

    verdict: Verdict
    observed: Observed | None
    attribution: Attribution | None


def judge_trace(
    trace: Trace, engine: Engine, *, limits: Limits | None = None, more: Sequence[Check] = ()
) -> Judgement:
    """Judge a trace; `more` are checks of plug-ins."""
    chosen = limits or Limits()
    if not trace.partitions:
        return judge_counters(evidence_of_counters(trace), limits=chosen, more=more)
    from ioprism.diagnosis.from_calls import observe_calls, untraced_share
    from ioprism.diagnosis.training import find_training, list_stages, without_process_control

    trace = without_process_control(trace)
    run = find_training(trace, engine)
    observed = observe_calls(trace if run is None else run.exposed(trace), engine, chosen)
    if not len(observed.rows) or untraced_share(observed, trace.counters) > MAJORITY:
        return judge_counters(evidence_of_counters(trace), limits=chosen, more=more)
    if run is None:
        return judge_observed(observed, more=more)
    judged = judge_observed(replace(observed, training=run, basis="exposed"), more=more)
    return replace(judged, verdict=replace(judged.verdict, stages=list_stages(run.stages)))


def judge_counters(
    evidence: Evidence, *, limits: Limits | None = None, more: Sequence[Check] = ()
) -> Judgement:
    """Judge a log of counters."""
    observed = observe_counters(evidence, limits or Limits())
    if observed is None:
        nothing = StallTime(0.0, 0.0, None, "nothing")
        missing = not_checked_without_storage() if evidence.usages else ()
        verdict = Verdict("none", evidence.runtime or 0.0, nothing, not_checked=missing)
        return Judgement(verdict, None, None)
    return judge_observed(observed, more=more)


def judge_observed(observed: Observed, *, more: Sequence[Check] = ()) -> Judgement:
    """Put prepared rows to all checks."""
    # A sample stands for the whole run: as if the run were shorter by the same factor as its I/O.
    runtime, stall = observed.runtime * observed.share, float(observed.stall.sum())
    share = stall / runtime if runtime > 0 else 0.0
    hours = core_hours(stall, observed.ranks)
    little = share < observed.limits.min_share and (hours or 0.0) < observed.limits.min_core_hours
    # A plug-in knows the site or the program: its checks come before ours.
    checks = (check_computation,) if little else (*more, *CHECKS)
    proposals = [one for check in checks for one in check(observed)]
    attribution = attribute(observed, proposals)
    named = {cause.code for cause in attribution.causes}
    late = tuple(_late_ranks(one) for one in proposals if one.code == "compute-imbalance")
    whole = Verdict(
        status="cause" if attribution.causes else "possible" if attribution.possible else "none",
        runtime=runtime,
        io_stall=StallTime(stall, share, hours, observed.basis),
        causes=(*attribution.causes, *late),
        possible=attribution.possible,
        ledger=ledger(observed, attribution),
        opportunities=opportunities(observed, float(attribution.left.sum())),
        not_checked=tuple(one for one in not_checked(observed) if one.code not in named),
    )
    return Judgement(
        whole if observed.share == 1 else whole.scale(1 / observed.share), observed, attribution
    )


def _late_ranks(one: Proposal) -> Cause:
    return Cause(
        one.code,
        one.culprit,
        Saving(0.0, 0.0, 0.0, 0.0),
        1 - one.p_value,
        one.contrast,
        facts=one.facts,
    )


LAYOUT = "the files' layout: a Darshan log with the Lustre module, or --layout FILE"
FEWER_TARGETS = (
    "calls that touch fewer targets: all of these touch the same ones, so none can be compared; "
    "write a test file to each target (lfs setstripe -c 1 -i TARGET)"
)
HOSTS = "host names of the ranks: DXT of Darshan, DFTracer and Recorder record them"
PROCESSES = (
    "all processes of the job: those without I/O calls leave no trace "
    "(DFTracer: DFTRACER_DATA_DIR=all)"
)
CALLS = "per-call data: export DXT_ENABLE_IO_TRACE=1"
APPLICATION = "application events: DFTracer with its Python or C annotations"
STORAGE = "counters of calls to storage, by file: the POSIX module of Darshan"
NEED_STORAGE = (
    "small-requests", "metadata", "frequent-sync", "redundant-reads", "serial-io",
    "data-imbalance", "library-start", "slow-rank",
)  # fmt: skip
NEED_CALLS = ("misalignment", "shared-file-contention", "random-access", "redundant-writes")


def not_checked_without_storage() -> tuple[NotChecked, ...]:
    """List what a log without calls to storage cannot show."""
    below = (NotChecked(code, STORAGE) for code in NEED_STORAGE)
    return (*below, *(NotChecked(code, CALLS) for code in NEED_CALLS))


def not_checked(observed: Observed) -> tuple[NotChecked, ...]:
    """List what the log has too little detail for."""
    missing = []
    if "offsets" not in observed.detail:
        missing += [NotChecked(code, CALLS) for code in NEED_CALLS]
    if not observed.per_call and len(observed.phases) == 1 and observed.heat is None:
        missing.append(NotChecked("interference", CALLS))
    if not len(observed.files.striped_rows):
        missing += [NotChecked(c, LAYOUT) for c in ("slow-target", "hot-target", "few-targets")]
    elif len(observed.pieces.targets) > 1 and observed.pieces.group.max() == 0:
        missing.append(NotChecked("slow-target", FEWER_TARGETS))
    if not observed.hosts and observed.ranks > 1:
        missing.append(NotChecked("slow-node", HOSTS))
    if observed.per_call and observed.ranks == 1 and "counters" not in observed.detail:
        missing.append(NotChecked("serial-io", PROCESSES))
    if observed.training is None:
        missing.append(NotChecked("no-prefetch", APPLICATION))
    return tuple(missing)


GROUP = "ioprism.causes"


@dataclass(frozen=True, slots=True)
class DiagnosisOptions:
    """What a site knows beyond the trace."""

    layout: Mapping[str, Striping] = field(default_factory=dict)
    ceilings: Sequence[Ceiling] = ()
    write_seconds: Callable[[Trace], float] | None = None  # from a write-time model
    servers: ServerLoads | None = None
    site: JobHistory | None = None  # what other jobs on the same file systems reached


class JobHistory(Protocol):
    """What a site knows of other jobs, as `ioprism.site` opens it."""

    def judge(self, judgement: Judgement, trace: Trace, engine: Engine) -> Judgement:
        """Return the judgement with what other jobs reached, and the run's own history."""
        ...


def diagnose(
    trace: Trace, *, options: DiagnosisOptions | None = None, engine: Engine | None = None
) -> Verdict:
    """Return the verdict on a job."""
    return diagnose_observed(trace, options=options, engine=engine)[0]


def diagnose_observed(
    trace: Trace, *, options: DiagnosisOptions | None = None, engine: Engine | None = None
) -> tuple[Verdict, Observed | None]:
    """Return the verdict on a job, and the rows that it was judged by."""
    from ioprism.engine.base import LocalEngine, SharedViews, in_memory

    chosen = options or DiagnosisOptions()
    held = in_memory(with_layout(trace, chosen.layout))
    ahead = SharedViews(engine or LocalEngine(), held, first_views(held))
    judgement = _judge_causes(held, ahead, chosen)
    if judgement.verdict.causes:  # findings on their calls are their symptoms
        evidence = evidence_of_trace(held, ahead, Thresholds())
        answers = judge(evidence, measure=_measure(evidence, held, ahead))
    else:
        evidence, answers = evidence_of_counters(held), RuleAnswers((), (), None, {})
    insights = _finish(answers, judgement, evidence, nodes=_nodes(held))
    return insights.verdict, judgement.observed


def first_views(trace: Trace, thresholds: Thresholds | None = None) -> tuple[View, ...]:
    """What checks, and rules with these thresholds, ask of calls with nothing known before."""
    if not trace.partitions:
        return ()
    from ioprism.diagnosis.affected_calls import call_views
    from ioprism.diagnosis.sampling import first_look

    return (*first_look(), *(() if thresholds is None else call_views(trace, thresholds)))


def judge_job(
    evidence: Evidence, trace: Trace, engine: Engine, *, options: DiagnosisOptions | None = None
) -> Insights:
    """Judge a trace: causes, findings, and which findings show the calls of a cause."""
    answers = judge(evidence, measure=_measure(evidence, trace, engine))
    judgement = _judge_causes(trace, engine, options or DiagnosisOptions())
    return _finish(answers, judgement, evidence, nodes=_nodes(trace))


def _nodes(trace: Trace) -> int:
    if not trace.partitions:  # counters do not name hosts
        return 1
    return max(1, trace.processes["host"].drop_nulls().n_unique())


def _judge_causes(trace: Trace, engine: Engine, options: DiagnosisOptions) -> Judgement:
    """Put a trace to the checks, and use what counters and the site know beyond it."""
    plug_ins = [load(plugin) for plugin in declared(GROUP)]
    judgement = judge_trace(trace, engine, more=plug_ins)
    verdict = judgement.verdict
    if trace.counters:
        verdict = _with_untraced(verdict, slowest_rank(evidence_of_counters(trace)))
    verdict = _use_site_knowledge(verdict, trace, engine, options)
    judgement = replace(judgement, verdict=verdict)
    return judgement if options.site is None else options.site.judge(judgement, trace, engine)


def _finish(
    answers: RuleAnswers, judgement: Judgement, evidence: Evidence, *, nodes: int
) -> Insights:
    """Add words and completeness, and put findings below the causes whose calls they show."""
    context = JobContext(
        evidence.job, evidence.files, evidence.modules, nodes, _mostly_collective(evidence)
    )
    verdict = _with_missing(judgement.verdict, evidence)
    causes: dict[str, str] = {}
    if judgement.observed is not None and judgement.attribution is not None:
        causes = assign_findings(
            answers.hits, judgement.observed, judgement.attribution,
            small_bytes=evidence.thresholds.small_bytes,
        )  # fmt: skip
    kept = {cause.code for cause in verdict.causes}  # what a site knows may rule causes out
    causes = {finding: code for finding, code in causes.items() if code in kept}
    findings = [
        replace(one, cause=causes.get(one.code) if one.severity in SERIOUS else None)
        for one in answers.findings
    ]
    ranked = rank_findings(findings, verdict, evidence.thresholds)
    symptoms = {
        cause.code: tuple(one.code for one in ranked if one.cause == cause.code)
        for cause in verdict.causes
    }
    verdict = replace(
        verdict,
        causes=tuple(replace(c, symptoms=symptoms[c.code]) for c in verdict.causes),
        findings=ranked,
    )
    return Insights(ranked, word_verdict(verdict, context), answers.not_checked, answers.slowest)


def _mostly_collective(evidence: Evidence) -> bool:
    usage = evidence.usages.get("mpiio")
    if usage is None:
        return False
    together = sum(sum(moves.collective or ()) for moves in usage.moves.values())
    return together > MAJORITY * max(1, sum(usage.operations))


def _with_missing(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Say what the log lacks; without any I/O in it, nothing can be judged."""
    missing = evidence.completeness.warnings
    nothing = verdict.io_stall.basis == "nothing"
    return replace(verdict, missing=missing, status="cannot-judge" if nothing else verdict.status)


def _with_untraced(verdict: Verdict, slowest: SlowestRank | None) -> Verdict:
    """Let I/O stall the job at least as long as its slowest rank is in I/O by the counters.

    DXT has reads and writes only, and counters of MPI-IO leave out what the rank does besides.
    """
    seconds = 0.0 if slowest is None else min(slowest.seconds, verdict.runtime or slowest.seconds)
    stall = verdict.io_stall
    beyond = seconds - stall.seconds
    if beyond <= 0 or (stall.basis in ("exposed", "nothing") and stall.seconds > 0):
        return verdict
    share = seconds / verdict.runtime if verdict.runtime > 0 else 0.0
    hours = None if not stall.core_hours else stall.core_hours * seconds / stall.seconds
    basis = "counters" if stall.basis == "nothing" else stall.basis
    return replace(
        verdict,
        io_stall=replace(stall, seconds=seconds, share=share, core_hours=hours, basis=basis),
        ledger=(*verdict.ledger, LedgerLine("untraced", beyond)),
    )


def _measure(evidence: Evidence, trace: Trace, engine: Engine) -> Measure | None:
    if not trace.partitions:
        return None
    from ioprism.diagnosis.affected_calls import measured_seconds

    def measure(hits: Mapping[str, tuple[Rule, Hit]]) -> Mapping[str, float]:
        complete = {
            code: (rule, hit)
            for code, (rule, hit) in hits.items()
            if _has_all_calls(evidence, hit.interface or rule.interface)
        }
        return measured_seconds(complete, trace, engine, evidence.thresholds)

    return measure


def _has_all_calls(evidence: Evidence, layer: str) -> bool:
    """Whether the trace has nearly all calls that its counters have: tracing may run full."""
    usage, rank_load = evidence.usages.get(layer), evidence.loads.get(layer)
    if usage is None or rank_load is None or rank_load.operations is None:
        return True
    traced = sum(sum(ways.values()) for ways in rank_load.operations.values())
    return traced >= NEARLY_ALL * sum(usage.operations)


def with_layout(trace: Trace, layout: Mapping[str, Striping]) -> Trace:
    """Return the trace with the targets of its files; those that the trace knows stay."""
    if not layout:
        return trace
    import polars as pl

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
        count = pl.col("said_targets").list.len()
        return table.with_columns(
            stripe_size=pl.coalesce("stripe_size", "said_size"),
            stripe_count=pl.coalesce("stripe_count", count).cast(pl.Int64),
            targets=pl.coalesce("targets", "said_targets"),
        ).drop("said_size", "said_targets")

    return trace.derive(load_files=files)


def _use_site_knowledge(
    verdict: Verdict, trace: Trace, engine: Engine, options: DiagnosisOptions
) -> Verdict:
    """Use what the site knows: what its system can reach, and whether others were busy."""
    modelled = 0.0 if options.write_seconds is None else options.write_seconds(trace)
    needed = max(_ceiling_seconds(trace, engine, options.ceilings), modelled)
    verdict = limit_to_rate(verdict, needed) if needed > 0 else verdict
    if options.servers is None:
        return verdict
    return check_against_servers(verdict, _server_loads(verdict, trace, options.servers))


def _ceiling_seconds(trace: Trace, engine: Engine, ceilings: Sequence[Ceiling]) -> float:
    """Seconds that the job's bytes need at the best rates that were measured."""
    if not ceilings:
        return 0.0
    from ioprism.characteristics.totals import characterise

    moved = characterise(trace, engine).by_operation
    seconds = 0.0
    for direction in ("read", "write"):
        best = max((c.bandwidth.get(direction, 0.0) for c in ceilings), default=0.0)
        seconds += moved[direction].bytes / best if best > 0 else 0.0
    return seconds


def _server_loads(verdict: Verdict, trace: Trace, servers: ServerLoads) -> dict[int, float]:
    """How busy servers were during interference, relative to the whole job."""
    start, runtime = trace.job.start_time, verdict.runtime
    if start is None or runtime <= 0:
        return {}
    whole = servers.during(start, start + runtime)
    loads = {}
    for place, cause in enumerate(verdict.causes):
        if cause.code == "interference" and whole.bytes and whole.seconds:
            first, last = start + cause.culprit["from"], start + cause.culprit["to"]
            then = servers.during(first, last)
            if then.seconds:
                loads[place] = (then.bytes / then.seconds) / (whole.bytes / whole.seconds)
    return loads


def assign_findings(
    hits: Mapping[str, tuple[Rule, Hit]],
    observed: Observed,
    attribution: Attribution,
    *,
    small_bytes: float,
) -> dict[str, str]:
    """Return, by code of a finding, the cause that most of its calls belong to."""
    causes = {}
    for code, (rule, hit) in hits.items():
        rows = affected_rows(observed, rule, hit, small_bytes=small_bytes)
        if rows is None or not observed.own[rows].any():
            continue
        shares = [_share_of_cause(observed, rows, mine, rule) for mine in attribution.claimed]
        if shares and max(shares) >= MAJORITY:
            causes[code] = attribution.causes[int(np.argmax(shares))].code
    return causes


def _share_of_cause(observed: Observed, rows: Flags, mine: Flags, rule: Rule) -> float:
    """The share of a finding's time that a cause claims; of the cause's, if that is larger.

    A serious finding that covers all calls of a cause, and others, shows the same problem.
    """
    both, of_finding, claimed = (float(observed.own[x].sum()) for x in (rows & mine, rows, mine))
    whole = min(of_finding, claimed) if rule.level in SERIOUS else of_finding
    return both / max(whole, 1e-12)


def affected_rows(observed: Observed, rule: Rule, hit: Hit, *, small_bytes: float) -> Flags | None:
    """Return the rows that a finding is about; None where it is about the job as such."""
    kind, rows = rule.call_kind, observed.rows
    if kind.whole_job:
        return None
    kinds = {KINDS.get(name, METADATA) for name in kind.operations}
    chosen = np.isin(rows.kind, list(kinds))
    if hit.files:
        chosen &= np.isin(rows.file, observed.files.rows(hit.files))
    if hit.ranks and len(observed.rank_numbers):
        known = [rank for rank in hit.ranks if rank is not None]
        named = np.isin(observed.rank_numbers, np.asarray(known, np.int64))
        chosen &= (rows.rank < 0) | named[np.maximum(rows.rank, 0)]
    if kind.small:
        chosen &= rows.mean_bytes < small_bytes
    return chosen & _longest_ranks(observed, chosen) if kind.slowest else chosen


def _longest_ranks(observed: Observed, chosen: Flags) -> Flags:
    """Rows of the ranks that spend most time in some rows, phase by phase."""
    seconds = observed.by_rank(observed.own, chosen)
    longest = seconds >= DOMINANT * np.maximum(seconds.max(axis=1, keepdims=True), 1e-12)
    return observed.of_sessions(longest.astype(np.float64), 1.0) > 0
