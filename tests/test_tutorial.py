"""Every tutorial works as it is printed, and ends with a fixed job; only installing is left out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import ioprism
from tests.conftest import ROOT

TUTORIALS = ROOT / "docs/tutorial"
BLOCK = re.compile(
    r"(?:^Save this as `([\w.]+)`.*?)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
INSTALLING = ("python3 -m venv", "pip install")
pytestmark = pytest.mark.skipif(
    find_spec("dftracer") is None, reason="dftracer, which the tutorials record with, is missing"
)


def script(page: str) -> tuple[str, list[str]]:
    """What a reader types, as one shell script, and the lines that the page shows of the output."""
    commands, shown = [], []
    for name, language, text in BLOCK.findall(page):
        if name:
            commands.append(f"cat > {name} <<'END OF FILE'\n{text}END OF FILE\n")
        elif language == "text":
            shown += text.splitlines()
        elif language == "python":
            commands.append(f"python3 - <<'END OF FILE'\n{text}END OF FILE\n")
        else:
            typed = text.splitlines(keepends=True)
            commands += [line for line in typed if not line.startswith(INSTALLING)]
    return "".join(commands), shown


def followed(name: str, folder: Path) -> str:
    """Follow a tutorial in a folder whose environment is this one; return what it printed."""
    commands, shown = script((TUTORIALS / name).read_text(encoding="utf-8"))
    (folder / "venv").symlink_to(sys.prefix)
    plain = {key: value for key, value in os.environ.items() if not key.startswith("DFTRACER")}
    done = subprocess.run(
        ["sh", "-e"], input=f". venv/bin/activate\n{commands}", env={**plain, "COLUMNS": "200"},
        cwd=folder, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    for line in shown:  # in this order
        assert line in words
        words = words.partition(line)[2]
    return done.stdout


def causes(folder: Path) -> list[str]:
    return [cause.code for cause in ioprism.diagnose(ioprism.read(folder)).causes]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("first-steps.md", "small-requests"),
        ("train-a-model.md", "no-prefetch"),
        ("a-workflow.md", "metadata"),
    ],
)
def test_a_tutorial_ends_with_a_fixed_job(name: str, code: str, tmp_path: Path) -> None:
    followed(name, tmp_path)

    assert causes(tmp_path / "traces/before")[0] == code
    assert code not in causes(tmp_path / "traces/after")
    assert (tmp_path / "before.html").stat().st_size > 100_000


def test_every_tutorial_is_followed_and_begins_with_record() -> None:
    pages = {path.name: path.read_text(encoding="utf-8") for path in TUTORIALS.glob("*.md")}

    assert set(pages) == {"first-steps.md", "train-a-model.md", "a-workflow.md"}
    assert [name for name, page in pages.items() if "venv/bin/activate" in page] == [
        "first-steps.md"
    ]
    # The loop chooses in its code which functions DFTracer records.
    pages["README.md"] = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, page in pages.items():
        recorded = "ioprism record" if name != "train-a-model.md" else "DFTRACER_ENABLE"
        assert page.index(recorded) < page.index("ioprism diagnose")
        assert "ioprism report" in page
