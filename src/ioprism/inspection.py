"""What is behind one finding or bottleneck: the calls it is about, from several perspectives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ioprism.bottleneck_search.counted_once import io_rows, main_view
from ioprism.bottleneck_search.find import MOST, Inspection, TakenApart, longest_calls, parts
from ioprism.bottleneck_search.result import Settings
from ioprism.bottleneck_search.rule_language.load import rules as load_rules
from ioprism.bottleneck_search.steps import Source, prepare_views
from ioprism.diagnosis.affected_calls import Concern
from ioprism.diagnosis.evidence import Evidence, evidence_of_trace
from ioprism.diagnosis.rules.registry import all_rules
from ioprism.diagnosis.rules.rule import Rule, Unknown
from ioprism.diagnosis.steps import judge_job
from ioprism.engine.base import Engine
from ioprism.errors import AnalysisError, NotEnoughDetailError
from ioprism.model.trace import Trace
from ioprism.model.verdict import Finding
from ioprism.settings import Thresholds
from ioprism.views.access import CallsWhere, LongestCalls


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FindingInspection(TakenApart):
    """A finding, taken apart."""

    finding: Finding

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON holds."""
        return self._with_parts(finding=self.finding.to_dict())

    def summary(self) -> str:
        """Return the answer in one line."""
        return self.finding.title


def rule_called(code: str) -> Rule | None:
    """Return the rule with this code, or with this name in another tool."""
    return next((rule for rule in all_rules() if code == rule.code or code in rule.aliases), None)


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
            hint="`ioprism formats` shows what can be recorded.",
        )
    if answer is None:
        raise AnalysisError(
            f"this trace does not have the finding {rule.code!r}.\n"
            "Hint: `ioprism insights` lists the findings; give the same --thresholds and --servers."
        )
    # As `insights` reports it: below its cause, with no more seconds than I/O stalls the job.
    findings = judge_job(evidence, trace, engine).findings
    finding = next(finding for finding in findings if finding.code == rule.code)
    concern = Concern.of(rule, answer, trace, evidence.thresholds)
    chosen = Settings(views=("process", "file"), layer=_layer(finding))
    main = main_view(concern.of_trace(trace), chosen, engine)
    behind = io_rows(main, trace, chosen).rows.main.filter(concern.of_rows())
    calls = CallsWhere(concern.of_calls(behind))
    return FindingInspection(
        finding,
        parts=parts(behind, trace, chosen),
        calls=longest_calls(LongestCalls(calls, most=MOST), trace, engine),
    )


def _layer(finding: Finding) -> str:
    """The interface to look at; findings about ranks concern all that touch storage."""
    named = finding.interface
    return "deepest" if named in (None, "application", "trace") else named


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
        UsageError: the id is unknown.
        AnalysisError: there is no such finding in the trace.
    """
    rule = rule_called(identifier)
    if rule is not None:
        evidence = evidence_of_trace(trace, engine, thresholds or Thresholds())
        return inspected_finding(rule, evidence, trace, engine)
    looked_at = prepare_views(trace, engine, **chosen)
    known = load_rules(*map(Path, rules))
    return looked_at.inspect(identifier, known, engine, Source(trace.paths))
