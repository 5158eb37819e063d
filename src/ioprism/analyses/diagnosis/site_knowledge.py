"""What a site knows beyond the trace sharpens a diagnosis: its ceiling, its servers' load."""

from __future__ import annotations

from dataclasses import replace

from ioprism.analyses.diagnosis.result import Cause, Diagnosis, LedgerLine, Saving
from ioprism.analyses.diagnosis.significance import WORTH

CONFIRMED, DOUBTED = 1.2, 0.9  # servers' rate in the time concerned, over that of the whole job
SURE = 0.97


def no_faster_than(found: Diagnosis, seconds: float) -> Diagnosis:
    """Return the diagnosis where the job's bytes need at least so many seconds on this system.

    Savings that would leave less are cut in proportion; what is cut counts as transfer. A cause
    of which too little is left is none.
    """
    room = max(0.0, found.held_up.seconds - seconds)
    saved = sum(cause.saving.seconds for cause in found.causes)
    if saved <= room or not saved:
        return found
    scaled = (_scaled(cause, room / saved) for cause in found.causes)
    causes = tuple(cause for cause in scaled if cause.saving.share > WORTH or not cause.saving.high)
    return _rebooked(found, causes, "transfer")


def _scaled(cause: Cause, factor: float) -> Cause:
    saving = cause.saving
    least, most = saving.low * factor, min(saving.high, max(saving.high * factor, saving.seconds))
    return replace(
        cause, saving=Saving(saving.seconds * factor, least, most, saving.share * factor)
    )


def judged_by_servers(found: Diagnosis, loads: dict[int, float]) -> Diagnosis:
    """Return the diagnosis with interference confirmed or taken back by the servers' counters.

    Args:
        found: the diagnosis.
        loads: by place among the causes, the rate of all servers in the time concerned over
            their rate during the whole job.
    """
    causes = []
    for place, cause in enumerate(found.causes):
        load = loads.get(place)
        if load is not None and load < DOUBTED:
            continue
        sure = load is not None and load >= CONFIRMED
        causes.append(replace(cause, confidence=max(cause.confidence, SURE)) if sure else cause)
    return _rebooked(found, tuple(causes), "unexplained")


def _rebooked(found: Diagnosis, causes: tuple[Cause, ...], rest: str) -> Diagnosis:
    """Write the ledger anew; what causes no longer take goes to one of the other lines."""
    # Uneven computing is a cause without a line: it takes none of the held-up time.
    codes = {cause.code for cause in found.causes}
    others = {line.what: line.seconds for line in found.ledger if line.what not in codes}
    freed = sum(c.saving.seconds for c in found.causes) - sum(c.saving.seconds for c in causes)
    others[rest] = others.get(rest, 0.0) + freed
    lines = [LedgerLine(c.code, c.saving.seconds) for c in causes if c.saving.seconds > 0]
    lines += [LedgerLine(what, seconds) for what, seconds in others.items()]
    return replace(found, causes=causes, ledger=tuple(lines))
