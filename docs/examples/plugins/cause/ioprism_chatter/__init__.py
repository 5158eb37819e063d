"""A cause: messages written to log files while the job should compute."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ioprism.diagnosis.observed import Observed
from ioprism.diagnosis.replay import Change, Proposal, Scenario, contrast
from ioprism.diagnosis.rows import WRITE

ENDINGS = (".log", ".out", ".err")


def find(observed: Observed) -> Iterator[Proposal]:
    """Propose not to write log files: their calls take no time any more."""
    rows = observed.rows
    logs = [
        int(file)
        for file in np.unique(rows.file[rows.file >= 0])
        if observed.files.path(int(file)).endswith(ENDINGS)
    ]
    messages = (rows.kind == WRITE) & np.isin(rows.file, logs)
    if not messages.any():
        return
    without = Scenario(np.where(messages, 0.0, observed.own))
    path = observed.files.path(observed.main_file(messages))
    yield Proposal(
        code="chatter",
        culprit={"file": path},
        rows=messages,
        change=Change(without, without, without),
        p_value=0.0,  # no comparison is needed: these calls would not be made at all
        contrast=contrast(observed, messages, rows.moves_data & ~messages, "chatter"),
        facts=_words(int(rows.count[messages].sum()), path),
    )


def _words(writes: int, path: str) -> dict[str, object]:
    """What the report says of it."""
    return {
        "title": f"{writes} messages are written to log files",
        "advice": [f"Raise the log level, or buffer {path} and write it once per step."],
    }
