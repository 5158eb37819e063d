"""Importing the package and asking for help load no heavy library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import TEST_DATA

HEAVY = {
    "numpy",
    "polars",
    "scipy",
    "pandas",
    "rich",
    "isal",
    "dask",
    "zmq",
    "pywt",
    "sklearn",
    "matplotlib",
}


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


OTHERS = ("write_time", "periodicity", "bottlenecks", "tmio", "dftracer", "atomic")


@pytest.mark.parametrize("command", ["insights", "diagnose"])
def test_a_small_log_loads_nothing_of_other_questions_and_formats(command: str) -> None:
    words = [command, str(TEST_DATA / "darshan" / "n_hdf5_collective_write.darshan"), "--json"]
    code = f"import ioprism.cli\nioprism.cli.main({words}, standalone_mode=False)"
    show = f"{code}\nimport sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    loaded = [name for name in done.stderr.split() if name.startswith("ioprism.")]

    assert "ioprism.formats.darshan.reader" in loaded
    assert not [name for name in loaded for other in OTHERS if other in name]


@pytest.mark.parametrize("command", ["insights", "diagnose"])
def test_counters_are_judged_and_diagnosed_without_a_table_library(command: str) -> None:
    words = [command, str(TEST_DATA / "darshan" / "l_killed_job_merged.darshan"), "--json"]
    code = f"import ioprism.cli\nioprism.cli.main({words}, standalone_mode=False)"

    assert "polars" not in loaded_by(code)


def test_the_periodicity_of_a_signal_needs_no_table_library(tmp_path: Path) -> None:
    path = tmp_path / "signal.json"
    times = [t for i in range(10) for t in (10.0 * i, 10.0 * i + 2.0)]
    path.write_text(json.dumps({"b": [1e9, 0.0] * 10, "t": times}))
    words = ["period", str(path), "--json"]
    loaded = loaded_by(f"import ioprism.cli\nioprism.cli.main({words}, standalone_mode=False)")

    assert "numpy" in loaded
    assert "polars" not in loaded


def test_loading_is_noticed_when_it_happens() -> None:
    assert "polars" in loaded_by("import ioprism; ioprism.read")
