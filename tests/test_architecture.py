"""The folders import one way, as ARCHITECTURE.md draws them; what is imported exists."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec

from importlinter.cli import lint_imports

from tests.conftest import ROOT

IMPORT = re.compile(r"^ *from (ioprism[\w.]*) import ([\w, ]+)$", re.MULTILINE)


def test_data_flows_one_way() -> None:
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_what_benchmarks_import_exists_also_in_code_that_other_processes_run() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").rglob("*.py")]
    lines = {found for text in texts for found in IMPORT.findall(text)}
    named = {
        (module, word.split(" as ")[0].strip()) for module, n in lines for word in n.split(",")
    }

    assert len(named) > 50
    assert not {one for one in named if not _exists(*one)}


def _exists(module: str, name: str) -> bool:
    loaded = import_module(module)
    if hasattr(loaded, name):
        return True
    return hasattr(loaded, "__path__") and find_spec(f"{module}.{name}") is not None
