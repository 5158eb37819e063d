"""Plain text with FTIO's names is recognised and read without a description."""

from __future__ import annotations

from pathlib import Path

import pytest

import ioprism
from ioprism import BrokenTraceError

LISTS = """avg_thruput_mib: [100.0, 100.0, 100.0]
start_t_micro: [0, 10000000, 20000000]
end_t_micro: [2000000, 12000000, 22000000]
total_bytes: 15000
"""
COLUMNS = """t_rank_s t_rank_e b_rank_avr
0.0 2.0 1e8
10.0 12.0 1e8
"""


@pytest.mark.parametrize(("text", "moved"), [(LISTS, 600 * 2**20), (COLUMNS, 400_000_000)])
def test_lists_and_columns_are_read(tmp_path: Path, text: str, moved: int) -> None:
    path = tmp_path / "run.txt"
    path.write_text(text)

    trace = ioprism.read(path)

    assert trace.format == "ftio-text"
    assert trace.events()["bytes"].sum() == moved


def test_columns_of_different_lengths_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text(LISTS.replace("[100.0, 100.0, 100.0]", "[100.0]"))

    with pytest.raises(BrokenTraceError, match="1 rates do not fit 3 starts"):
        ioprism.read(path)
