"""Tables are read by ioprism's column names, or by those that a TOML file gives."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ioprism import BrokenTraceError, convert, read
from ioprism.formats.tables import reader
from tests.conftest import ROOT

SAMPLE = ROOT / "tests/data/recorder/v2.4.0-mpiio_coll"
KEPT = ["start", "end", "rank", "layer", "operation", "function", "offset", "bytes", "collective"]


def write_table(table: pl.DataFrame, path: Path, suffix: str) -> None:
    if suffix == "csv":
        table.write_csv(path)
    elif suffix == "jsonl":
        table.write_ndjson(path)
    else:
        table.write_parquet(path)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_events_written_as_a_table_come_back(tmp_path: Path, suffix: str) -> None:
    trace = read(SAMPLE)
    csv, path = tmp_path / "a.csv", tmp_path / f"b[1].{suffix}"
    convert(trace, csv)
    table = pl.read_csv(csv)
    write_table(table, path, suffix)
    again = read(path)

    assert again.format == "table"
    assert again.events().select(KEPT).equals(trace.events().select(KEPT))
    assert sorted(again.files["path"]) == sorted(trace.files["path"])
    assert again.job.ranks == 4


def described(
    tmp_path: Path, toml: str, table: str = "t0,dt,op,name,n\n1,2,R,/a,5\n3,4,W,,6\n"
) -> Path:
    (tmp_path / "data.csv").write_text(table)
    path = tmp_path / "data.toml"
    path.write_text(toml)
    return path


GOOD = """
[table]
path = "data.csv"
time_unit = "ms"
[columns]
start = "t0"
duration = "dt"
operation = "op"
file = "name"
bytes = "n"
[operations]
R = "read"
W = "write"
"""


def test_a_description_names_columns_units_and_words(tmp_path: Path) -> None:
    trace = read(described(tmp_path, GOOD))
    events = trace.events()

    assert events["start"].to_list() == pytest.approx([0.001, 0.003])
    assert events["end"].to_list() == pytest.approx([0.003, 0.007])
    assert events["operation"].to_list() == ["read", "write"]
    assert events["file"].to_list() == [0, None]
    assert events["bytes"].to_list() == [5, 6]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('time_unit = "ms"', 'time_unit = "weeks"', "is not one of s, ms"),
        ('R = "read"', 'R = "reading"', "'reading' is not one of read"),
        ('file = "name"', 'fiel = "name"', "'fiel' is not one of start"),
        ('path = "data.csv"', 'path = "other.csv"', "does not exist"),
        ('start = "t0"', 'start = "t1"', "it has only the columns"),
    ],
)
def test_a_wrong_description_says_what_is_wrong(
    tmp_path: Path, old: str, new: str, why: str
) -> None:
    with pytest.raises(BrokenTraceError, match=why):
        read(described(tmp_path, GOOD.replace(old, new)))


def test_rows_without_sound_times_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("start,end,function,bytes\n0,1,read,4\n5,2,read,4\nx,9,read,4\n1,2,write,-7\n")
    trace = read(path)
    events = trace.events()

    assert events["bytes"].to_list() == [4, None]
    assert events["operation"].to_list() == ["read", "write"]
    assert trace.completeness.warnings == (
        "a.csv: 2 calls with impossible times left out",
        "a.csv: 1 call with an impossible size, which is left out",
    )


def test_times_since_1970_begin_at_zero(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("start,duration,operation,pid\n1700000000,1,read,5\n1700000002,1,write,6\n")
    trace = read(path)

    assert trace.events()["start"].to_list() == [0.0, 2.0]
    assert trace.job.ranks == 2


def test_parquet_is_read_in_parts_by_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 1000
    table = pl.select(start=pl.int_range(count) / 10).with_columns(
        end=pl.col("start") + 0.05, operation=pl.lit("write"), bytes=pl.int_range(count)
    )
    path = tmp_path / "a.parquet"
    table.write_parquet(path, row_group_size=100)
    whole = read(path).events()
    monkeypatch.setattr(reader, "ROWS_PER_PARTITION", 300)
    cut = read(path)

    assert len(cut.partitions) == 4
    assert cut.events().equals(whole)
    assert whole["bytes"].to_list() == list(range(count))
