"""What intervals cover of others, and what they leave free."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism.model.arrays import Cover


def cover(*pairs: tuple[float, float]) -> Cover:
    start, end = np.array(pairs, float).reshape(-1, 2).T
    return Cover(start, end)


def test_overlapping_intervals_count_once() -> None:
    assert cover((0, 2), (1, 3), (5, 6)).seconds == 4


def test_covered_parts_of_an_interval_add_up() -> None:
    busy = cover((1, 2), (3, 5))

    inside = busy.within(np.array([0.0, 1.5, 2.0, 6.0]), np.array([10.0, 4.0, 3.0, 7.0]))

    assert inside.tolist() == [3.0, 1.5, 0.0, 0.0]


@pytest.mark.parametrize(("moment", "free"), [(0.0, 0.0), (1.0, 2.0), (1.5, 2.0), (2.5, 2.5)])
def test_the_first_free_moment_is_the_end_of_what_covers_it(moment: float, free: float) -> None:
    assert cover((1, 2)).first_free(np.array([moment])).tolist() == [free]


def test_gaps_and_covered_parts_make_up_the_whole() -> None:
    rng = np.random.default_rng(7)
    start = np.sort(rng.uniform(0, 100, 50))
    other = np.sort(rng.uniform(0, 100, 40))
    mine, busy = (start, start + 1.5), Cover(other, other + 1.0)

    begin, finish = busy.gaps_in(*mine)

    total = (mine[1] - mine[0]).sum()
    assert (finish - begin).sum() + busy.within(*mine).sum() == pytest.approx(total)


def test_nothing_covers_nothing() -> None:
    empty = cover()

    begin, finish = empty.gaps_in(np.array([1.0]), np.array([2.0]))

    assert empty.within(np.array([0.0]), np.array([9.0])).tolist() == [0.0]
    assert (begin.tolist(), finish.tolist()) == ([1.0], [2.0])
