"""A job with many files is judged without a search in each of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ioprism import diagnose
from ioprism.diagnosis.checks import redundancy
from tests.diagnosis.known_rows import observed, writes

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


def test_files_of_each_rank_are_numbered_without_a_place_for_every_pair() -> None:
    ranks = 100_000  # a place for each pair would take 80 GB
    rows = writes(np.zeros(ranks), np.ones(ranks), np.arange(ranks))
    rows = replace(rows, file=np.arange(ranks))
    job = observed(rows, [(0.0, 1.0)], [1.0], runtime=1.0)

    assert job.rank_file.max() < ranks
    assert len(np.unique(job.rank_file)) == ranks


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
