"""Turn a Recorder folder into a trace."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import polars as pl

from ioprism.formats.clocks import align_clocks
from ioprism.formats.reading import Reading
from ioprism.formats.recorder.events import RecorderPartition, Vocabulary, vocabulary
from ioprism.formats.recorder.layout import (
    ALL_SIGNATURES,
    SIGNATURES,
    TraceLayout,
    blobs,
    broken,
    is_recorder,
    read_layout,
    read_section,
)
from ioprism.formats.recorder.signatures import (
    Signature,
    read_old_rank,
    read_old_start,
    read_signatures,
)
from ioprism.formats.recorder.streams import Grammars, last_end, read_grammars, read_ticks
from ioprism.model.files import file_table
from ioprism.model.schema import PROCESSES
from ioprism.model.trace import Completeness, Job, Trace, Warn

RANKS_TOGETHER = 8  # in one partition


class RecorderReader:
    """Reads the folders that Recorder 2.0 and later write."""

    name = "recorder"
    title = "Recorder traces (a folder with recorder.mt or recorder.dat)"
    tells = frozenset({"calls", "metadata", "offsets", "ranks", "files", "collective", "layers"})

    def __init__(self, reading: Reading | None = None) -> None:
        self.reading = reading or Reading()

    def recognises(self, source: Path) -> bool:
        """Whether the folder holds a Recorder trace. Never raises."""
        try:
            return source.is_dir() and is_recorder(source)
        except OSError:
            return False

    def read(self, source: Path) -> Trace:
        """Read signatures and grammars now; calls are unfolded when asked for."""
        try:
            return _RecorderContent(read_layout(source)).trace(self.reading.clock_offsets)
        except (OSError, struct.error) as error:
            raise broken(source, f"a file cannot be read ({error})") from error


@dataclass(frozen=True)
class _RecorderContent:
    layout: TraceLayout
    completeness: Completeness = field(default_factory=Completeness)
    paths: dict[str, int] = field(default_factory=dict)  # row of the file table

    def trace(self, clock_offsets: Mapping[str, float] | None) -> Trace:
        layout, warn = self.layout, self.completeness.warn
        old = layout.generation == "A"
        grammars = None if old else read_grammars(layout, warn)
        words = self._vocabularies()
        if not words:
            raise broken(layout.folder, "no call signature can be read")
        shifts = self._shifts() if old else {}
        start = min(shifts.values(), default=layout.start)
        shifts = {rank: begun - start for rank, begun in shifts.items()}
        if layout.relative_offsets:
            warn("Recorder ran with intra-process pattern recognition: offsets are not absolute")
        partitions = tuple(self._partitions(grammars, words, shifts))
        spans = self._spans(shifts)
        runtime = max((end for _, end in spans.values()), default=0.0)
        trace = Trace(
            format=RecorderReader.name,
            paths=(layout.folder,),
            job=Job(
                ranks=layout.ranks,
                start_time=start or None,
                end_time=start + runtime if start else None,
                runtime=runtime,
                metadata={"recorder_generation": layout.generation},
            ),
            partitions=partitions,
            load_files=lambda: file_table(list(self.paths)),
            load_processes=partial(process_table, layout.ranks),
            completeness=self.completeness,
        )
        # Recorder names no nodes: each rank's clock may be another one.
        clocks = trace.processes.select("process", clock=pl.format("rank{}", "rank"))
        return align_clocks(trace, spans, clock_offsets, clocks)

    def _spans(self, shifts: dict[int, float]) -> dict[str, tuple[float, float]]:
        """First and last time of every rank, in seconds since the trace's start."""
        spans = {}
        for rank in range(self.layout.ranks):
            try:
                begin, end = self._span(rank)
            except (OSError, struct.error):
                continue  # what is missing is reported when events are read
            if end > 0:
                shift = shifts.get(rank, 0.0)
                spans[f"rank{rank}"] = shift + begin, shift + end
        return spans

    def _span(self, rank: int) -> tuple[float, float]:
        if self.layout.generation == "A":
            stream, _ = read_old_rank(self.layout, rank, lambda _: None)
            return float(stream.start[:1].sum()), float(stream.end.max(initial=0.0))
        ticks = read_ticks(self.layout, rank)
        resolution = self.layout.resolution
        return float(ticks[:1, 0].sum()) * resolution, last_end(ticks, resolution)

    def _vocabularies(self) -> dict[int, Vocabulary]:
        if self.layout.shared:
            return {-1: vocabulary(self.signatures(-1), self.paths)}
        vocabularies = {}
        for rank in range(self.layout.ranks):
            try:
                signatures = self.signatures(rank)
            except OSError as error:
                self.completeness.warn(
                    f"rank {rank} cannot be read ({error.strerror or error}); its calls are missing"
                )
                continue
            vocabularies[rank] = vocabulary(signatures, self.paths)
        return vocabularies

    def signatures(self, rank: int) -> Mapping[int, Signature]:
        """Return the signatures of a rank, or of all ranks (-1)."""
        layout, warn = self.layout, _with_rank(self.completeness.warn, rank)
        if layout.generation == "A":
            return read_old_rank(layout, rank, warn)[1]
        section = layout.section(ALL_SIGNATURES if rank < 0 else SIGNATURES, rank)
        data = read_section(section) if layout.generation == "B" else next(blobs(section), b"")
        return read_signatures(data, layout.functions, wide=layout.wide_functions, warn=warn)

    def _shifts(self) -> dict[int, float]:
        starts = {}
        for rank in range(self.layout.ranks):
            try:
                start = read_old_start(self.layout, rank)
            except (OSError, struct.error):
                self.completeness.warn(f"rank {rank} does not say when it started")
                continue
            if 0 < start < 2**40:
                starts[rank] = start
        return starts

    def _partitions(
        self, grammars: Grammars | None, words: dict[int, Vocabulary], shifts: dict[int, float]
    ) -> Iterator[RecorderPartition]:
        for first in range(0, self.layout.ranks, RANKS_TOGETHER):
            ranks = range(first, min(first + RANKS_TOGETHER, self.layout.ranks))
            own = {rank: words[rank] for rank in (-1, *ranks) if rank in words}
            yield RecorderPartition(self.layout, ranks, grammars, own, shifts)


def _with_rank(warn: Warn, rank: int) -> Warn:
    return warn if rank < 0 else lambda message: warn(f"rank {rank}: {message}")


def process_table(ranks: int) -> pl.DataFrame:
    """Return one process per rank."""
    row = pl.int_range(ranks, dtype=pl.UInt32, eager=True)
    return PROCESSES.conform(pl.DataFrame({"process": row, "rank": row.cast(pl.Int32)}))
