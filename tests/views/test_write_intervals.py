"""Writes close in time form one interval; shared files are left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from ioprism import EVENTS, PROCESSES, Job, Trace, file_table, read
from ioprism.model.trace import Warn
from ioprism.views.intervals import write_intervals


class Pieces:
    """Two pieces of events."""

    def __init__(self, events: pl.DataFrame) -> None:
        self.events = events

    def batches(self, warn: Warn) -> Iterator[pl.LazyFrame]:
        del warn
        half = self.events.height // 2
        yield self.events[:half].lazy()
        yield self.events[half:].lazy()


def made_trace(rows: list[tuple[float, float, int, int, str, str, int]]) -> Trace:
    columns = ["start", "end", "rank", "file", "layer", "operation", "bytes"]
    events = pl.DataFrame(rows, schema=columns, orient="row").with_columns(process="rank")
    processes = PROCESSES.conform(
        pl.DataFrame({"process": [0, 1], "rank": [0, 1], "host": ["a", "b"]})
    )
    return Trace(
        "made", (), Job(), (Pieces(EVENTS.conform(events)),),
        load_files=lambda: file_table(["f0", "f1", "shared"]), load_processes=lambda: processes,
    )  # fmt: skip


def test_writes_of_own_files_are_merged_up_to_the_gap() -> None:
    trace = made_trace(
        [
            (0.0, 1.0, 0, 0, "posix", "write", 10),
            (0.5, 2.0, 1, 1, "posix", "write", 20),
            (2.5, 3.0, 0, 0, "posix", "write", 30),
            (0.0, 9.0, 0, 0, "mpiio", "write", 99),
            (0.0, 9.0, 0, 2, "posix", "write", 99),
            (0.0, 9.0, 1, 2, "posix", "write", 99),
            (4.0, 4.5, 0, 0, "posix", "read", 99),
            (9.0, 9.5, 1, 1, "posix", "write", 40),
        ]
    )

    found = write_intervals(trace, gap=1.0).to_dicts()

    assert found == [
        {"start": 0.0, "end": 3.0, "ranks": 2, "hosts": 2, "bytes": 60},
        {"start": 9.0, "end": 9.5, "ranks": 1, "hosts": 1, "bytes": 40},
    ]


def test_a_trace_without_writes_has_no_intervals() -> None:
    trace = made_trace([(4.0, 4.5, 0, 0, "posix", "read", 99)])

    assert write_intervals(trace, gap=1.0).is_empty()


@pytest.mark.corpus
def test_twelve_checkpoints_of_a_real_job_are_found(shared_data: Path) -> None:
    trace = read(shared_data / "darshan/made/a_ckpt_fpp_period5s.darshan")

    found = write_intervals(trace, gap=1.0)

    assert found.height == 12
    assert found["ranks"].unique().to_list() == [4]
