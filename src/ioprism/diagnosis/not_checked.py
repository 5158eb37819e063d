"""Causes that a log cannot show, and what to record for them."""

from __future__ import annotations

from ioprism.diagnosis.observed import Observed
from ioprism.model.verdict import NotChecked

LAYOUT = "the files' layout: a Darshan log with the Lustre module, or --layout FILE"
FEWER_TARGETS = (
    "calls that touch fewer targets: all of these touch the same ones, so none can be compared; "
    "write a test file to each target (lfs setstripe -c 1 -i TARGET)"
)
HOSTS = "host names of the ranks: DXT of Darshan, DFTracer and Recorder record them"
PROCESSES = (
    "all processes of the job: those without I/O calls leave no trace "
    "(DFTracer: DFTRACER_DATA_DIR=all)"
)
CALLS = "per-call data: export DXT_ENABLE_IO_TRACE=1"
APPLICATION = "application events: DFTracer with its Python or C annotations"
STORAGE = "counters of calls to storage, by file: the POSIX module of Darshan"
NEED_STORAGE = (
    "small-requests", "metadata", "frequent-sync", "redundant-reads", "serial-io",
    "data-imbalance", "library-start", "slow-rank",
)  # fmt: skip
NEED_CALLS = ("misalignment", "shared-file-contention", "random-access", "redundant-writes")


def not_checked_without_storage() -> tuple[NotChecked, ...]:
    """List what a log without calls to storage cannot show."""
    below = (NotChecked(code, STORAGE) for code in NEED_STORAGE)
    return (*below, *(NotChecked(code, CALLS) for code in NEED_CALLS))


def not_checked(observed: Observed) -> tuple[NotChecked, ...]:
    """List what the log has too little detail for."""
    missing = []
    if "offsets" not in observed.detail:
        missing += [NotChecked(code, CALLS) for code in NEED_CALLS]
    if not observed.per_call and len(observed.phases) == 1 and observed.heat is None:
        missing.append(NotChecked("interference", CALLS))
    if not len(observed.files.striped_rows):
        missing += [NotChecked(c, LAYOUT) for c in ("slow-target", "hot-target", "few-targets")]
    elif len(observed.pieces.targets) > 1 and observed.pieces.group.max() == 0:
        missing.append(NotChecked("slow-target", FEWER_TARGETS))
    if not observed.hosts and observed.ranks > 1:
        missing.append(NotChecked("slow-node", HOSTS))
    if observed.per_call and observed.ranks == 1 and "counters" not in observed.detail:
        missing.append(NotChecked("serial-io", PROCESSES))
    if observed.training is None:
        missing.append(NotChecked("no-prefetch", APPLICATION))
    return tuple(missing)
