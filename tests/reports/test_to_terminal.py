"""Text in a terminal of any width: quantities in one piece, columns left out before they wrap."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from ioprism import Job
from ioprism.reports.to_terminal import code, name, prose, show_job, table
from ioprism.reports.to_terminal.report import split_paths


def screen(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)


def lines(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", range(20, 60))
def test_no_line_ends_within_a_quantity(width: int) -> None:
    quantities = ["2 min 58 s", "3 h 20 min", "45.9 KiB", "74.7 MiB/s", "803 µs", "5 %", "16 B"]
    console = screen(width)
    prose(console, f"It saves {', or '.join(quantities)} in 4 ranks.", indent=3)

    shown = lines(console)
    assert all(any(quantity in line for line in shown) for quantity in quantities)
    assert all(len(line) <= width and line == line.rstrip() for line in shown)


def test_lines_to_copy_are_never_folded() -> None:
    console = screen(20)
    code(console, "lfs setstripe -c 8 /scratch/project/output", indent=4)

    assert lines(console) == ["    lfs setstripe -c 8 /scratch/project/output"]


def test_a_narrow_terminal_leaves_columns_out_and_says_so() -> None:
    rows: list[list[str | Text]] = [
        [name("/scratch/run/output.h5"), "write", "1,234,567", "2 min 05 s"]
    ] * 2
    columns = ("file", "kind", "calls", "time")
    wide, narrow = screen(80), screen(40)
    table(wide, columns, rows, least=("calls", "kind"))
    table(narrow, columns, rows, least=("calls", "kind"))

    assert lines(wide)[0].split() == ["file", "kind", "calls", "time"]
    assert "  write  1,234,567  2 min 05 s" in lines(wide)[1]
    assert lines(narrow)[0].split() == ["file", "kind", "time"]
    assert lines(narrow)[1].endswith("2 min 05 s")
    assert lines(narrow)[-1].strip() == "(calls: in a wider terminal)"
    assert max(map(len, lines(narrow))) <= 40


def test_numbers_stand_to_the_right_and_words_to_the_left() -> None:
    console = screen(80)
    table(console, ("", "calls", "kind"), [["a", "1", "read"], ["b", "1,000", "read and write"]])

    assert lines(console) == [
        "     calls  kind",
        "  a      1  read",
        "  b  1,000  read and write",
    ]


def test_the_first_line_says_which_log_and_which_job() -> None:
    job = Job(ranks=4, executable="/opt/bin/simulate -n 3", runtime=75.0, start_time=1.7e9)
    console = screen(100)
    show_job(console, job, [Path("/logs/run42.darshan")], hosts=2)

    assert lines(console) == [
        "run42.darshan · simulate · 4 ranks on 2 nodes · 2023-11-14 22:13 UTC · 1 min 15 s"
    ]


def test_many_and_long_names_of_logs_are_shortened() -> None:
    console = screen(100)
    show_job(console, Job(), [Path("x" * 90), Path("b"), Path("c"), Path("d")])

    assert lines(console) == [f"{'x' * 23}…{'x' * 24}, b and 2 more"]


@pytest.mark.parametrize(
    ("paths", "folder", "names"),
    [
        (["/scratch/run/a/x", "/scratch/run/b"], "/scratch/run", ["a/x", "b"]),
        (["/a/x", "/b/y"], "", ["/a/x", "/b/y"]),
        (["/scratch/run/a/x", None], "", ["/scratch/run/a/x", None]),
        (["/scratch/run/a", "<STDOUT>"], "", ["/scratch/run/a", "<STDOUT>"]),
    ],
)
def test_files_are_named_by_what_tells_them_apart(
    paths: list[str | None], folder: str, names: list[str | None]
) -> None:
    assert split_paths(paths) == (folder, names)
