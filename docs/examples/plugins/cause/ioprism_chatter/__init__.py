"""A cause: messages written to log files while the job should compute."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.replay import Change, Proposal, Scenario, contrast
from ioprism.diagnosis.rows import WRITE

ENDINGS = (".log", ".out", ".err")
STILL_WRITTEN = 0.1  # of the messages, at worst: errors are worth a line


def check(observed: Observed) -> Iterator[Proposal]:
    """Propose to leave out the writes to log files.

    Without them, the busiest rank of each phase is done earlier; `replay` makes seconds of it.
    """
    rows = observed.rows
    used = np.unique(rows.file[(rows.kind == WRITE) & (rows.file >= 0)])
    logs = [file for file in used if observed.files.path(int(file)).endswith(ENDINGS)]
    messages = (rows.kind == WRITE) & np.isin(rows.file, logs)
    if not messages.any():
        return
    gone = Scenario(np.where(messages, 0.0, observed.own))
    some_left = Scenario(np.where(messages, STILL_WRITTEN * observed.own, observed.own))
    path = observed.files.path(observed.main_file(messages))
    yield Proposal(
        code="chatter",
        culprit={"file": path},
        rows=messages,
        change=Change(likely=gone, worst=some_left, best=gone),
        p_value=0.0,  # no comparison was needed: these calls would not be made at all
        contrast=contrast(observed, messages, rows.moves_data & ~messages, "chatter"),
        facts=_words(round(float(rows.count[messages].sum())), path),
    )


def _words(writes: int, path: str) -> dict[str, object]:
    """What the report says of it."""
    return {
        "title": f"{writes} messages are written to log files",
        "advice": [f"Raise the log level, or buffer {path} and write it once per step."],
    }
