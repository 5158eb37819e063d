"""What a site knows beyond the trace sharpens a verdict: its best rates, its servers' load."""

from __future__ import annotations

from dataclasses import replace

from ioprism.diagnosis.limits import Limits
from ioprism.model.verdict import Cause, LedgerLine, Saving, Verdict


def limit_to_rate(verdict: Verdict, seconds: float) -> Verdict:
    """Return the verdict where the job's bytes need at least these seconds on this system.

    Savings that would leave less are cut in proportion; what is cut counts as transfer.
    """
    room = max(0.0, verdict.io_stall.seconds - seconds)
    saved = sum(cause.saving.seconds for cause in verdict.causes)
    possible = tuple(replace(one, upper=min(one.upper, room)) for one in verdict.possible)
    least = max(Limits().min_share * verdict.runtime, Limits().min_seconds)
    verdict = replace(verdict, possible=tuple(one for one in possible if one.upper > least))
    if saved <= room or not saved:
        return _with_status(verdict)
    scaled = (scale(cause, room / saved) for cause in verdict.causes)
    causes = tuple(c for c in scaled if c.saving.share > Limits().min_share or not c.saving.high)
    return rebook(verdict, causes, "transfer")


def scale(cause: Cause, factor: float) -> Cause:
    """Return the cause with a smaller saving; the upper end is at least what it was thought."""
    saving = cause.saving
    least, most = saving.low * factor, min(saving.high, max(saving.high * factor, saving.seconds))
    cut = Saving(saving.seconds * factor, least, most, saving.share * factor)
    hours = None if cause.core_hours is None else cause.core_hours * factor
    return replace(cause, saving=cut, core_hours=hours)


def check_against_servers(verdict: Verdict, loads: dict[int, float]) -> Verdict:
    """Return the verdict with interference confirmed or removed by the servers' counters.

    Args:
        verdict: of the job.
        loads: by place among the causes, the rate of all servers in the time concerned over
            their rate during the whole job.
    """
    limits, causes = Limits(), []
    slower, faster = limits.server_rate
    for place, cause in enumerate(verdict.causes):
        load = loads.get(place)
        if load is not None and load < slower:
            continue
        sure = load is not None and load >= faster
        causes.append(
            replace(cause, confidence=max(cause.confidence, 1 - limits.significance))
            if sure
            else cause
        )
    return rebook(verdict, tuple(causes), "unexplained")


def rebook(verdict: Verdict, causes: tuple[Cause, ...], rest: str) -> Verdict:
    """Write the ledger for other causes; what they no longer take goes to another line.

    What they take in addition comes from that line, then from the others.
    """
    codes = {cause.code for cause in verdict.causes}
    others = {line.what: line.seconds for line in verdict.ledger if line.what not in codes}
    freed = sum(c.saving.seconds for c in verdict.causes) - sum(c.saving.seconds for c in causes)
    others[rest] = others.get(rest, 0.0) + max(0.0, freed)
    missing = max(0.0, -freed)
    for what in sorted(others, key=lambda line: line != rest):
        taken = min(missing, others[what])
        others[what] -= taken
        missing -= taken
    lines = [LedgerLine(c.code, c.saving.seconds) for c in causes if c.saving.seconds > 0]
    lines += [LedgerLine(what, seconds) for what, seconds in others.items()]
    return _with_status(replace(verdict, causes=causes, ledger=tuple(lines)))


def _with_status(verdict: Verdict) -> Verdict:
    real = any(cause.saving.seconds > 0 for cause in verdict.causes)
    status = "cause" if real else "possible" if verdict.possible else "none"
    return replace(verdict, status=status)
