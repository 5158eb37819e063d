"""What cannot be true is left out of every trace, and counted."""

from __future__ import annotations

import gzip
import json
import math
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from ioprism.api import read
from ioprism.cli import main
from ioprism.formats.plausibility import LATEST, PlausiblePartition, gated
from ioprism.formats.tables import compressed
from ioprism.model.files import file_table
from ioprism.model.schema import EVENTS, PROCESSES
from ioprism.model.sizes import LARGEST_PLAUSIBLE
from ioprism.model.trace import Job, MemoryPartition, Trace

HEAD = "start,end,operation,file,bytes,offset,rank\n"


def trace_of(rows: Mapping[str, Sequence[object]], job: Job | None = None) -> Trace:
    table = EVENTS.conform(
        pl.DataFrame({"layer": "posix", "operation": "read", **rows}, strict=False)
    )
    return gated(
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
    assert trace.completeness.warnings == ("made: 1 calls with impossible times left out",)


@pytest.mark.parametrize("size", [-1, LARGEST_PLAUSIBLE + 1])
@pytest.mark.parametrize(("column", "what"), [("bytes", "a size"), ("offset", "an offset")])
def test_a_size_that_cannot_be_is_left_out_of_its_call_and_counted(
    size: int, column: str, what: str
) -> None:
    trace = trace_of({"start": [0.0, 1.0, 2.0], "end": [1.0, 2.0, 3.0], column: [size, 7, None]})

    assert trace.events()[column].to_list() == [None, 7, None]
    assert trace.completeness.warnings == (
        f"made: 1 calls have {what} that cannot be true; it is left out",
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


def test_a_gate_crosses_process_borders() -> None:
    gate = PlausiblePartition(MemoryPartition(EVENTS.empty()), "made")

    assert pickle.loads(pickle.dumps(gate)).source == "made"


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
    assert "3 calls have a size that cannot be true" in result.stderr


def test_a_compressed_table_says_the_same_as_a_plain_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressed, "BLOCK", 1000)
    rows = "".join(f'{n},{n + 1},read,"/a,\n{n % 7}",{n},{n},{n % 3}\n' for n in range(500))
    plain, packed = tmp_path / "t.csv", tmp_path / "p.csv.gz"
    plain.write_text(HEAD + rows)
    packed.write_bytes(gzip.compress((HEAD + rows).encode()))

    assert read(packed).events().equals(read(plain).events())
    assert read(packed).files.equals(read(plain).files)


def test_a_compressed_block_of_short_lines_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressed, "BLOCK", 10)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(f"{HEAD}0,1,read\nx\n2,3,read\n".encode()))
    trace = read(tmp_path / "t.csv.gz")

    assert trace.events()["start"].to_list() == [0.0, 2.0]
    assert trace.completeness.warnings == ("t.csv.gz: 1 calls with impossible times left out",)


def test_compressed_lines_of_json_say_the_same_as_plain_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressed, "BLOCK", 1000)
    lines = "".join(
        json.dumps({"start": n, "end": n + 1, "operation": "write", "bytes": n}) + "\n"
        for n in range(300)
    )
    plain, packed = tmp_path / "t.jsonl", tmp_path / "p.jsonl.gz"
    plain.write_text(lines)
    packed.write_bytes(gzip.compress(lines.encode()))

    assert read(packed).events().equals(read(plain).events())


def test_a_compressed_table_that_is_cut_short_is_said(tmp_path: Path) -> None:
    rows = "".join(f"{n},{n + 1},read,/a{n * 7919 % 1000},{n},{n},0\n" for n in range(5000))
    whole = gzip.compress((HEAD + rows).encode())
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    trace = read(tmp_path / "t.csv.gz")

    assert 0 < trace.events().height < 5000
    assert "the compressed data are cut short or damaged" in trace.completeness.warnings[0]


def test_a_line_that_unpacks_to_too_much_is_refused_with_sizes(tmp_path: Path) -> None:
    bomb = tmp_path / "t.csv.gz"
    bomb.write_bytes(gzip.compress(HEAD.encode() + bytes(30 * 2**20)))
    result = CliRunner().invoke(main, ["characterise", str(bomb)])

    assert result.exit_code == 1
    assert "compressed bytes unpacks to more than 16,777,216 bytes" in result.stderr


MEASURED = """
import resource, sys
from pathlib import Path
from ioprism.api import read
trace = read(sys.argv[1])
rows = sum(batch.collect().height for batch in trace.batches())
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_a_table_that_unpacks_to_very_much_is_read_in_little_memory(tmp_path: Path) -> None:
    bomb = tmp_path / "t.csv.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        file.write(HEAD.encode())
        for _ in range(4):
            file.write(b"0,1,read,/a,100,0,0\n" * 250_000)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(bomb)], capture_output=True, text=True, check=True
    )
    rows, kilobytes = map(int, done.stdout.split())

    assert rows == 1_000_000
    assert kilobytes < 600_000
