"""Causes that a trace cannot show, and what to record for them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ioprism.analyses.diagnosis.result import NotChecked

if TYPE_CHECKING:  # counters are diagnosed without a table library
    from ioprism.analyses.diagnosis.situation import Situation

LAYOUT = "the files' layout: a Darshan log with the Lustre module, or --layout FILE"
APART = (
    "calls that touch fewer targets: all of these touch the same ones, so none can be compared; "
    "write a test file to each target (lfs setstripe -c 1 -i TARGET)"
)
HOSTS = "host names of the ranks: DXT of Darshan, DFTracer and Recorder record them"
PROCESSES = (
    "all processes of the job: those without I/O calls leave no trace "
    "(DFTracer: DFTRACER_DATA_DIR=all)"
)
CALLS = "single calls: export DXT_ENABLE_IO_TRACE=1"
APPLICATION = "application events: DFTracer with its Python or C annotations"


def not_checked(at: Situation) -> tuple[NotChecked, ...]:
    """List what the trace has too little detail for."""
    missing, seen = [], at.seen
    if not any(seen.files["targets"].list.len().fill_null(0)):
        missing += [NotChecked(c, LAYOUT) for c in ("slow-target", "hot-target", "few-targets")]
    elif len(at.pieces.targets) > 1 and at.pieces.group.max() == 0:
        missing.append(NotChecked("slow-target", APART))
    if not seen.hosts and len(seen.rank_numbers) > 1:
        missing.append(NotChecked("slow-node", HOSTS))
    if seen.ranks == 1 and not seen.counters:
        missing.append(NotChecked("serial-io", PROCESSES))
    missing.append(NotChecked("no-prefetch", APPLICATION))
    return tuple(missing)


COUNTERS_CANNOT = (
    "interference", "slow-node", "misalignment", "shared-file-contention", "random-access",
)  # fmt: skip
BELOW = "counters of calls to storage, by file: the POSIX module of Darshan"
STORAGE_TELLS = (
    "small-requests", "metadata", "frequent-sync", "redundant-reads", "serial-io",
    "data-imbalance", "library-start",
)  # fmt: skip


def not_checked_in_counters(*, layouts: Collection[object], heat: bool) -> tuple[NotChecked, ...]:
    """List what counters alone cannot show, and what heat maps add to them.

    Args:
        layouts: the different sets of targets that files lie on.
        heat: whether there is a heat map.
    """
    missing = [
        NotChecked(code, CALLS) for code in COUNTERS_CANNOT if code != "interference" or not heat
    ]
    if not layouts:
        missing += [NotChecked(c, LAYOUT) for c in ("slow-target", "hot-target", "few-targets")]
    elif len(layouts) == 1:
        missing.append(NotChecked("slow-target", APART))
    return tuple(missing)


def not_checked_above_storage() -> tuple[NotChecked, ...]:
    """List what counters without a record of a named file's calls to storage cannot show."""
    below = (NotChecked(code, BELOW) for code in STORAGE_TELLS)
    return (*below, *not_checked_in_counters(layouts=(), heat=False))
