"""Keep a trace's events in memory where several passes over them are to come."""

from __future__ import annotations

from dataclasses import replace

from ioprism.model.trace import MemoryPartition, Progress, Trace

MOST_HELD = 4_000_000  # events; reading so many again would cost more than keeping them


def in_memory(trace: Trace, *, most: int = MOST_HELD, progress: Progress | None = None) -> Trace:
    """Return the trace with its events in memory, if they are few enough."""
    pieces: list[MemoryPartition] = []
    rows = 0
    for number, batch in enumerate(trace.batches(), start=1):
        pieces.append(MemoryPartition(batch.collect()))
        rows += pieces[-1].events.height
        if progress is not None:
            progress(number)
        if rows > most:
            return trace
    if not rows:
        return trace
    return replace(trace, partitions=tuple(pieces), load_files=lambda: trace.files,
                   load_processes=lambda: trace.processes)  # fmt: skip
