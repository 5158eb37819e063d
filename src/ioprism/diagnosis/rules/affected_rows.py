"""Which rows of the diagnosis a finding is about, and which cause they belong to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ioprism.diagnosis.limits import DOMINANT, MAJORITY
from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.rows import KINDS, METADATA, Flags
from ioprism.diagnosis.rules.rule import Hit, Rule
from ioprism.diagnosis.verdict import Attribution
from ioprism.model.verdict import SERIOUS


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
    own = observed.rows.rank >= 0
    return np.asarray(~own | longest[observed.phase, np.maximum(observed.rows.rank, 0)])
