"""Read the latency log of one fio job: `fio --write_lat_log=NAME --log_offset=1`.

Each line is a request: milliseconds when it was done, nanoseconds that it took, direction
(0 read, 1 write), bytes, offset; newer versions add the priority.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from ioprism import (
    EVENTS,
    PROCESSES,
    BrokenTraceError,
    Job,
    MemoryPartition,
    Trace,
    file_table,
)

_LINE = re.compile(rb"\d+, \d+, [012], \d+, \d+(, \d+)*\r?\n")
_DIRECTIONS = {0: "read", 1: "write"}
_COLUMNS = ("done", "took", "direction", "bytes", "offset")


class FioReader:
    """Reads `NAME_lat.N.log`."""

    name = "fio"
    title = "fio latency log (NAME_lat.N.log)"
    tells = frozenset({"calls", "offsets"})

    def recognises(self, source: Path) -> bool:
        """Whether the first line is a request. Never raises."""
        if not source.is_file():
            return False
        with source.open("rb") as file:
            return _LINE.match(file.readline(200)) is not None

    def read(self, source: Path) -> Trace:
        """Read all requests; a log has one process and one file."""
        events = _events(_table(source))
        processes = PROCESSES.conform(
            pl.DataFrame({"process": [0], "rank": [0], "application": ["fio"]})
        )
        return Trace(
            format=self.name,
            paths=(source,),
            job=Job(ranks=1, runtime=events["end"].to_numpy().max(), executable="fio"),
            partitions=(MemoryPartition(events),),
            load_files=lambda: file_table([source.name.partition("_lat")[0]]),
            load_processes=lambda: processes,
        )


def _table(source: Path) -> pl.DataFrame:
    try:
        table = pl.read_csv(source, has_header=False, infer_schema=False)
        named = dict(zip(table.columns, _COLUMNS, strict=False))
        return table.select(pl.col(named).str.strip_chars().cast(pl.Int64)).rename(named)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise BrokenTraceError(
            f"a line is not that of a fio log ({error}).\nHint: record again with --log_offset=1.",
            source=source,
        ) from error


def _events(requests: pl.DataFrame) -> pl.DataFrame:
    """Requests as events: seconds from the start of the first one on."""
    end = pl.col("done") / 1e3
    start = end - pl.col("took") / 1e9
    known = requests.filter(pl.col("direction").is_in(_DIRECTIONS)).with_columns(
        start=start, end=end
    )
    begin = known["start"].min()
    return EVENTS.conform(
        known.select(
            pl.col("start", "end") - begin,
            pl.col("offset", "bytes"),
            rank=0,
            process=0,
            file=0,
            layer=pl.lit("posix"),
            operation=pl.col("direction").replace_strict(_DIRECTIONS, return_dtype=pl.String),
            function=pl.col("direction").replace_strict(_DIRECTIONS, return_dtype=pl.String),
        ).sort("start")
    )
