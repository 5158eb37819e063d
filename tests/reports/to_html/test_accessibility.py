"""People who cannot see the pictures, or use no mouse, get the same answers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser

from ioprism.cli import main

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "darshan"
PACKAGE = "axe-core@4.10.3"
BAD = ("serious", "critical")


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core, fetched once; it is no part of the project."""
    folder = ROOT / ".bench" / "axe-core"
    script = folder / "package" / "axe.min.js"
    if not script.exists() and shutil.which("npm"):
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=False, timeout=120)
        for archive in folder.glob("axe-core-*.tgz"):
            shutil.unpack_archive(archive, folder, filter="data")
    if not script.exists():
        reason = f"there is no axe-core; `npm pack {PACKAGE}` in .bench/axe-core brings it"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return script.read_text(encoding="utf-8")


def troubles(browser: Browser, axe: str, path: Path, scheme: str) -> list[str]:
    context = browser.new_context(
        viewport={"width": 1200, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        bypass_csp=True,
    )
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    page.evaluate(
        "() => document.querySelectorAll('details').forEach((one) => { one.open = true; })"
    )
    page.evaluate(axe)
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    context.close()
    return [
        f"{one['impact']}: {one['id']}: {node['html'][:200]} {node['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in BAD
        for node in one["nodes"][:3]
    ]


def written(path: Path, *words: str | Path) -> Path:
    done = CliRunner().invoke(main, [*map(str, words), "-o", str(path)])
    assert done.exit_code == 0, done.output
    return path


STRAGGLER, COLLECTIVE = DATA / "g_straggler_rank2.darshan", DATA / "e_mpiio_collective.darshan"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_has_no_serious_barrier(
    browser: Browser, axe: str, tmp_path: Path, scheme: str
) -> None:
    path = written(tmp_path / "report.html", "report", STRAGGLER)

    assert troubles(browser, axe, path, scheme) == []


def test_the_comparison_has_no_serious_barrier(browser: Browser, axe: str, tmp_path: Path) -> None:
    path = written(tmp_path / "compare.html", "compare", STRAGGLER, COLLECTIVE)

    assert troubles(browser, axe, path, "light") == []
