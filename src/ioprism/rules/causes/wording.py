"""Titles and advice of causes, with values from the log."""

from __future__ import annotations

from dataclasses import replace

from ioprism.analyses.diagnosis.result import Cause, Diagnosis
from ioprism.model.trace import Trace


def worded(found: Diagnosis, trace: Trace) -> Diagnosis:
    """Return the diagnosis with a title and advice for every cause."""
    return replace(
        found, causes=tuple(replace(cause, title=title(cause)) for cause in found.causes)
    )


def title(cause: Cause) -> str:
    """Return the cause in one phrase."""
    return cause.code
