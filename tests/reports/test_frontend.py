"""The pages' committed scripts are what their sources give; the sources pass their own checks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

FRONTEND = ROOT / "frontend"
ASSETS = ROOT / "src" / "ioprism" / "reports" / "to_html" / "assets"
PAGES = [one.name for one in (FRONTEND / "src").iterdir() if one.name != "shared"]


def run(*command: str) -> str:
    node = shutil.which("node")
    if node is None or not (FRONTEND / "node_modules").is_dir():
        pytest.skip("node or its packages are missing; `npm ci` in frontend/ brings them")
    done = subprocess.run(
        [node, *command], cwd=FRONTEND, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_building_again_gives_the_committed_files(tmp_path: Path) -> None:
    run("build.mjs", "--out", str(tmp_path))

    built = sorted(one.name for one in tmp_path.iterdir())
    assert built == sorted(f"{page}.{end}" for page in PAGES for end in ("css", "js"))
    for name in built:
        made, kept = ((place / name).read_bytes() for place in (tmp_path, ASSETS))
        assert made == kept, f"{name} is not what frontend/ gives; run `make frontend`"


def test_the_types_fit() -> None:
    run("node_modules/typescript/bin/tsc", "--noEmit")


def test_the_unit_tests_pass() -> None:
    assert "# fail 0" in run("build.mjs", "--test")


def test_the_lock_file_names_no_registry() -> None:
    lock = (FRONTEND / "package-lock.json").read_text(encoding="utf-8")

    assert '"resolved"' not in lock
    assert "registry" not in lock
