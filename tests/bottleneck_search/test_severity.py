"""Angles are exact, thresholds are strict, and more time never means less severity."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioprism import UsageError
from ioprism.bottleneck_search.result import Settings, rate_records


def records(
    times: list[float], counts: list[float], sizes: list[int] | None = None
) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "seconds": times,
            "slowest_process": times,
            "count": counts,
            "bytes": sizes or [0] * len(times),
            "data_seconds": times,
            "slowest_process_data": times,
        }
    )


def severities(times: list[float], counts: Sequence[float], **settings: object) -> list[float]:
    table = rate_records(records(times, counts), Settings(**settings), io_time=sum(times))  # type: ignore[arg-type]
    return table["severity"].to_list()


def test_time_in_proportion_is_45_degrees_and_no_bottleneck() -> None:
    table = rate_records(records([1.0, 2.0, 3.0], [10, 20, 30]), Settings(), io_time=6.0)

    assert table["severity"].to_list() == pytest.approx([45.0] * 3)
    assert not table["critical"].any()


@pytest.mark.parametrize(
    ("degrees", "label"),
    [(76, "critical"), (75, "very high"), (61, "very high"), (60, "high"), (46, "high"),
     (45, "medium"), (31, "medium"), (30, "low"), (16, "low"), (15, "trivial"), (1, "trivial")],
)  # fmt: skip
def test_labels_begin_beyond_their_angle(degrees: int, label: str) -> None:
    # One of two records has half the calls, and so much time that its angle is exact.
    share = math.tan(math.radians(degrees)) / 4
    counts = [0.25, 0.75]
    table = rate_records(records([share, 1 - share], counts), Settings(), io_time=1.0)

    assert table["severity"][0] == pytest.approx(degrees)
    assert table["label"][0] == label
    assert table["critical"][0] == (degrees > 45)


@pytest.mark.parametrize(("threshold", "expected"), [(62, 2), (64, 1), (0, 3), (90, 0)])
def test_the_threshold_decides(threshold: float, expected: int) -> None:
    table = rate_records(
        records([0.49, 0.36, 0.15], [0.25, 0.15, 0.6]), Settings(threshold=threshold), io_time=1.0
    )

    assert table["critical"].sum() == expected


def test_time_without_any_operation_is_90_degrees() -> None:
    assert severities([1.0, 1.0], [0, 5]) == pytest.approx([90.0, math.degrees(math.atan(0.5))])


def test_bytes_compare_the_time_of_data_with_the_amount() -> None:
    table = records([3.0, 1.0], [1, 1], [100, 300])
    rating = rate_records(table, Settings(metric="bytes"), io_time=4.0)

    assert rating["severity"].to_list() == pytest.approx(
        [math.degrees(math.atan(3)), math.degrees(math.atan(1 / 3))]
    )


def test_time_compares_with_an_equal_share() -> None:
    assert severities([3.0, 1.0], [1, 100], metric="time") == pytest.approx(
        [math.degrees(math.atan(1.5)), math.degrees(math.atan(0.5))]
    )


def test_the_percentile_takes_the_worst() -> None:
    times = [float(n + 1) for n in range(100)]
    table = rate_records(records(times, [1.0] * 100), Settings(percentile=0.95), io_time=1.0)

    assert table.filter("critical")["seconds"].to_list() == [95.0, 96.0, 97.0, 98.0, 99.0, 100.0]


@given(
    times=st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=20),
    counts=st.lists(st.integers(1, 10**9), min_size=20, max_size=20),
    more=st.floats(1.001, 1000),
)
def test_severity_grows_with_time(times: list[float], counts: list[int], more: float) -> None:
    before = severities(times, counts[: len(times)])[0]
    after = severities([times[0] * more, *times[1:]], counts[: len(times)])[0]

    assert after >= before - 1e-9
    assert 0 <= before <= 90


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"threshold": 91}, "threshold cannot be 91"),
        ({"percentile": 2}, "percentile cannot be 2"),
        ({"floor": -1}, "floor cannot be -1"),
        ({"bucket": 0}, "time bucket cannot be 0"),
        ({"bucket": float("nan")}, "time bucket cannot be nan"),
        ({"metric": "speed"}, "no metric 'speed'"),
        ({"views": ("file", "file")}, "named once each"),
        ({"views": ("moon",)}, "no view 'moon'"),
        ({"views": ()}, "named once each"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Settings(**wrong)  # type: ignore[arg-type]
