"""What is missing of a Recorder trace, or damaged in it, is always said."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ioprism import Trace, read
from ioprism.formats.recorder.signatures import read_records, read_signatures
from tests.conftest import TEST_DATA
from tests.formats.recorder.test_parquet_reader import part

SAMPLES = TEST_DATA / "recorder"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of a trace of version 2.4, which has files for every rank."""
    folder = tmp_path / "trace"
    shutil.copytree(SAMPLES / "v2.4.0-mpiio_coll", folder, ignore=shutil.ignore_patterns("_text"))
    return folder


def sums(trace: Trace) -> tuple[int, int]:
    events = trace.events()
    return events.height, int(events["bytes"].sum())


def test_a_sound_trace_says_nothing(copied: Path) -> None:
    trace = read(copied)

    assert sums(trace) > (0, 0)
    assert trace.completeness.whole


@pytest.mark.parametrize("name", ["1.cst", "1.cfg", "2.ts"])
def test_a_missing_file_is_said(copied: Path, name: str) -> None:
    whole = sums(read(copied))
    (copied / name).unlink()
    trace = read(copied)

    assert sums(trace) < whole
    assert not trace.completeness.whole


@pytest.mark.parametrize("inserted", [8, 3, 800])
def test_bytes_that_are_inserted_into_the_times_are_said(copied: Path, inserted: int) -> None:
    path = copied / "2.ts"
    data = path.read_bytes()
    path.write_bytes(data[:16] + bytes(inserted) + data[16:])
    trace = read(copied)
    trace.events()

    assert any("rank 2" in warning and "damaged" in warning for warning in _said(trace))


def _said(trace: Trace) -> tuple[str, ...]:
    return trace.completeness.warnings


@pytest.mark.parametrize("cut", [8, 5])
def test_times_that_are_cut_off_are_said(copied: Path, cut: int) -> None:
    path = copied / "2.ts"
    path.write_bytes(path.read_bytes()[:-cut])
    trace = read(copied)
    trace.events()

    assert any("rank 2" in warning for warning in _said(trace))


@pytest.mark.parametrize(
    ("name", "kept", "message"),
    [
        ("recorder.ts", 40, "the times of the calls of rank"),
        ("ug.cfg", 0, "the order of the calls of rank"),
        ("ug.cfg", 17, "is damaged"),
    ],
)
def test_times_or_grammars_of_all_ranks_that_are_cut_off_are_said(
    tmp_path: Path, name: str, kept: int, message: str
) -> None:
    shutil.copytree(SAMPLES / "gotcha-hdf5", tmp_path / "trace")
    path = tmp_path / "trace" / name
    path.write_bytes(path.read_bytes()[:kept])
    trace = read(tmp_path / "trace")
    trace.events()

    assert any(message in warning for warning in _said(trace)), _said(trace)


def test_sizes_beyond_all_files_are_missing_times(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "gotcha-hdf5", tmp_path / "trace")
    path = tmp_path / "trace" / "recorder.ts"
    content = path.read_bytes()
    path.write_bytes(struct.pack("<Q", 2**64 - 2**20) + content[8:])
    trace = read(tmp_path / "trace")
    trace.events()

    assert any("the times of the calls of rank" in warning for warning in _said(trace))


def test_a_signature_with_an_enormous_number_takes_no_memory() -> None:
    key = struct.pack("<QBBBi", 1, 0, 0, 1, 5) + b"/file"
    table = struct.pack("<i", 2)
    for number in (0, 2**31 - 1):
        table += struct.pack("<iiiI", number, 0, len(key), 1) + key
    said: list[str] = []
    found = read_signatures(table, ("open",), wide=False, warn=said.append)

    assert list(found) == [0]
    assert said == ["1 damaged call signature left out"]


def test_a_table_of_signatures_that_is_cut_off_is_said() -> None:
    key = struct.pack("<QBBBi", 1, 0, 0, 1, 5) + b"/file"
    table = struct.pack("<i", 2) + struct.pack("<iiiI", 0, 0, len(key), 1) + key
    said: list[str] = []
    found = read_signatures(table, ("open",), wide=False, warn=said.append)

    assert list(found) == [0]
    assert said == ["a table of call signatures is damaged; calls are missing"]


def test_a_call_whose_signature_is_missing_is_said(copied: Path) -> None:
    path = copied / "0.cst"
    data = bytearray(path.read_bytes())
    struct.pack_into("<i", data, 4, 60_000)  # the first signature's number
    path.write_bytes(data)
    trace = read(copied)
    trace.events()

    assert any("damaged call" in warning for warning in _said(trace))


