"""Names made to do harm come out of every command as text: terminal, JSON, pages and tables."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from ioprism.cli import main
from ioprism.formats.tables.export import harmless, write_table

SCRIPT = "</script><script>alert(1)</script>"
HOSTILE = (
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "\x1b]0;owned\x07\x1b[31m",
    "[red]markup[/red] [link=http://a]",
    SCRIPT,
    "<img src=x onerror=alert(1)>",
    "\u202eright-to-left\u202c",
    "a\nb,c\"d'e`${1}{{2}}%s%n",
    "&lt;script&gt;\u2028\u2029\x00\x7f\x9b31m",
    "../../../../etc/passwd",
    "é" * 300,
)
COMMANDS = (
    ["characterise"], ["report"], ["insights", "--all"], ["bottlenecks", "--views", "file,process"],
    ["phases"], ["period"],
)  # fmt: skip
SAFE = set("\n")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose every name is hostile, nested in each other."""
    rows = [
        {
            "start": 0.1 * number,
            "end": 0.1 * number + 0.05 + 0.2 * (number % 5 == 0),
            "operation": ["read", "write", "open"][number % 3],
            "function": HOSTILE[number % len(HOSTILE)],
            "file": f"/{HOSTILE[number % len(HOSTILE)]}/{HOSTILE[(number + 3) % len(HOSTILE)]}",
            "host": HOSTILE[(number + 1) % len(HOSTILE)],
            "application": HOSTILE[(number + 2) % len(HOSTILE)],
            "pid": number % 4,
            "bytes": 1000 * number,
        }
        for number in range(300)
    ]
    path = tmp_path_factory.mktemp("hostile") / "t.parquet"
    pl.DataFrame(rows).write_parquet(path)
    return path


def run(*arguments: object) -> str:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    steering = [c for c in result.output if not c.isprintable() and c not in SAFE]
    assert not steering
    return str(result.stdout)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_neither_the_terminal_nor_json_is_steered(trace: Path, command: list[str]) -> None:
    run(*command, trace)
    document = run(*command, trace, "--json")

    assert isinstance(json.loads(document), dict)


@pytest.mark.parametrize("command", ["report", "period"])
def test_a_page_has_no_script_but_its_own(trace: Path, tmp_path: Path, command: str) -> None:
    run(command, trace, "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")

    assert SCRIPT not in page and "<img src=x" not in page
    assert len(re.findall(r"<script", page)) == len(re.findall(r"</script>", page))


def cells(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    assert not [c for c in text if not c.isprintable() and c != "\n"]
    return [cell for row in csv.reader(io.StringIO(text)) for cell in row]


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_formula(cell: str) -> bool:
    return cell.lstrip().startswith(("=", "+", "-", "@")) and not is_number(cell)


def test_no_table_holds_a_formula(trace: Path, tmp_path: Path) -> None:
    run("convert", trace, tmp_path / "events.csv")
    run("bottlenecks", trace, "--views", "file,process", "--export", tmp_path / "b.csv")

    for name in ("events.csv", "b.csv"):
        assert not list(filter(is_formula, cells(tmp_path / name)))


def test_a_chrome_trace_of_hostile_names_is_read_again(trace: Path, tmp_path: Path) -> None:
    run("convert", trace, tmp_path / "t.json")

    document = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert len([event for event in document["traceEvents"] if event["ph"] == "X"]) == 300
    run("characterise", tmp_path / "t.json")


def test_hostile_servers_and_jobs_are_exported_harmlessly(tmp_path: Path) -> None:
    table = pl.DataFrame({"job": HOSTILE, "value": range(len(HOSTILE))})
    write_table(table, tmp_path / "jobs.csv")
    write_table(table, tmp_path / "jobs.parquet")

    assert not list(filter(is_formula, cells(tmp_path / "jobs.csv")))
    assert pl.read_parquet(tmp_path / "jobs.parquet").equals(table)


def test_ordinary_names_and_numbers_stay_as_they_are() -> None:
    table = pl.DataFrame({"file": ["/a-b=c", None, "é"], "bytes": [-1, 2, None]})

    assert harmless(table).equals(table)


def test_hostile_names_survive_a_store(trace: Path, tmp_path: Path) -> None:
    run("convert", trace, tmp_path / "t.store")

    assert run("characterise", tmp_path / "t.store", "--json").count("store") >= 1
