"""Each part of a machine is compared with the others of its job."""

from __future__ import annotations

from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from ioprism.site.job_rows import _median_without


@given(st.lists(st.sampled_from([0.1, 0.2, 0.7, 1.3, 3.0]), min_size=2, max_size=9))
def test_the_median_of_the_others_is_found_in_numbers_sorted_once(rates: list[float]) -> None:
    others = [median([*rates[:n], *rates[n + 1 :]]) for n in range(len(rates))]

    assert [_median_without(sorted(rates), rate) for rate in rates] == others
