"""From a trace to its verdict: the steps, and only the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ioprism.diagnosis.checks import CHECKS, Check, compute_imbalance
from ioprism.diagnosis.evidence import Evidence, evidence_of_counters
from ioprism.diagnosis.from_counters import observe_counters
from ioprism.diagnosis.limits import Limits
from ioprism.diagnosis.not_checked import not_checked, not_checked_without_storage
from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.replay import Proposal
from ioprism.diagnosis.verdict import Attribution, attribute, ledger, opportunities
from ioprism.model.verdict import Cause, Saving, StallTime, Verdict, core_hours

if TYPE_CHECKING:
    from ioprism.engine.base import Engine
    from ioprism.model.trace import Trace

MAX_UNTRACED = 0.5  # of the calls that counters have: with more, counters show more


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
    from ioprism.diagnosis.process_control import without_process_control
    from ioprism.diagnosis.stages import list_stages
    from ioprism.diagnosis.training import find_training

    trace = without_process_control(trace)
    run = find_training(trace, engine)
    observed = observe_calls(trace if run is None else run.exposed(trace), engine, chosen)
    if not len(observed.rows) or untraced_share(observed, trace.counters) > MAX_UNTRACED:
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
    late = tuple(_late_ranks(one) for one in proposals if one.code == "compute-imbalance")
    whole = Verdict(
        status="cause" if attribution.causes else "possible" if attribution.possible else "none",
        runtime=runtime,
        io_stall=StallTime(stall, share, hours, observed.basis),
        causes=(*attribution.causes, *late),
        possible=attribution.possible,
        ledger=ledger(observed, attribution),
        opportunities=opportunities(observed, float(attribution.left.sum())),
        not_checked=not_checked(observed),
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
