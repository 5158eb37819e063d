"""The notebooks run, show something, and keep what they show small."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from docs.notebooks.__main__ import FOLDER, run

PATHS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 40_000


# The magic of a cell, and what it has to leave alone: its value and its names.
RECORDED = [
    "%load_ext ioprism",
    "%%ioprism -o before --tracer python\nopen('data', 'wb').write(b'x' * 9000)\n"
    "value = 41\nvalue + 1",
    "%%ioprism -o after --against before\nopen('data', 'wb').write(b'x' * 9000)",
    "value, ioprism.characterise(ioprism.read('before')).total.bytes",
]


def test_all_notebooks_run() -> None:
    """One after another in one kernel, which takes longer to start than they take to run."""
    notebooks = [nbformat.read(path, as_version=4) for path in PATHS]
    joined = nbformat.v4.new_notebook()
    joined.cells = [cell for notebook in notebooks for cell in notebook.cells]
    joined.cells += map(nbformat.v4.new_code_cell, RECORDED)
    for number, cell in enumerate(joined.cells):
        cell["id"] = f"cell-{number}"

    ran = run(joined)

    *_, first, second, last = ([*cell.get("outputs", ())] for cell in ran.cells)
    assert "<iframe" in first[0].data["text/html"]
    assert first[-1].data["text/plain"] == "42"
    assert "Comparison" in second[1].data["text/plain"]
    assert last[0].data["text/plain"] == "(41, 9000)"
    assert {path.stem for path in PATHS} == {"a-machine", "one-job", "two-jobs"}
    assert sum(bool(cell.get("outputs")) for cell in ran.cells) >= 10


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_what_it_shows(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", ())]

    assert len(outputs) >= 3
    assert all(output.output_type != "error" for output in outputs)
    assert path.stat().st_size < MOST_BYTES
