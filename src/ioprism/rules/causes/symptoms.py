"""Which findings each cause explains."""

from __future__ import annotations

_UNEVEN = (
    "stragglers", "rank-time-imbalance", "phase-stragglers", "unbalanced-ranks",
    "shared-file-time-imbalance",
)  # fmt: skip
_HEAVY = (
    *_UNEVEN, "rank-data-imbalance", "rank-0-heavy", "shared-file-data-imbalance",
    "file-read-imbalance", "file-write-imbalance",
)  # fmt: skip
_SMALL = (
    "small-reads", "small-writes", "small-reads-shared", "small-writes-shared", "hdf5-small-reads",
    "hdf5-small-writes", "pnetcdf-small-reads", "pnetcdf-small-writes", "no-parallel-interface",
)  # fmt: skip
_COLLECTIVE = (
    *_SMALL, "misaligned-file", "single-aggregator", "aggregators-across-nodes",
    "several-aggregators-per-node", "random-writes",
)  # fmt: skip


def explained(code: str, direction: str | None, *, of_ranks: bool) -> tuple[str, ...]:
    """Codes of the findings that a cause explains.

    One about reads says nothing of writes; one that few ranks make explains why these are slow.
    """
    other = {"read": "-writes", "write": "-reads"}.get(direction or "", "no other")
    codes = dict.fromkeys((*SYMPTOMS.get(code, ()), *(_UNEVEN if of_ranks else ())))
    return tuple(one for one in codes if other not in one)


SYMPTOMS: dict[str, tuple[str, ...]] = {
    "slow-target": (*_UNEVEN, "target-contention", "file-system-weather"),
    "slow-node": _UNEVEN,
    "slow-rank": _UNEVEN,
    "hot-target": (*_UNEVEN, "target-imbalance", "single-target", "target-contention"),
    "few-targets": ("single-target", "target-contention", "target-imbalance"),
    "data-imbalance": _HEAVY,
    "serial-io": (*_HEAVY, "no-parallel-interface", "single-process"),
    "few-aggregators": (*_HEAVY, "single-aggregator"),
    "collective-not-aggregated": _COLLECTIVE,
    "read-modify-write": ("read-after-write", "more-bytes-read", *_COLLECTIVE),
    "small-requests": _SMALL,
    "misalignment": ("misaligned-file",),
    "shared-file-contention": (*_SMALL, "misaligned-file"),
    "random-access": ("random-reads", "random-writes", "many-seeks", *_SMALL),
    "redundant-reads": ("redundant-reads", "more-bytes-read"),
    "metadata": ("metadata-heavy", "tiny-files", *_SMALL),
    "frequent-sync": ("sync-storm",),
    "interference": ("file-system-weather", "phase-stragglers"),
    "library-start": ("metadata-heavy", "tiny-files", "redundant-reads"),
    "no-prefetch": ("hideable-io", "small-reads", "random-reads"),
}
