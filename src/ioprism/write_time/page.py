"""The page of write times: predicted against measured by every model, and better configurations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ioprism.reports.to_html.page import shell_page, short
from ioprism.text import printable
from ioprism.units import format_seconds
from ioprism.write_time import limits, terminal
from ioprism.write_time.estimate import Estimate
from ioprism.write_time.evaluation import Evaluation, SampleSet
from ioprism.write_time.loads import SYMBOLS
from ioprism.write_time.model import WriteTimeModel
from ioprism.write_time.stage_model import StageFit
from ioprism.write_time.system import FloatArray
from ioprism.write_time.training_data import LEAKING
from ioprism.write_time.tuning import Alternative, Tuning

MOST_DOTS = 3000  # samples of a set that are drawn; more cannot be told apart
Sheet = dict[str, Any]  # title, note, columns (name and kind), rows


def page(evaluation: Evaluation) -> str:
    """Return the page of an evaluation."""
    model = evaluation.model
    heading = printable(model.system.title)
    warnings = [terminal.LEAK_NOTE] if model.facts.validation == LEAKING else []
    data = {
        "subject": heading,
        "verdict": f"Write time of {heading}: {evaluation.summary()}",
        "next": f"Model: {terminal.TITLES[model.fit.kind]}, trained on "
        f"{model.facts.samples:,} samples of up to {model.facts.scales[-1][0]} nodes.",
        "warnings": warnings,
        "models": [
            {"kind": fit.kind, "title": terminal.TITLES[fit.kind]} for fit in _models(model)
        ],
        "sets": [_set(one) for one in evaluation.sets if len(one.measured)],
        "limits": [limits.CLOSE, limits.FAIR],
        "level": model.calibration.level,
        "variability": _thin(evaluation.variability.ratios),
        "convergence": [list(step) for step in evaluation.convergence],
        "sheets": [_scores(evaluation), *_learned_sheet(model)],
        "symbols": _symbols(model),
        "tuning": None,
    }
    return shell_page("write-time", title="Write time: predicted against measured", data=data)


def _models(model: WriteTimeModel) -> list[Any]:
    """The chosen model first, each kind once."""
    kinds = {fit.kind: fit for fit in reversed((model.fit, *model.beside))}
    return [kinds.pop(model.fit.kind), *reversed(kinds.values())]


def _set(one: SampleSet) -> dict[str, Any]:
    kept = np.linspace(0, len(one.measured) - 1, min(len(one.measured), MOST_DOTS)).astype(int)
    return {
        "name": one.name,
        "samples": len(one.measured),
        "measured": _round_values(one.measured[kept]),
        "predicted": [_round_values(one.predicted[kept])]
        + [_round_values(values[kept]) for values in one.beside.values()],
        "within": list(one.shares_close),
        "too_low": terminal.underestimation_text(one.underestimated),
        "stages": list(one.stages.items()),
    }


def _round_values(values: FloatArray) -> list[float | None]:
    return [short(value) for value in values.tolist()]


def _thin(values: FloatArray) -> list[float | None]:
    if len(values) <= MOST_DOTS:
        return _round_values(values)
    return _round_values(
        np.quantile(values, np.linspace(0.0, 1.0, MOST_DOTS), method="inverted_cdf")
    )


def _sheet(name: str, note: str, columns: Sequence[tuple[str, str]], rows: list[Any]) -> Sheet:
    named = [{"name": column, "kind": kind} for column, kind in columns]
    return {"title": name, "note": note, "columns": named, "rows": rows}


def _scores(evaluation: Evaluation) -> Sheet:
    """One row for each set and model."""
    rows = []
    for one in evaluation.sets:
        if len(one.measured):
            count, chosen = len(one.measured), terminal.TITLES[evaluation.model.fit.kind]
            rows.append([one.name, count, chosen, *one.shares_close])
            rows += [
                [one.name, count, terminal.TITLES[kind], *one.within_beside(kind), None]
                for kind in one.beside
            ]
    interval = f"in {evaluation.model.calibration.level:.0%} interval"
    columns = (("set", "text"), ("samples", "count"), ("model", "text"), ("within 20%", "share"),
               ("within 30%", "share"), (interval, "share"))  # fmt: skip
    return _sheet("Scores", "Share of samples whose prediction is close.", columns, rows)


def _learned_sheet(model: WriteTimeModel) -> list[Sheet]:
    rows = [list(row) for row in terminal.learned_rows(model)]
    if not rows:
        return []
    if isinstance(model.fit, StageFit):
        note = f"Loads in MB or files; stages overlap with exponent {model.fit.shape.exponent:g}."
        columns = [(name, "text") for name in terminal.STAGE_COLUMNS]
    else:
        note = "Features that the model kept."
        columns = [(name, "text") for name in terminal.FEATURE_COLUMNS]
    return [_sheet("What the model learned", note, columns, rows)]


def _symbols(model: WriteTimeModel) -> list[tuple[str, str]]:
    """The symbols of the model's loads or features, explained; all without such a table."""
    names = [cell for row in terminal.learned_rows(model) for cell in row[:2]]
    return terminal.symbols_of(names) if names else list(SYMBOLS.items())


