"""Plain messages that are read in place say what the msgpack library says, alone and together."""

from __future__ import annotations

import math
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioprism.readers.signals import messages
from ioprism.readers.signals.flat_map import unpack_plain
from ioprism.readers.signals.messages import MalformedMessageError, Piece, parse_message

PLAIN = {"ranks": 4, "b": [5e8, 5e8], "ts": [0.0, 0.01], "te": [2.0, 2.02]}
doubles = st.lists(st.floats(), max_size=20)
values = st.one_of(
    doubles,
    doubles,
    st.lists(st.one_of(st.floats(), st.integers(-5, 5), st.none()), max_size=4),
    st.integers(-(2**63), 2**64 - 1),
    st.text(max_size=40),
    st.none(),
    st.booleans(),
    st.binary(max_size=4),
)
maps = st.dictionaries(
    st.sampled_from(["b", "ts", "te", "job", "rank", "ranks", "other"]), values, max_size=7
)


@st.composite
def plain_maps(draw: st.DrawFn) -> dict[str, Any]:
    """Maps of the plain form, in any order, some with a name or something else."""
    count = draw(st.integers(0, 20))
    as_long = st.integers(2**40, 2**50)  # as many bytes as a double
    number = draw(st.sampled_from([st.floats(), st.floats(), st.floats() | as_long]))
    array = st.lists(number, min_size=count, max_size=count)
    made = {**draw(maps), **{key: draw(array) for key in ("b", "ts", "te")}}
    return dict(draw(st.permutations(list(made.items()))))


def said(raw: bytes) -> list[Piece] | None:
    try:
        with np.errstate(all="ignore"):
            return parse_message(raw)
    except MalformedMessageError:
        return None


def said_by_library(raw: bytes) -> list[Piece] | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "unpack_plain", lambda _: None)
        return said(raw)


def same(one: list[Piece] | None, other: list[Piece] | None) -> bool:
    if one is None or other is None:
        return one is other
    return len(one) == len(other) and all(map(_same_piece, one, other))


def _same_piece(one: Piece, other: Piece) -> bool:
    arrays = [(one.start, other.start), (one.end, other.end), (one.amount, other.amount)]
    return all(np.array_equal(a, b, equal_nan=True) for a, b in arrays) and (
        (one.job, one.ranks, one.direction) == (other.job, other.ranks, other.direction)
    )


@settings(max_examples=300, deadline=None)
@given(st.one_of(maps, plain_maps()), st.booleans())
def test_both_ways_of_reading_agree(value: dict[str, Any], single: bool) -> None:
    try:
        raw = msgpack.packb(value, use_single_float=single)
    except OverflowError:
        raw = msgpack.packb(value)

    assert same(said(raw), said_by_library(raw))


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_both_ways_agree_on_damage(data: st.DataObject) -> None:
    raw = bytearray(msgpack.packb(data.draw(plain_maps())))
    for _ in range(data.draw(st.integers(0, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw
    raw += data.draw(st.binary(max_size=2))

    assert same(said(bytes(raw)), said_by_library(bytes(raw)))


@pytest.mark.parametrize("count", [0, 1, 15, 16, 100, 65_535])
def test_the_usual_message_is_read_in_place(count: int) -> None:
    numbers = np.linspace(0.0, 1.0, count).tolist()
    value = {"job": "run", "ranks": 300, "b": numbers, "ts": numbers, "te": numbers}
    found = unpack_plain([msgpack.packb(value)])

    assert found is not None
    assert {key: np.asarray(part).tolist() for key, part in found.items()} == value


def test_messages_that_differ_in_their_numbers_are_read_together() -> None:
    each = [{**PLAIN, "ts": [number, math.nan]} for number in (0.0, -0.0, 1e300)]
    found = unpack_plain([msgpack.packb(value) for value in each])

    assert found is not None
    assert np.array_equal(found["ts"], [0.0, math.nan, -0.0, math.nan, 1e300, math.nan], True)
    assert found["b"].tolist() == 3 * PLAIN["b"]  # type: ignore[operator]
    assert found["ranks"] == 4


@pytest.mark.parametrize(
    "other",
    [
        {**PLAIN, "ranks": 5},
        {**PLAIN, "b": [5e8, 7]},
        {**PLAIN, "b": [5e8]},
        {"ranks": 4, "b": PLAIN["b"], "te": PLAIN["te"], "ts": PLAIN["ts"]},
        {"rank": 4, "bb": PLAIN["b"], "ts": PLAIN["ts"], "te": PLAIN["te"]},
    ],
)
def test_messages_that_differ_in_more_are_not_read_together(other: dict[str, Any]) -> None:
    assert unpack_plain([msgpack.packb(PLAIN), msgpack.packb(other)]) is None
