"""The JSON of `ioprism period`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from ioprism.analyses.periodicity.results import Component, NamedPeriod, Period, Rhythm
from ioprism.pipeline.period import JobRhythm, RhythmSettings


def body(rhythm: Rhythm, *, direction: str) -> dict[str, Any]:
    """Return what `ioprism period --json` says of a rhythm."""
    signal = rhythm.signal
    return {
        "signal": {
            "samples": len(signal.values),
            "frequency": signal.frequency,
            "start": signal.start,
            "end": signal.end,
            "direction": direction,
        },
        "period": period_body(rhythm.period),
        "rhythms": [named_body(one) for one in rhythm.rhythms],
        "takes_turns": rhythm.takes_turns,
        "candidates": [asdict(candidate) for candidate in rhythm.candidates],
        "components": _waves(rhythm.components),
        "fit": None
        if rhythm.fit is None
        else {
            "components": _waves(rhythm.fit.components),
            "mse_before": rhythm.fit.mse_before,
            "mse_after": rhythm.fit.mse_after,
        },
        "burst": None if rhythm.burst is None else asdict(rhythm.burst),
        "next_phase": None if rhythm.next_phase is None else asdict(rhythm.next_phase),
    }


def job_body(job_rhythm: JobRhythm, settings: RhythmSettings) -> dict[str, Any]:
    """Return the whole document's own keys, those of parts included if they were asked for."""
    whole = body(job_rhythm.whole, direction=settings.direction)
    if settings.by is None:
        return whole
    parts = [
        {"name": part.name, "bytes": part.bytes, "period": period_body(part.rhythm.period)}
        for part in job_rhythm.parts
    ]
    return {**whole, "by": settings.by, "parts": parts}


def period_body(period: Period | None) -> dict[str, Any] | None:
    """Return a period without the list of its phases."""
    if period is None:
        return None
    every = asdict(period)
    del every["phases"]
    return every


def named_body(one: NamedPeriod) -> dict[str, Any]:
    """Return one of the rhythms."""
    period = one.period
    return {
        "seconds": period.seconds,
        "direction": one.direction,
        "part": one.part,
        "valid_ranges": period.valid_ranges,
        "false_alarm_probability": period.false_alarm_probability,
        "confidence": period.confidence,
        "certainty": period.certainty,
        "repetitions": period.repetitions,
    }


def _waves(waves: Iterable[Component]) -> list[dict[str, float]]:
    return [asdict(wave) for wave in waves]
