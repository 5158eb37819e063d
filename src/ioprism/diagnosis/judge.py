"""From a trace to its verdict: the steps, and only the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ioprism.diagnosis.checks import CHECKS, Check, compute_imbalance
from ioprism.diagnosis.evidence import Evidence, evidence_of_counters
from ioprism.diagnosis.from_counters import observe_counters
from ioprism.diagnosis.limits import MAJORITY, Limits
from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.replay import Proposal
from ioprism.diagnosis.verdict import Attribution, attribute, ledger, opportunities
from ioprism.model.verdict import Cause, NotChecked, Saving, StallTime, Verdict, core_hours

if TYPE_CHECKING:
    from ioprism.engine.base import Engine
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
    checks = (compute_imbalance.check,) if little else (*more, *CHECKS)
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
