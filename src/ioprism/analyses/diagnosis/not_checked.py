"""Causes that a trace cannot show, and what to record for them."""

from __future__ import annotations

import polars as pl

from ioprism.analyses.diagnosis.observations import Observations
from ioprism.analyses.diagnosis.result import NotChecked

LAYOUT = "the files' layout: a Darshan log with the Lustre module, or --layout FILE"
HOSTS = "host names of the ranks: DXT of Darshan, DFTracer and Recorder record them"
CALLS = "single calls: export DXT_ENABLE_IO_TRACE=1"
APPLICATION = "application events: DFTracer with its Python or C annotations"


def not_checked(seen: Observations) -> tuple[NotChecked, ...]:
    """List what the trace has too little detail for."""
    missing = []
    if not seen.files.filter(pl.col("targets").list.len() > 0).height:
        missing += [NotChecked(c, LAYOUT) for c in ("slow-target", "hot-target", "few-targets")]
    if not seen.hosts and len(seen.rank_numbers) > 1:
        missing.append(NotChecked("slow-node", HOSTS))
    missing.append(NotChecked("no-prefetch", APPLICATION))
    return tuple(missing)


COUNTERS_CANNOT = (
    "interference", "slow-node", "misalignment", "shared-file-contention", "random-access",
)  # fmt: skip


def not_checked_in_counters(*, layout: bool, heat: bool) -> tuple[NotChecked, ...]:
    """List what counters alone cannot show, and what heat maps add to them."""
    missing = [
        NotChecked(code, CALLS) for code in COUNTERS_CANNOT if code != "interference" or not heat
    ]
    if not layout:
        missing += [NotChecked(c, LAYOUT) for c in ("slow-target", "hot-target", "few-targets")]
    return tuple(missing)
