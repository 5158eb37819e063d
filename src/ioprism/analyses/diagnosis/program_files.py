"""Files that belong to programs rather than to their data: who starts a program needs them."""

from __future__ import annotations

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.calls import WRITE, Flags
from ioprism.analyses.diagnosis.situation import Situation
from ioprism.model.usage import OF_PROGRAMS, OF_SYSTEM


def of_programs(files: pl.DataFrame) -> Flags:
    """Which files are parts of programs and of the system, by their names."""
    path = pl.col("path").fill_null("")
    named = path.str.contains(OF_SYSTEM) | path.str.contains(OF_PROGRAMS)
    return files.select(named)["path"].to_numpy().copy()


def program_seconds(at: Situation) -> float:
    """Held-up seconds in which programs and their libraries are loaded."""
    share = at.own[program_calls(at)].sum() / max(float(at.own.sum()), 1e-12)
    return float(at.held.sum() * share)


def program_calls(at: Situation) -> Flags:
    """Calls on files of programs and of the system that nobody writes."""
    known = at.calls.file >= 0
    if not known.any():
        return known
    flags = of_programs(at.seen.files)
    flags[at.calls.file[known & (at.calls.kind == WRITE)]] = False
    return np.asarray(known & flags[np.maximum(at.calls.file, 0)])
