"""Many inputs are worked on by processes; one that ends its process takes nothing with it."""

from __future__ import annotations

import os

from ioprism.pipeline.processes import FEW, mapped

MANY = 4 * FEW


def doubled(number: int) -> int:
    if number == 5:
        os.abort()
    return 2 * number


def lost(number: int) -> int:
    return -number


def test_results_come_in_order_and_a_crash_is_told_for_its_input_alone() -> None:
    found = list(mapped(doubled, range(MANY), crashed=lost, processes=2))

    assert found == [lost(n) if n == 5 else 2 * n for n in range(MANY)]


def test_few_inputs_need_no_other_process() -> None:
    here = os.getpid()

    assert list(mapped(lambda _: os.getpid(), range(FEW), crashed=lost)) == [here] * FEW
