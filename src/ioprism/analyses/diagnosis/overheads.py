"""Calls that move no data: opens, stats and closes; forcing data to storage."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ioprism.analyses.diagnosis.calls import METADATA, SYNC, Flags, Floats
from ioprism.analyses.diagnosis.contrasts import contrast_of
from ioprism.analyses.diagnosis.directories import common_directory
from ioprism.analyses.diagnosis.situation import Candidate, Situation


def find(at: Situation) -> Iterator[Candidate]:
    """Find metadata and sync calls that hold the job up."""
    yield from _frequent_sync(at)
    yield from _metadata(at)


def without(at: Situation, some: Flags, kept: Floats) -> tuple[Floats, float, float]:
    """Savings by phase, low and high, when only `kept` of these calls' seconds remain.

    Calls that move data then come faster after each other: they may have to wait for targets.
    """
    own = np.where(some, at.own * kept, at.own)
    chain = at.by_rank(own).max(axis=1)
    work = np.zeros(at.phases)
    if len(at.pieces.targets):
        work = at.by_target(at.queues.held).max(axis=1)
    least, most = at.queues.doubt
    after = [np.maximum(chain, work * factor) + at.waiting for factor in (most, 1.0, least)]
    saved = [np.maximum(0.0, at.held - part) for part in after]
    return saved[1], 0.93 * float(saved[0].sum()), 1.03 * float(saved[2].sum())


def _frequent_sync(at: Situation) -> Iterator[Candidate]:
    """Data is forced to storage more often than once per file and phase."""
    syncs = at.calls.kind == SYNC
    if not syncs.any():
        return
    calls = at.by_rank(syncs.astype(np.float64))
    once = np.where(calls > 1, 1 / np.maximum(calls, 1), 1.0)
    kept = once[at.seen.phase, at.calls.rank]
    saved, low, high = without(at, syncs, kept)
    files = at.calls.file[syncs & (at.calls.file >= 0)]
    culprit = {"operation": "sync"}
    if len(files):
        culprit["file"] = at.path(int(np.bincount(files).argmax()))
    yield Candidate(
        "frequent-sync", culprit, saved, low, high, 0.0,
        contrast_of(at, syncs, at.calls.moves_data, "frequent-sync"),
        {"syncs": int(syncs.sum())},
    )  # fmt: skip


def _metadata(at: Situation) -> Iterator[Candidate]:
    """Opens, stats and closes: as few as the data needs, one open for each rank."""
    some = at.calls.kind == METADATA
    if not some.any() and not at.seen.unplaced.any():
        return
    calls = np.bincount(at.calls.rank[some], minlength=at.ranks)
    kept = (1 / np.maximum(calls, 1))[at.calls.rank]
    saved, low, high = without(at, some, kept)
    files, counts = np.unique(at.calls.file[some & (at.calls.file >= 0)], return_counts=True)
    culprit: dict[str, object] = {"operation": "open"}
    directory = common_directory(at.seen.files["path"].gather(files.tolist()).to_list())
    if directory and len(files) > 2 * at.ranks:
        culprit["directory"] = directory
    yield Candidate(
        "metadata", culprit, saved, low, high, 0.0,
        contrast_of(at, some, at.calls.moves_data, "metadata"),
        {"files": len(files), "calls": int(some.sum()), "calls_per_file":
         float(np.median(counts)) if len(counts) else 0.0},
    )  # fmt: skip
