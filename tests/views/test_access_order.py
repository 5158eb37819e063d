"""Steps and strides are sequential, jumps are random, and nothing is known of two calls."""

from __future__ import annotations

import numpy as np
import pytest

from ioprism import LocalEngine
from ioprism.views.main_view import MainView
from tests.call_tables import calls, trace_of

SIZE = 4096


def random_share(offsets: list[int], *, processes: int = 1) -> float:
    rows = [
        {"start": n * 0.01, "seconds": 0.001, "offset": offset, "bytes": SIZE,
         "process": n % processes}
        for n, offset in enumerate(offsets)
    ]  # fmt: skip
    (view,) = LocalEngine().run(trace_of(calls(rows)), MainView())
    jumps = view.filter(view["class"] % 2 == 1)
    return float(jumps["count"].sum()) / float(view["count"].sum())


def test_one_behind_the_other_is_sequential() -> None:
    assert random_share([n * SIZE for n in range(50)]) == 0


def test_a_stride_is_sequential() -> None:
    assert random_share([n * 64 * SIZE for n in range(50)]) == 0


def test_processes_that_alternate_in_a_file_are_sequential_each() -> None:
    assert random_share([n * SIZE for n in range(64)], processes=4) == 0


def test_shuffled_places_are_random() -> None:
    places = np.random.default_rng(seed=1).permutation(200) * SIZE

    assert random_share(places.tolist()) > 0.9


def test_calls_of_an_unknown_process_are_one_stream() -> None:
    rows = [
        {"start": n * 0.01, "seconds": 0.001, "offset": place * SIZE, "bytes": SIZE,
         "process": None}
        for n, place in enumerate([0, 1, 2, 9, 4])
    ]  # fmt: skip
    (view,) = LocalEngine().run(trace_of(calls(rows)), MainView())

    assert view.filter(view["class"] % 2 == 1)["count"].sum() == 2


def test_interfaces_that_pass_on_the_same_requests_are_sequential_each() -> None:
    rows = [
        {"start": n * 0.01, "seconds": 0.001, "offset": n // 2 * SIZE, "bytes": SIZE,
         "layer": "posix" if n % 2 else "mpiio"}
        for n in range(20)
    ]  # fmt: skip
    (view,) = LocalEngine().run(trace_of(calls(rows)), MainView())

    assert (view["class"] % 2 == 0).all()


@pytest.mark.parametrize("offsets", [[0], [0, 10**9], [10**9, 0]])
def test_two_calls_show_nothing(offsets: list[int]) -> None:
    assert random_share(offsets) == 0
