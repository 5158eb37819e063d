"""The name of a converted trace says what is written, and what is not written is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.synthetic import checkpointing_job, synthesise
from ioprism import EndingError, Trace, convert, read
from ioprism.cli import main


@pytest.fixture(scope="module")
def trace() -> Trace:
    return synthesise(checkpointing_job()).trace


@pytest.mark.parametrize(
    "name", ["x.xlsx", "x.parquet", "x.CSV.gz", "x.darshan", "x.pfw.gz", "x.PDF"]
)
def test_an_ending_that_promises_another_format_is_refused(
    trace: Trace, tmp_path: Path, name: str
) -> None:
    with pytest.raises(EndingError, match=r"traces are written as \.csv or \.json or"):
        convert(trace, tmp_path / name)

    assert not list(tmp_path.iterdir())


def test_the_command_refuses_an_ending_before_it_reads_the_trace(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["convert", str(tmp_path / "none"), str(tmp_path / "x.xlsx")])

    assert done.exit_code == 2
    assert "x.xlsx: traces are written as .csv or" in done.output


@pytest.mark.parametrize(
    ("name", "form"),
    [("kept", "store"), ("run.42", "store"), ("v1.0.Store", "store"), ("x.CSV", "table"),
     ("x.json", "chrome"), ("x.JSON.GZ", "chrome")],
)  # fmt: skip
def test_other_names_are_written_as_they_say(
    trace: Trace, tmp_path: Path, name: str, form: str
) -> None:
    convert(trace, tmp_path / name)

    assert (tmp_path / name).is_dir() == (form == "store")
    assert form == "store" or read(tmp_path / name).format == form
