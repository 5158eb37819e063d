"""The JSON of `ioprism period`."""

from __future__ import annotations

from typing import Any

from ioprism.periodicity.steps import JobRhythm, PartRhythm


def body(rhythm: JobRhythm, by: str | None) -> dict[str, Any]:
    """Return the document's own keys, those of parts included if they were asked for."""
    whole = {
        **rhythm.whole.to_dict(),
        "asynchronous": [one.to_dict() for one in rhythm.asynchronous],
    }
    return whole if by is None else {**whole, "by": by, "parts": list(map(_part, rhythm.parts))}


def _part(part: PartRhythm) -> dict[str, Any]:
    period = part.rhythm.period
    return {
        "name": part.name,
        "bytes": part.bytes,
        "period": None if period is None else period.to_dict(),
    }
