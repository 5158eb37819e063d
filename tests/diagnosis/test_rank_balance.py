"""Ranks that do more than others are named, whatever a trace says of how many there are."""

from __future__ import annotations

import pytest

from ioprism.diagnosis.rank_balance import RankTable, unbalanced_ranks


@pytest.mark.parametrize(("last", "heavy"), [(10, []), (100, [3])])
@pytest.mark.parametrize("ranks", [2, 4])
def test_more_ranks_may_be_seen_than_the_job_is_said_to_have(
    ranks: int, last: int, heavy: list[int]
) -> None:
    sizes = dict(enumerate([10, 10, 10, last]))
    moved = {rank: {"write": size} for rank, size in sizes.items()}

    table = RankTable(ranks, moved, moved, {rank: float(size) for rank, size in sizes.items()})

    assert unbalanced_ranks(table, beyond=0.1) == heavy
