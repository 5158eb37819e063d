"""What all tests share: where the data lie, and golden files."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from ioprism.__main__ import MATRIX_THREADS, OBJECTS_BETWEEN_SEARCHES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"
TEST_DATA = ROOT / "tests" / "data"
GOLDEN = ROOT / "tests" / "golden"

os.environ.pop("COLUMNS", None)  # workers of tests may set it; commands follow it

# Containers often forbid bytecode files: every command started here would compile ioprism anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# As the command does: no threads for small matrices, and rarely a search for garbage. Workers of
# tests share the cores, so that more threads of one would only be in the way of the others.
os.environ.setdefault(MATRIX_THREADS, "1")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
gc.set_threshold(OBJECTS_BETWEEN_SEARCHES)

# A busy machine is no failure: how long an example takes is for the benchmarks.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer to write golden files anew."""
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew")


@pytest.fixture(autouse=True, scope="session")
def no_wait_for_the_disk() -> Iterator[None]:
    """Only a power failure shows whether data reached the disk, and a busy disk takes long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # refuses what is no open file, too
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The public and made traces beside the checkout; tests that need them are marked corpus."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the shared data folder is not beside this checkout")
    return SHARED_DATA


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the golden file of this name."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), "pytest --update-golden, then review"

    return compare


@pytest.fixture
def without_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine where users may not write to /dev/shm."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("multiprocessing.synchronize.SemLock.__init__", refuse)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own that is soon full."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", "size=1m", "none", str(place)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real browser without a window: Debian's Chromium."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    if program is None:
        reason = "there is no chromium; `apt-get install chromium` brings it"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    quiet = ["background-networking", "component-update", "gpu", "quic", "sync"]
    arguments = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in quiet)]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=arguments)
        yield started
        started.close()


@pytest.fixture
def screen(browser: Browser) -> Iterator[Page]:
    """An empty page; at the end no script must have failed and no request left the machine."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request", lambda request: problems.append(request.url) if _leaves(request.url) else None
    )
    yield page
    context.close()
    assert problems == []


def _leaves(url: str) -> bool:
    return not url.startswith(("file:", "data:", "blob:", "http://127.0.0.1"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip corpus tests where the data are not there."""
    if SHARED_DATA.is_dir():
        return
    skip = pytest.mark.skip(reason="the shared data folder is not beside this checkout")
    for item in items:
        if item.get_closest_marker("corpus"):
            item.add_marker(skip)


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end: do not search them for garbage again and again."""
    gc.freeze()
