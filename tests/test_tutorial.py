"""The tutorial works as it is printed; only its installation is left out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

TUTORIAL = ROOT / "docs/tutorial/first-steps.md"
SETUP = ("python3 -m venv", ". venv", "pip install")


def blocks(language: str) -> str:
    found = re.findall(
        r"^```(\w*)\n(.*?)^```$", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    return "".join(text for written_in, text in found if written_in == language)


def test_the_commands_of_the_tutorial_run_as_printed(tmp_path: Path) -> None:
    lines = blocks("").splitlines()
    commands = [line for line in lines if not line.startswith(SETUP)]
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/ioprism"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ioprism "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"

    done = subprocess.run(
        ["sh", "-e"], input="\n".join(commands), env={**os.environ, "PATH": path},
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").is_file()
    assert {line.split()[1] for line in commands} >= {"diagnose", "report"}


def test_the_python_of_the_tutorial_runs_as_printed(tmp_path: Path) -> None:
    make = [sys.executable, "-m", "ioprism", "demo", "--quiet", "--output", "demo"]
    subprocess.run(make, cwd=tmp_path, check=True, capture_output=True, timeout=120)

    told = subprocess.run(
        [sys.executable, "-c", blocks("python")],
        cwd=tmp_path, check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip

    assert float(told.stdout) > 0