def tuning_page(tuning: Tuning, model: WriteTimeModel) -> str:
    """Return the page of configurations that write the same bytes."""
    now, heading = tuning.now, printable(model.system.title)
    groups = terminal.group_alternatives(tuning.choices)
    data = {
        "subject": heading,
        "verdict": f"{terminal.configuration_text(now.pattern)} takes "
        f"{format_seconds(now.seconds)}; {_advice_text(groups[0][0] if groups else None)}",
        "next": f"{now.level:.0%} interval "
        f"{format_seconds(now.low)} to {format_seconds(now.high)}; "
        f"most of the time goes to {' or '.join(now.leading)}.",
        "warnings": list(now.warnings),
        "models": [],
        "sets": [],
        "sheets": [_stage_sheet(now)],
        "symbols": terminal.symbols_of(load for part in now.stages for load in part.loads),
        "tuning": {
            "now": {"seconds": now.seconds, "low": now.low, "high": now.high},
            "choices": [_choice_row(same) for same in groups],
            "moves": any(choice.data_moves for choice in tuning.choices),
            "hints": _hints(tuning),
            "advice": terminal.advice_rows(tuning.advice),
        },
    }  # fmt: skip
    return shell_page("write-time", title="Write time: better configurations", data=data)


def _advice_text(best: Alternative | None) -> str:
    if best is None or best.speedup <= 1.0:
        return "no configuration is faster"
    name = (
        f"{terminal.configuration_text(best.estimate.pattern)} is {best.speedup:.2f} times faster"
    )
    return name if best.clear else f"none is clearly faster: {name}, within error"


def _choice_row(same: list[Alternative]) -> list[Any]:
    first, pattern = same[0], same[0].estimate.pattern
    clear = "yes" if first.clear else "within error"
    shape = [
        pattern.nodes,
        pattern.cores_per_node,
        pattern.burst_bytes,
        terminal.stripe_counts(same),
    ]
    predicted = [first.estimate.seconds, first.estimate.low, first.estimate.high]
    return [terminal.configuration_text(pattern), *shape, *predicted, first.speedup, clear]


def _stage_sheet(now: Estimate) -> Sheet:
    rows = [
        [*terminal.stage_names(part), part.seconds, part.seconds / now.seconds]
        for part in now.stages
    ]
    columns = (("stage", "text"), ("load", "text"), ("time", "seconds"), ("share", "share"))
    return _sheet("Where the time goes", "", columns, rows)


def _hints(tuning: Tuning) -> list[list[str]]:
    if not tuning.choices or tuning.choices[0].speedup < 1.0 + limits.SAME:
        return []
    return [[hint.middleware, hint.where, hint.listed] for hint in tuning.choices[0].hints]
