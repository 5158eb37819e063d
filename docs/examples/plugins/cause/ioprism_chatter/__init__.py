"""A cause: messages written to log files while the job should compute."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ioprism.analyses.diagnosis.attribution import Candidate
from ioprism.analyses.diagnosis.calls import WRITE
from ioprism.analyses.diagnosis.contrasts import contrast_of
from ioprism.analyses.diagnosis.situation import Situation

ENDINGS = (".log", ".out", ".err")


def find(at: Situation) -> Iterator[Candidate]:
    """Yield the seconds by which writes to log files prolong the phases of the job.

    Without them, the busiest rank of each phase is done earlier; a phase cannot become shorter
    than what that rank still has to do.
    """
    paths = [at.path(file) for file in range(at.seen.files.height)]
    is_log = np.array([path.endswith(ENDINGS) for path in paths])
    messages = (at.calls.kind == WRITE) & (at.calls.file >= 0)
    messages[messages] = is_log[at.calls.file[messages]]
    if not messages.any():
        return
    saved = at.busiest_rank(at.own) - at.busiest_rank(at.own, ~messages)
    chattiest = int(np.bincount(at.calls.file[messages]).argmax())
    yield Candidate(
        code="chatter",
        culprit={"file": paths[chattiest]},
        seconds=np.minimum(saved, at.held),
        low=0.9 * float(saved.sum()),
        high=1.1 * float(saved.sum()),
        p_value=0.0,  # no comparison was needed: these calls would not be made at all
        contrast=contrast_of(at, messages, at.calls.moves_data & ~messages, "chatter"),
        facts=_words(int(messages.sum()), paths[chattiest]),
    )


def _words(writes: int, path: str) -> dict[str, object]:
    """What the report says of it."""
    return {
        "title": f"{writes} messages are written to log files",
        "subject": "Writing messages",
        "advice": [f"Raise the log level, or buffer {path} and write it once per step."],
    }
