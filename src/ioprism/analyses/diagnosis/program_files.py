"""Files that belong to programs rather than to their data: who starts a program needs them."""

from __future__ import annotations

import numpy as np
import polars as pl

from ioprism.analyses.diagnosis.calls import WRITE, Flags
from ioprism.analyses.diagnosis.situation import Situation
from ioprism.model.usage import OF_PROGRAMS

SYSTEM = r"^/(?:usr|bin|sbin|lib|lib64|etc)/"


def program_calls(at: Situation) -> Flags:
    """Calls on files of programs and of the system that nobody writes."""
    known = at.calls.file >= 0
    if not known.any():
        return known
    path = pl.col("path").fill_null("")
    of_programs = path.str.contains(SYSTEM) | path.str.contains(OF_PROGRAMS)
    flags = at.seen.files.select(of_programs)["path"].to_numpy().copy()
    flags[at.calls.file[known & (at.calls.kind == WRITE)]] = False
    return np.asarray(known & flags[np.maximum(at.calls.file, 0)])
