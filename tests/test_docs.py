"""The documentation is true: generated pages are current, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs import manual
from docs.generate import PAGES, REFERENCE
from docs.schemas import FOLDER
from ioprism import errors
from ioprism.cli import COMMANDS
from tests.conftest import ROOT

PROSE = [
    *ROOT.glob("*.md"),
    *(path for path in (ROOT / "docs").rglob("*.md")),
    *(ROOT / "benchmarks").glob("*.md"),
]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as a new process writes them: click remembers the help options it made before."""
    folder = tmp_path_factory.mktemp("reference")
    subprocess.run(
        [sys.executable, "-m", "docs.generate", str(folder), str(folder / "schemas")],
        cwd=ROOT,
        check=True,
        timeout=120,
    )
    return folder


@pytest.mark.parametrize("name", [*sorted(PAGES), manual.NAME])
def test_generated_pages_are_current(name: str, generated: Path) -> None:
    written = (REFERENCE / name).read_text(encoding="utf-8")

    assert written == (generated / name).read_text(encoding="utf-8"), "run `make docs`"


def test_shipped_schemas_are_current(generated: Path) -> None:
    made = {path.name: path.read_text(encoding="utf-8") for path in generated.glob("schemas/*")}

    assert made == {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*")}, (
        "run `make docs`"
    )


@pytest.mark.parametrize("page", PROSE, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), target


def test_every_error_is_drawn_in_the_tree() -> None:
    names = [
        name
        for name, thing in vars(errors).items()
        if isinstance(thing, type) and issubclass(thing, errors.IoprismError)
    ]

    assert errors.__doc__ is not None
    for name in names:
        assert name in errors.__doc__


def test_every_command_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    for command in COMMANDS:
        assert f"ioprism {command}" in readme


def test_make_targets_of_the_readme_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    for target in set(re.findall(r"`make ([a-z]+)`", readme)):
        assert f"\n{target}:" in makefile
