"""Named pipes among a job's files: an open waits there for the other end, not for storage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ioprism.model.usage import EVERYONE, Usage

NAMED = re.compile(r"(?:^|[^a-z])(?:pipe|fifo)s?(?:[^a-z]|$)", re.IGNORECASE)
MESSAGES = 4096  # bytes: a pipe that processes signal each other through carries less
BEYOND = 1000  # times the log's other opens: no storage serves one file so much slower
LONG = 1.0  # seconds: shorter opens are not worth a doubt
ENDLESS = 60.0  # seconds of every open, where the log has no other opens to compare with


def without_pipes(usage: Usage, paths: Mapping[int, str] | None = None) -> Usage:
    """Leave out opens that wait for the other end of a pipe: storage has no part in them.

    A pipe is told by its name, or by what is done to it: messages and neither seeks nor stats,
    with opens that last beyond all others of the log.
    """
    if max(usage.metadata_seconds, default=0.0) < LONG:
        return usage
    opened = zip(usage.metadata_seconds, usage.opens, strict=True)
    each = [seconds / max(1, opens) for seconds, opens in opened]
    from statistics import median  # loads much, for what few logs need

    streams = _streams(usage)
    others = [time for time, stream in zip(each, streams, strict=True) if not stream]
    beyond = max(LONG, BEYOND * median(others)) if others else ENDLESS
    names = paths or {}
    told = [
        0.0 if stream and (time > beyond or _is_named(names.get(file, ""))) else spent
        for time, stream, file, spent in zip(
            each, streams, usage.file, usage.metadata_seconds, strict=True
        )
    ]
    return replace(usage, metadata_seconds=told)


def _streams(usage: Usage) -> list[bool]:
    """Whether one process does nothing to a file but pass a few bytes."""
    entries = zip(usage.rank, usage.seeks, usage.stats, usage.bytes, strict=True)
    return [
        rank != EVERYONE and seeks == stats == 0 and 0 < moved < MESSAGES
        for rank, seeks, stats, moved in entries
    ]


def _is_named(path: str) -> bool:
    return NAMED.search(path.rpartition("/")[2]) is not None
