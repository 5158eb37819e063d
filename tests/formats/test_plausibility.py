"""What cannot be true is left out of every trace, and counted."""

from __future__ import annotations

import gzip
import math
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from ioprism import EVENTS, PROCESSES, Job, MemoryPartition, Trace, file_table
from ioprism.cli import main
from ioprism.formats.reading import check_plausibility
from ioprism.model.trace import LARGEST_PLAUSIBLE, LATEST

HEAD = "start,end,operation,file,bytes,offset,rank\n"


def trace_of(rows: Mapping[str, Sequence[object]], job: Job | None = None) -> Trace:
    table = EVENTS.conform(
        pl.DataFrame({"layer": "posix", "operation": "read", **rows}, strict=False)
    )
    return check_plausibility(
        Trace(
            format="made",
            paths=(Path("made"),),
            job=job or Job(ranks=1, runtime=10.0),
            partitions=(MemoryPartition(table),),
            load_files=lambda: file_table([]),
            load_processes=PROCESSES.empty,
        )
    )


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (math.nan, 1.0),
        (0.0, math.nan),
        (0.0, math.inf),
        (-math.inf, 1.0),
        (1.0, 0.5),
        (0.0, 1e308),
        (-LATEST, 1.0),
        (0.0, LATEST),
        (None, 1.0),
    ],
)
def test_a_call_with_impossible_times_is_left_out_and_counted(
    start: float | None, end: float
) -> None:
    trace = trace_of({"start": [0.0, start], "end": [1.0, end], "bytes": [5, 7]})

    assert trace.events()["bytes"].to_list() == [5]
    assert trace.completeness.warnings == ("made: 1 call with impossible times left out",)


@pytest.mark.parametrize("size", [-1, LARGEST_PLAUSIBLE + 1])
@pytest.mark.parametrize(("column", "what"), [("bytes", "size"), ("offset", "offset")])
def test_a_size_that_cannot_be_is_left_out_of_its_call_and_counted(
    size: int, column: str, what: str
) -> None:
    trace = trace_of({"start": [0.0, 1.0, 2.0], "end": [1.0, 2.0, 3.0], column: [size, 7, None]})

    assert trace.events()[column].to_list() == [None, 7, None]
    assert trace.completeness.warnings == (
        f"made: 1 call with an impossible {what}, which is left out",
    )


def test_the_bounds_themselves_are_plausible() -> None:
    sizes = [0, LARGEST_PLAUSIBLE]
    trace = trace_of({"start": [0.0, 5.0], "end": [0.0, 6.0], "bytes": sizes, "offset": sizes})

    assert trace.events()["bytes"].to_list() == sizes
    assert trace.completeness.whole


@pytest.mark.parametrize("runtime", [math.nan, math.inf, -1.0, 1e308])
def test_an_impossible_run_time_is_left_out_and_said(runtime: float) -> None:
    trace = trace_of({"start": [0.0], "end": [1.0]}, Job(ranks=1, runtime=runtime))

    assert trace.job.runtime is None
    assert "the job's runtime of" in trace.completeness.warnings[0]


@pytest.mark.parametrize("ranks", [-1, 2**24 + 1, 10**400])
def test_an_impossible_number_of_ranks_is_left_out_and_said(ranks: int) -> None:
    trace = trace_of({"start": [0.0], "end": [1.0]}, Job(ranks=ranks))

    assert trace.job.ranks is None
    assert "the job's number of ranks is impossible" in trace.completeness.warnings[0]


def test_a_checked_partition_can_be_sent_to_another_process() -> None:
    (partition,) = trace_of({"start": [0.0, 5.0], "end": [1.0, 4.0]}).partitions
    warnings: list[str] = []
    batches = pickle.loads(pickle.dumps(partition)).batches(warnings.append)

    assert [batch.collect().height for batch in batches] == [1]
    assert "1 call with impossible times" in warnings[0]


BAD_ROWS = ("1,nan,read,/a,1,,0", "2,inf,read,/a,1,,0", "3,1e308,read,/a,1,,0", "5,4,read,/a,1,,0")
BAD_SIZES = ("6,7,write,/a,-5,,0", "7,8,write,/a,1e308,,0", "8,9,write,/a,nan,,0")


def _csv(path: Path) -> Path:
    path.write_text(HEAD + "\n".join(["0,1,read,/a,100,0,0", *BAD_ROWS, *BAD_SIZES]))
    return path


def _gzip(path: Path) -> Path:
    path = path.with_suffix(".csv.gz")
    path.write_bytes(gzip.compress(_csv(path.with_suffix(".plain")).read_bytes()))
    return path


@pytest.mark.parametrize("make", [_csv, _gzip])
def test_a_table_of_impossible_values_is_characterised_without_nan(
    make: object, tmp_path: Path
) -> None:
    path = make(tmp_path / "t.csv")  # type: ignore[operator]
    result = CliRunner().invoke(main, ["characterise", str(path)])

    assert result.exit_code == 0
    assert "nan" not in result.stdout and "inf" not in result.stdout
    assert "4 calls with impossible times left out" in result.stderr
    assert "3 calls with an impossible size" in result.stderr
