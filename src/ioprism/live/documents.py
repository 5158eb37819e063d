"""The JSON of `ioprism watch`: one line a prediction."""

from __future__ import annotations

import json
from typing import Any

from ioprism.periodicity.online.tracker import Prediction
from ioprism.periodicity.results import Period
from ioprism.reports import to_json


def body(job: str, prediction: Prediction, *, messages: int, ranks: int | None) -> dict[str, Any]:
    """Return the values of one prediction."""
    return {
        "job": job,
        "messages": messages,
        "ranks": ranks,
        "time": prediction.time,
        "window": list(prediction.window),
        "period": None if prediction.period is None else _period(prediction.period),
        "next_phase": None if prediction.next_phase is None else _fields(prediction.next_phase),
        "probabilities": [_fields(probability) for probability in prediction.probabilities],
        "direction": prediction.direction,
        "phase_distance": prediction.phase_distance,
        "final": prediction.final,
        "change": None if prediction.change is None else _fields(prediction.change),
    }


def line(job: str, prediction: Prediction, *, messages: int, ranks: int | None) -> str:
    """Return one prediction on one line, in ASCII."""
    values = body(job, prediction, messages=messages, ranks=ranks)
    try:
        return json.dumps(values, allow_nan=False).replace("\x7f", "\\u007f")
    except ValueError:  # a number that JSON does not know; rare, and expensive to look for
        return to_json.line(values)


def _period(period: Period) -> dict[str, Any]:
    """A period without the list of its phases, which every line would repeat."""
    fields = _fields(period)
    del fields["phases"]
    return fields


def _fields(result: object) -> dict[str, Any]:
    """The fields of a result that holds plain values only; `asdict` would copy them, too."""
    return {name: getattr(result, name) for name in result.__slots__}  # type: ignore[attr-defined]
