"""A job with many files is judged without a search in each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioprism import diagnose
from ioprism.diagnosis.checks import redundancy

HEADER = "start,end,process,rank,file,operation,bytes,offset,function,layer"


def test_files_without_overlapping_writes_are_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []
    search = redundancy._overwritten

    def spy(observed, mine):  # type: ignore[no-untyped-def]
        searched.append(len(mine))
        return search(observed, mine)

    monkeypatch.setattr(redundancy, "_overwritten", spy)
    diagnose(trace_of(tmp_path, twice=frozenset({3, 17})))

    assert searched == [3, 3]


def trace_of(folder: Path, *, twice: frozenset[int]) -> Path:
    """Forty files of two writes that follow each other; some get their first half again."""
    rows = []
    for file in range(40):
        offsets = (0, 4096, 1024) if file in twice else (0, 4096)
        for number, offset in enumerate(offsets):
            start = 0.01 * file + 0.001 * number
            rows.append(
                f"{start},{start + 0.0005},0,0,/scratch/f{file},write,4096,{offset},write,posix"
            )
    trace = folder / "run.csv"
    trace.write_text("\n".join([HEADER, *rows]) + "\n")
    return trace
