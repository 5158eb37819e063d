"""Predict how long file-per-process writes take: the functions of `ioprism write-time`."""

from __future__ import annotations

from ioprism.analyses.write_time.estimate import Estimate
from ioprism.analyses.write_time.evaluation import Evaluation
from ioprism.analyses.write_time.measured_phases import Comparison
from ioprism.analyses.write_time.model import WriteTimeModel
from ioprism.analyses.write_time.preparation import TrainingSettings
from ioprism.analyses.write_time.sampling import PlanSettings
from ioprism.analyses.write_time.system import System
from ioprism.analyses.write_time.tuning import Limits
from ioprism.campaign.sampler import Limits as SessionLimits
from ioprism.campaign.sampler import Progress
from ioprism.model.samples import Run, Sample, WritePattern
from ioprism.pipeline.write_time import (
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
