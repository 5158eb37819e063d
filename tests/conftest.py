"""What all tests share: where the data lie."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The public and made traces beside the checkout; tests that need them are marked corpus."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the shared data folder is not beside this checkout")
    return SHARED_DATA


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip corpus tests where the data are not there."""
    if SHARED_DATA.is_dir():
        return
    skip = pytest.mark.skip(reason="the shared data folder is not beside this checkout")
    for item in items:
        if item.get_closest_marker("corpus"):
            item.add_marker(skip)
