"""The name of a converted trace says what is written, and what is not written is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from benchmarks.synthetic import checkpointing_job, synthesise
from ioprism import EndingError, NotEnoughDetailError, Trace, characterise, convert, read
from ioprism.cli import main
from tests.conftest import TEST_DATA


@pytest.fixture(scope="module")
def trace() -> Trace:
    return synthesise(checkpointing_job()).trace


@pytest.mark.parametrize("name", ["x.xlsx", "x.orc", "x.CSV.gz", "x.darshan", "x.pfw.gz", "x.PDF"])
def test_an_ending_that_promises_another_format_is_refused(
    trace: Trace, tmp_path: Path, name: str
) -> None:
    with pytest.raises(EndingError, match=r"traces are written as \.csv or \.parquet or"):
        convert(trace, tmp_path / name)

    assert not list(tmp_path.iterdir())


def test_the_command_refuses_an_ending_before_it_reads_the_trace(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["convert", str(tmp_path / "none"), str(tmp_path / "x.xlsx")])

    assert done.exit_code == 2
    assert "x.xlsx: traces are written as .csv or" in done.output


@pytest.mark.parametrize(
    ("name", "form"),
    [("kept", "store"), ("run.42", "store"), ("v1.0.Store", "store"), ("x.CSV", "table"),
     ("x.parquet", "table"), ("x.json", "chrome"), ("x.JSON.GZ", "chrome")],
)  # fmt: skip
def test_other_names_are_written_as_they_say(
    trace: Trace, tmp_path: Path, name: str, form: str
) -> None:
    convert(trace, tmp_path / name)

    assert (tmp_path / name).is_dir() == (form == "store")
    assert form == "store" or read(tmp_path / name).format == form


def test_events_are_the_same_as_csv_and_parquet(trace: Trace, tmp_path: Path) -> None:
    for name in ("x.csv", "x.parquet"):
        assert convert(trace, tmp_path / name) == [tmp_path / name]

    rows = pl.read_parquet(tmp_path / "x.parquet")
    assert rows.height == trace.events().height
    assert rows["bytes"].sum() == trace.events()["bytes"].sum()
    one, other = (characterise(read(tmp_path / f"x.{end}")).total for end in ("csv", "parquet"))
    # Text is added up block by block: the last digit of the sum may differ.
    assert replace(one, time=other.time) == other
    assert one.time == pytest.approx(other.time, rel=1e-12)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_counters_have_a_table_for_each_module_and_darshans_names(
    tmp_path: Path, ending: str
) -> None:
    log = TEST_DATA / "darshan/c_rank0_all_io.darshan"
    done = CliRunner().invoke(
        main, ["convert", str(log), str(tmp_path / f"run{ending}"), "--counters"]
    )
    modules = read(log).counters
    scan = pl.read_csv if ending == ".csv" else pl.read_parquet
    posix = scan(tmp_path / f"run-POSIX{ending}")

    assert done.exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {f"run-{name}{ending}" for name in modules}
    assert all(f"wrote {path}" in done.stderr for path in tmp_path.iterdir())
    assert posix.columns[:2] == ["file", "rank"]
    assert posix["POSIX_BYTES_WRITTEN"].sum() == modules["POSIX"]["POSIX_BYTES_WRITTEN"].sum()
    assert set(posix["file"]) == set(read(log).files["path"]) & set(posix["file"])
    assert "HEATMAP_WRITE_BIN" in scan(tmp_path / f"run-HEATMAP{ending}").columns
    again = CliRunner().invoke(
        main, ["convert", str(log), str(tmp_path / f"run{ending}"), "--counters"]
    )
    assert again.exit_code == 1
    assert "already exists" in again.output


def test_a_log_of_counters_is_not_written_as_an_empty_file(tmp_path: Path) -> None:
    log = next(
        path
        for path in sorted((TEST_DATA / "darshan").glob("*.darshan"))
        if read(path).counters and not read(path).partitions
    )
    written = convert(read(log), tmp_path / "x.csv")

    assert written
    assert not (tmp_path / "x.csv").exists()
    assert all(path.stat().st_size > 0 for path in written)


def test_nothing_to_write_is_an_error(tmp_path: Path) -> None:
    strace = read(TEST_DATA / "strace/randread_np2.strace")

    with pytest.raises(NotEnoughDetailError, match="counters"):
        convert(strace, tmp_path / "x.csv", counters=True)
