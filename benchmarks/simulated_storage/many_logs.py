"""Write thousands of small logs with counters only: the calls of many runs are counted at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from benchmarks.simulated_storage.play import Recorded
from benchmarks.simulated_storage.simulate import Run, events, targets_of
from benchmarks.synthetic.darshan_content import COUNTED, FILE_ALIGNMENT, record_id
from benchmarks.synthetic.darshan_records import (
    Counters,
    LogContent,
    Lustre,
    LustreComponent,
    LustreRecord,
    Module,
)
from benchmarks.synthetic.darshan_reduce import SHARED, reduce_shared
from benchmarks.synthetic.darshan_tally import PREFIXES, tally
from benchmarks.synthetic.darshan_writer import write_log
from ioprism.model.trace import Job

AT_ONCE = 250  # runs whose calls are counted together
LAYERS = ("posix", "mpiio")  # that a program here can use


class Wanted(NamedTuple):
    """A log to be written."""

    path: Path
    run: Run
    job: Job


def write_many(logs: Iterable[Wanted]) -> int:
    """Write logs with counters and layouts; return how many."""
    written, left = 0, iter(logs)
    while batch := list(islice(left, AT_ONCE)):
        for log, content in zip(batch, _contents(batch), strict=True):
            write_log(log.path, content)
        written += len(batch)
    return written


def _contents(batch: Sequence[Wanted]) -> Iterator[LogContent]:
    sizes = [len(log.run.program.files) for log in batch]
    firsts = np.cumsum([0, *sizes])
    calls = events(_joined([log.run for log in batch], firsts[:-1].tolist()))
    ranks = np.repeat([log.run.program.ranks for log in batch], sizes)
    names = [file.path for log in batch for file in log.run.program.files]
    ids = np.array([record_id(name) for name in names], np.uint64)
    counted = {layer: _split(_records(calls, layer, ranks), ids, firsts) for layer in LAYERS}
    for number, log in enumerate(batch):
        own = slice(firsts[number], firsts[number + 1])
        modules: list[Module] = [
            Counters(COUNTED[layer][0], tables[number], COUNTED[layer][1])
            for layer, tables in counted.items()
            if number in tables
        ]
        modules += _layouts(log.run, ids[own].tolist())
        yield LogContent(log.job, dict(zip(ids[own].tolist(), names[own], strict=True)), modules)


def _joined(runs: Sequence[Run], firsts: Sequence[int]) -> Recorded:
    """All runs' calls, with file numbers that no two runs share."""
    joined = Recorded()
    for run, first in zip(runs, firsts, strict=True):
        for column in fields(Recorded):
            values = getattr(run.recorded, column.name)
            shifted = [first + file for file in values] if column.name == "file" else values
            getattr(joined, column.name).extend(shifted)
    return joined


def _records(calls: pl.DataFrame, layer: str, ranks: np.ndarray) -> pl.DataFrame:
    """Count the calls, and join what all ranks of a run share; runs differ in their ranks."""
    table = tally(calls, layer=layer, file_alignment=FILE_ALIGNMENT)
    if table.is_empty():
        return table
    sizes = pl.Series(ranks[table["file"].to_numpy()])
    prefix = PREFIXES[layer]
    parts = [
        reduce_shared(table.filter(sizes == size), prefix=prefix, ranks=size)
        for size in sizes.unique().to_list()
    ]
    return pl.concat(parts, how="diagonal").with_columns(pl.exclude("file", "rank").fill_null(0))


def _split(table: pl.DataFrame, ids: np.ndarray, firsts: np.ndarray) -> dict[int, pl.DataFrame]:
    """Each run's records, by the number of the run."""
    if table.is_empty():
        return {}
    file = table["file"].to_numpy()
    run = pl.Series("run", np.searchsorted(firsts, file, side="right") - 1)
    named = table.drop("file").insert_column(0, pl.Series("id", ids[file]))
    parts = named.with_columns(run).partition_by("run", as_dict=True, include_key=False)
    return {int(key[0]): part for key, part in parts.items()}


def _layouts(run: Run, ids: Sequence[int]) -> list[Module]:
    layouts = [
        (identifier, file.stripe_size, targets_of(run.machine, file.path, file.targets, number))
        for number, (file, identifier) in enumerate(zip(run.program.files, ids, strict=True))
    ]
    records = [
        LustreRecord(identifier, SHARED, [LustreComponent(targets, size)])
        for identifier, size, targets in layouts
        if targets is not None
    ]
    return [Lustre(records)] if records else []
