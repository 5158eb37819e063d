"""Every command and every line of Python on the page about other tools works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ioprism.cli import main
from tests.conftest import ROOT, TEST_DATA

PAGE = (ROOT / "docs/how-to/migrate.md").read_text()
COMMANDS = [line for line in PAGE.splitlines() if line.startswith("ioprism ")]
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, log in {"run41": "e_mpiio_collective", "run42": "a_ckpt_fpp_period5s"}.items():
        content = (TEST_DATA / f"darshan/{log}.darshan").read_bytes()
        (tmp_path / f"{name}.darshan").write_bytes(content)
    (tmp_path / "traces").mkdir()
    trace = (TEST_DATA / "dftracer/v2.2.0-ns.pfw").read_bytes()
    (tmp_path / "traces/t-6eabd8706343d1df-preload.pfw").write_bytes(trace)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_answer(command: str) -> None:
    program, *arguments = shlex.split(command)
    done = CliRunner().invoke(main, arguments)

    assert program == "ioprism"
    assert done.exit_code == 0, done.output


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_run(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    known: dict[str, Any] = {}
    exec(program, known)

    assert "posix" in capsys.readouterr().out
    assert known["largest"].shape == (5, 2)


def test_options_in_the_tables_exist() -> None:
    offered = {
        option
        for name in ("bottlenecks", "period", "insights", "convert", "report", "rules")
        for parameter in (main.get_command(None, name) or main).params  # type: ignore[arg-type]
        for option in parameter.opts
    }
    ours = [row.split("|")[2] for row in PAGE.splitlines() if row.startswith("| ")]
    used = {word for cell in ours for word in re.findall(r"(?<=[` ])--[a-z-]+", cell)}

    assert len(COMMANDS) > 15
    assert used <= offered
