"""Predict how long file-per-process writes take: the functions of `ioprism write-time`."""

from __future__ import annotations

from ioprism.analyses.write_time.system import System
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
    "Imported",
    "Planned",
    "Run",
    "Sample",
    "System",
    "Tuning",
    "WritePattern",
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
