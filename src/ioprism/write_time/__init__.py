"""Predict how long file-per-process writes take: the functions of `ioprism write-time`."""

from __future__ import annotations

from ioprism.model.samples import Run, Sample, WritePattern
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
