"""Importing the package and asking for help load no heavy library."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"numpy", "polars", "scipy", "pandas", "rich", "isal", "dask", "zmq", "pywt", "sklearn"}


def loaded_by(code: str) -> set[str]:
    show = f"{code}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import ioprism",
        "from ioprism.cli import main",
        "from ioprism.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass",
    ],
    ids=["import", "command line", "--help"],
)
def test_nothing_heavy_is_loaded(code: str) -> None:
    assert not loaded_by(code) & HEAVY


def test_loading_is_noticed_when_it_happens() -> None:
    assert "polars" in loaded_by("import ioprism; ioprism.read")
