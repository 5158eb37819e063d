"""The description of a job looks as it did when it was last reviewed."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from ioprism import characterise, read
from ioprism.reports import to_json
from ioprism.reports.to_terminal.report import show_characteristics
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"
LOGS = ("a_ckpt_fpp_period5s", "e_mpiio_collective", "n_hdf5_collective_write", "hostile-xss")


@pytest.mark.parametrize("name", LOGS)
def test_the_json(name: str, golden: Callable[[str, str], None]) -> None:
    found = characterise(read(DATA / f"{name}.darshan"))

    golden(f"characterise-{name}.json", to_json.dump(found.to_dict()) + "\n")


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("width", [80])
def test_the_text(name: str, width: int, golden: Callable[[str, str], None]) -> None:
    screen = io.StringIO()
    show_characteristics(
        characterise(read(DATA / f"{name}.darshan")),
        Console(file=screen, width=width, markup=False, highlight=False, emoji=False),
    )
    lines = [line.rstrip() for line in screen.getvalue().splitlines()]

    assert max(map(len, lines)) <= width
    golden(f"characterise-{name}.txt", "\n".join(lines) + "\n")
