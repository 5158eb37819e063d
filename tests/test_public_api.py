"""What `import ioprism` offers is what it says it offers."""

from __future__ import annotations

from pathlib import Path

import pytest

import ioprism
from tests.conftest import TEST_DATA

DATA = TEST_DATA


def test_every_public_name_can_be_used() -> None:
    for name in ioprism.__all__:
        assert getattr(ioprism, name) is not None


def test_dir_shows_the_public_names() -> None:
    assert dir(ioprism) == sorted(ioprism.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'explode'"):
        _ = ioprism.explode


def test_a_trace_is_read_and_described_in_two_lines() -> None:
    trace = ioprism.read(DATA / "darshan/a_ckpt_fpp_period5s.darshan")

    assert ioprism.characterise(trace).by_operation["write"].bytes == 1_610_613_149


def test_a_trace_that_was_kept_is_read_again(tmp_path: Path) -> None:
    trace = ioprism.read(DATA / "darshan/a_ckpt_fpp_period5s.darshan")
    ioprism.convert(trace, tmp_path / "kept")

    again = ioprism.read(tmp_path / "kept")
    assert ioprism.characterise(again) == ioprism.characterise(trace)
