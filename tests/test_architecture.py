"""The folders import one way, as ARCHITECTURE.md draws them."""

from __future__ import annotations

from importlinter.cli import lint_imports

from tests.conftest import ROOT


def test_data_flows_one_way() -> None:
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0
