"""Bytes per storage target are those of stripe arithmetic, call by call."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from ioprism import EVENTS
from ioprism.diagnosis.rules.storage import stripe_bytes
from ioprism.model.usage import Striping
from ioprism.views.totals import TargetLoad


def loads(offset: int, size: int, stripe: int, targets: list[int]) -> dict[int, int]:
    files = pl.DataFrame(
        {"file": [0], "stripe_size": [stripe], "targets": [targets]},
        schema_overrides={"file": pl.UInt32},
    )
    call = pl.DataFrame(
        {"start": [0.0], "end": [1.0], "rank": [0], "process": [0], "file": [0],
         "layer": ["posix"], "operation": ["write"], "offset": [offset], "bytes": [size]}
    )  # fmt: skip
    view = TargetLoad(files)
    load = view.combine(view.partial(EVENTS.conform(call).lazy())).collect()
    return dict(load.select("target", "bytes").iter_rows())


def byte_by_byte(offset: int, size: int, stripe: int, targets: list[int]) -> dict[int, int]:
    where = (np.arange(offset, offset + size) // stripe) % len(targets)
    counts = np.bincount(where, minlength=len(targets))
    return {t: int(n) for t, n in zip(targets, counts, strict=True) if n}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 300), st.integers(1, 500), st.integers(1, 50), st.integers(1, 6))
def test_each_byte_goes_to_its_own_target(offset: int, size: int, stripe: int, count: int) -> None:
    targets = [10 + n for n in range(count)]

    assert loads(offset, size, stripe, targets) == byte_by_byte(offset, size, stripe, targets)


def test_a_call_that_ends_on_a_border_does_not_touch_the_next_target() -> None:
    assert loads(0, 100, 100, [1, 2]) == {1: 100}


@given(st.integers(1, 500), st.integers(1, 50), st.integers(1, 6))
def test_a_file_is_spread_from_its_start_in_the_same_way(
    size: int, stripe: int, count: int
) -> None:
    targets = [10 + n for n in range(count)]

    assert stripe_bytes(Striping(stripe, targets), size) == byte_by_byte(0, size, stripe, targets)
