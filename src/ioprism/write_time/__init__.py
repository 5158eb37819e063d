"""Predict how long file-per-process writes take: the functions of `ioprism write-time`."""

from __future__ import annotations

from collections.abc import Sequence

from ioprism.model.samples import Run, Sample, WritePattern
from ioprism.reports.figures.catalogue import (
    COLUMN_WIDTH,
    StaticFigure,
    draw_figure,
    require_matplotlib,
)
from ioprism.write_time.campaign.sampler import Limits as SessionLimits
from ioprism.write_time.campaign.sampler import Progress
from ioprism.write_time.estimate import Estimate
from ioprism.write_time.evaluation import Evaluation
from ioprism.write_time.measured_phases import Comparison
from ioprism.write_time.model import WriteTimeModel
from ioprism.write_time.preparation import TrainingSettings
from ioprism.write_time.sampling import PlanSettings
from ioprism.write_time.steps import (
    Imported,
    Planned,
    Tuning,
    compare,
    estimate,
    evaluate,
    import_runs,
    load_model,
    load_samples,
    load_system,
    plan,
    sample,
    save_model,
    train,
    tune,
)
from ioprism.write_time.system import System
from ioprism.write_time.tuning import Limits

__all__ = [
    "Comparison",
    "Estimate",
    "Evaluation",
    "Imported",
    "Limits",
    "PlanSettings",
    "Planned",
    "Progress",
    "Run",
    "Sample",
    "SessionLimits",
    "System",
    "TrainingSettings",
    "Tuning",
    "WritePattern",
    "WriteTimeModel",
    "compare",
    "estimate",
    "evaluate",
    "figure",
    "import_runs",
    "load_model",
    "load_samples",
    "load_system",
    "plan",
    "sample",
    "save_model",
    "train",
    "tune",
]


def figure(
    evaluation: Evaluation, name: str, *, width: float = COLUMN_WIDTH, kinds: Sequence[str] = ()
) -> StaticFigure:
    """Draw a figure of an evaluation for a paper; the names are those of `--figure`.

    Args:
        evaluation: what `evaluate` returns.
        name: one of predicted, errors, ratio-cdf, variability-cdf.
        width: in inches; by default one column.
        kinds: of model to draw; by default all in the model's file.

    Raises:
        UsageError: there is no such figure, or no such kind.
        MissingPackageError: matplotlib is not installed.
        FigureUnavailableError: the evaluation lacks what the figure shows.
    """
    require_matplotlib()
    from ioprism.write_time.figures import DrawnEvaluation

    drawn = DrawnEvaluation(evaluation, tuple(kinds))
    return draw_figure("write-time evaluate", name, drawn, width=width)
