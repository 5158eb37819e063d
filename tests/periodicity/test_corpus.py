"""On the shared signals with known answers the default method keeps its promises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ioprism import period


def share_right(folder: Path, pattern: str) -> float:
    right = []
    for path in sorted(folder.glob(f"signals/{pattern}/*.npz")):
        with np.load(path) as data:
            found = period(data["time"], data["bandwidth"])
            true = float(data["period_mean"])
        if np.isnan(true):
            right.append(found is None)
        else:
            right.append(found is not None and abs(found.seconds / true - 1.0) <= 0.1)
    return float(np.mean(right))


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("pattern", "least"),
    [
        ("per_*_j0_*", 0.97),
        ("per_*_j10_*", 0.97),
        ("per_len_j[35]0_*", 0.95),
        ("per_gap_j30_*", 0.8),
        ("per_gap_j50_*", 0.6),
        ("part_*", 0.97),
        ("d0.[0246]*", 0.95),
        ("ctl_*", 0.95),
    ],
)
def test_the_share_of_right_answers_is_as_promised(
    shared_data: Path, pattern: str, least: float
) -> None:
    assert share_right(shared_data, pattern) >= least
