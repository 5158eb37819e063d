"""Predict how long file-per-process writes take: the functions of `ioprism write-time`."""

from __future__ import annotations

from ioprism.model.samples import Run, Sample, WritePattern
from ioprism.write_time.estimate import Estimate, PhaseEstimate
from ioprism.write_time.evaluation import Evaluation
from ioprism.write_time.model import WriteTimeModel
from ioprism.write_time.sampling import PlanSettings, SamplingProgress, SessionLimits
from ioprism.write_time.steps import (
    Imported,
    SamplingPlan,
    compare,
    estimate,
    evaluate,
    figure,
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
from ioprism.write_time.training_data import TrainingSettings
from ioprism.write_time.tuning import Tuning, TuningLimits

__all__ = [
    "Estimate",
    "Evaluation",
    "Imported",
    "PhaseEstimate",
    "PlanSettings",
    "Run",
    "Sample",
    "SamplingPlan",
    "SamplingProgress",
    "SessionLimits",
    "System",
    "TrainingSettings",
    "Tuning",
    "TuningLimits",
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
