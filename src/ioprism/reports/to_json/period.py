"""The JSON of `ioprism period`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from ioprism.analyses.periodicity.results import Component, Period, Rhythm


def body(found: Rhythm, *, direction: str) -> dict[str, Any]:
    """Return the keys of CLI.md for this command."""
    signal = found.signal
    return {
        "signal": {
            "samples": len(signal.values),
            "frequency": signal.frequency,
            "start": signal.start,
            "end": signal.end,
            "direction": direction,
        },
        "period": _period(found.period),
        "candidates": [asdict(candidate) for candidate in found.candidates],
        "components": _waves(found.components),
        "fit": None
        if found.fit is None
        else {
            "components": _waves(found.fit.components),
            "mse_before": found.fit.mse_before,
            "mse_after": found.fit.mse_after,
        },
        "burst": None if found.burst is None else asdict(found.burst),
        "next_phase": None if found.next_phase is None else asdict(found.next_phase),
    }


def parts_body(parts: Iterable[tuple[str, Rhythm, float]], *, key: str) -> dict[str, Any]:
    """Return the rhythm of every file, rank, directory or application."""
    return {
        "by": key,
        "parts": [
            {"name": name, "bytes": moved, "period": _period(found.period)}
            for name, found, moved in parts
        ],
    }


def _period(period: Period | None) -> dict[str, Any] | None:
    return None if period is None else asdict(period)


def _waves(waves: Iterable[Component]) -> list[dict[str, float]]:
    return [asdict(wave) for wave in waves]