@pytest.mark.parametrize("missing", [0, 1])
def test_a_part_that_the_metadata_names_and_that_is_missing_is_said(
    tmp_path: Path, missing: int
) -> None:
    for rank in range(3):
        part(rank).write_parquet(tmp_path / f"part.{rank}.parquet")
    names = b"".join(b"\x00\x0e" + f"part.{rank}.parquet".encode() for rank in range(4))
    (tmp_path / "_metadata").write_bytes(b"PAR1" + names + b"PAR1")
    (tmp_path / f"part.{missing}.parquet").unlink()

    assert _said(read(tmp_path)) == (
        f"part.{missing}.parquet is missing, and its calls with it",
        "part.3.parquet is missing, and its calls with it",
    )


def test_a_gap_in_the_numbers_of_parts_is_said_and_a_single_part_is_not(tmp_path: Path) -> None:
    for rank in (0, 2):
        part(rank).write_parquet(tmp_path / f"part.{rank}.parquet")

    assert _said(read(tmp_path)) == ("part.1.parquet is missing, and its calls with it",)
    assert _said(read(tmp_path / "part.2.parquet")) == ()


def test_a_rank_without_its_text_is_said_and_the_others_keep_their_numbers(tmp_path: Path) -> None:
    for source in (SAMPLES / "master-ckpt/_text", SAMPLES / "master-hdf5/_text"):
        if len(list(source.glob("*.txt"))) > 2:
            break
    shutil.copytree(source, tmp_path / "text")
    whole = read(tmp_path / "text")
    ranks = whole.events()["rank"].unique().to_list()
    (tmp_path / "text/1.txt").unlink()
    trace = read(tmp_path / "text")

    assert sorted(trace.events()["rank"].unique().to_list()) == sorted(set(ranks) - {1})
    assert trace.job.ranks == whole.job.ranks
    assert _said(trace)[0].startswith(f"1 of {whole.job.ranks} ranks have no file (rank 1 is")


def test_impossible_times_in_parquet_are_counted(tmp_path: Path) -> None:
    table = part(0).with_columns(
        duration=pl.Series([0.5, np.nan, 0.5, -1.0, 0.5], dtype=pl.Float32),
        size=pl.Series([0, 10, 7, 5, -9]),
    )
    table.write_parquet(tmp_path / "all.parquet")
    trace = read(tmp_path / "all.parquet")
    trace.events()

    assert _said(trace) == (
        "all.parquet: 2 calls with impossible times left out",
        "all.parquet: 1 call with an impossible size, which is left out",
    )


HEAD = struct.Struct("<BiiiB")  # as the first versions write a record


def record(status: int, function: int, text: bytes = b" a b") -> bytes:
    return HEAD.pack(status, 0, 1, 0, function) + text + b"\n"


@pytest.mark.parametrize(
    ("data", "kept", "message"),
    [
        (record(0, 0) + record(0, 9), 1, "names a function that does not exist"),
        (record(0, 0) + record(1, 5), 1, "refers to one that does not exist"),
        (record(0, 0) + record(0, 0)[:-1], 1, "the last record is cut off"),
        (record(0, 0) + b"\x00", 1, "the last record is cut off"),
    ],
)
def test_a_damaged_record_of_the_first_versions_is_said(
    data: bytes, kept: int, message: str
) -> None:
    said: list[str] = []
    found = read_records(data, ("open",), said.append)

    assert len(found) == kept
    assert len(said) == 1 and message in said[0]


def test_damaged_lines_of_text_are_counted(tmp_path: Path) -> None:
    text = (SAMPLES / "master-hdf5/_text/0.txt").read_text()
    (tmp_path / "0.txt").write_text(text + "nonsense\n\n0.1 and more\n")
    trace = read(tmp_path / "0.txt")
    trace.events()

    assert _said(trace) == ("0.txt: 2 damaged lines left out",)


def test_a_rank_that_does_not_say_when_it_began_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    shutil.copytree(SAMPLES / "master-ckpt", folder, ignore=shutil.ignore_patterns("_text"))
    (folder / "1.mt").write_bytes(b"")
    trace = read(folder)

    assert "rank 1 does not say when it started" in _said(trace)


def test_records_that_are_cut_off_between_two_are_said(tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    shutil.copytree(SAMPLES / "master-ckpt", folder, ignore=shutil.ignore_patterns("_text"))
    assert read(folder).completeness.whole
    path = folder / "2.itf"
    data = path.read_bytes()
    records: list[str] = []
    for end in range(len(data) // 2, len(data)):  # the first cut that is right behind a record
        read_records(data[:end], ("open",) * 256, records.append)
        if not records:
            break
        records.clear()
    path.write_bytes(data[:end])
    trace = read(folder)
    trace.events()

    assert any("calls of rank 2 could be read" in warning for warning in _said(trace))
