"""Sizes, durations and rates are read and shown without surprises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioprism import UsageError
from ioprism.units import format_bytes, format_count, format_rate, format_seconds, parse_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4096), ("512MB", 512_000_000), ("4MiB", 4 * 2**20), ("1.5 k", 1500), ("2gib", 2**31)],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "many", "12 QB", "-1", "1e3", "MB"])
def test_what_is_no_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="Hint: write for example 4096"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1536, "1.50 KiB"),
        (2**20 - 1, "1.00 MiB"), (123 * 2**30, "123 GiB"), (2**80, "1048576 EiB"),
        (None, "unknown"),
    ],
)  # fmt: skip
def test_sizes_are_shown(size: float | None, text: str) -> None:
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (2.5e-7, "0.25 µs"), (1.5e-3, "1.50 ms"), (0.9996, "1.00 s"), (59.9, "59.9 s"),
        (61, "1 min 01 s"), (3600, "1 h 00 min"), (-2, "-2.00 s"), (float("nan"), "unknown"),
    ],
)  # fmt: skip
def test_durations_are_shown(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_rates_and_counts_are_shown() -> None:
    assert format_rate(2**20) == "1.00 MiB/s"
    assert format_rate(None) == "unknown"
    assert format_count(1_234_567) == "1,234,567"


@given(st.integers(min_value=0, max_value=2**60))
def test_every_plain_number_of_bytes_is_read_back(size: int) -> None:
    assert parse_bytes(str(size)) == pytest.approx(size, rel=1e-15)
