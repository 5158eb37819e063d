"""Messages of the most common form say what the msgpack library says, alone and together."""

from __future__ import annotations

import math
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioprism.formats.signals import messages
from ioprism.formats.signals.messages import (
    MalformedMessageError,
    Piece,
    decode_plain,
    parse_alike,
    parse_message,
)

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


FRAGMENTS = [
    *(b"\x84", b"\x85", b"\xa1b", b"\xa2ts", b"\xa2te", b"\xa3job", b"\xa5ranks", b"\x81b"),
    *(b"\x90", b"\x91", b"\x92", b"\xdc\x00\x02", b"\xdc", b"\xcb", b"\xcb" + bytes(8)),
    *(b"\xa0", b"\xab", b"\xbf", b"\x01", b"\xcd\x01\x00", b"\xce", bytes(3), b"\xff"),
]


def backwards(last: int) -> bytes:
    """A message whose first key would have a length below zero."""
    raw = bytearray(32)
    raw[0:8] = b"\x84\x81b\x90\xa2ts\x92"
    raw[10:14] = b"\xa2te\x92"
    raw[26:31] = b"\xa3job\xab"
    for mark in (8, 14, 17, 23):
        raw[mark] = 0xCB
    raw[31] = last
    return bytes(raw)


def said(raw: bytes) -> list[Piece] | None:
    try:
        with np.errstate(all="ignore"):
            return parse_message(raw)
    except MalformedMessageError:
        return None


def said_by_library(raw: bytes) -> list[Piece] | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "decode_plain", lambda _: None)
        return said(raw)


def said_together(raws: list[bytes]) -> list[Piece] | None:
    try:
        with np.errstate(all="ignore"):
            return parse_alike(raws)
    except MalformedMessageError:
        return None


def joined(each: list[list[Piece] | None]) -> list[Piece] | None:
    """What messages say together that say one piece each, but for the numbers the same."""
    pieces = [piece for one in each if one is not None for piece in one]
    if len(pieces) < len(each) or len({(piece.job, piece.ranks) for piece in pieces}) > 1:
        return None
    start, end, amount = (
        np.concatenate([getattr(piece, name) for piece in pieces])
        for name in ("start", "end", "amount")
    )
    return [Piece(start, end, amount, None, pieces[0].job, pieces[0].ranks)]


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


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_a_run_of_damaged_messages_says_what_each_says_or_nothing(data: st.DataObject) -> None:
    raw = data.draw(st.one_of(plain_maps().map(msgpack.packb), st.just(backwards(1))))
    anywhere = st.dictionaries(st.integers(0, len(raw) - 1), st.integers(0, 255), max_size=3)
    raws = [_changed(raw, data.draw(anywhere)) for _ in range(data.draw(st.integers(2, 3)))]
    everywhere = data.draw(anywhere)  # the same damage in all of them
    raws = [_changed(raw, everywhere) for raw in raws]
    found = said_together(raws)

    assert found is None or same(found, joined([said_by_library(raw) for raw in raws]))


@settings(max_examples=1000, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=16).map(b"".join), st.data())
def test_fragments_of_messages_in_any_order_are_read_right_or_refused(
    raw: bytes, data: st.DataObject
) -> None:
    raws = [raw[:-1] + bytes([last]) for last in data.draw(st.binary(min_size=2, max_size=2))]
    found = said_together(raws)

    assert all(same(said(one), said_by_library(one)) for one in raws)
    assert found is None or same(found, joined([said_by_library(one) for one in raws]))


def _changed(raw: bytes, changes: dict[int, int]) -> bytes:
    made = bytearray(raw)
    for place, byte in changes.items():
        made[place] = byte
    return bytes(made)


def test_a_key_that_is_no_text_leads_nowhere_outside_the_message() -> None:
    assert decode_plain(backwards(1)) is None
    with pytest.raises(MalformedMessageError):
        parse_message(backwards(1))
    with pytest.raises(MalformedMessageError):
        parse_alike([backwards(1), backwards(2)])


@pytest.mark.parametrize("count", [0, 1, 15, 16, 100, 65_535])
def test_the_usual_message_is_read_whole(count: int) -> None:
    numbers = np.linspace(0.0, 1.0, count).tolist()
    value = {"job": "run", "ranks": 300, "b": numbers, "ts": numbers, "te": numbers}
    (found,) = parse_message(msgpack.packb(value))

    assert decode_plain(msgpack.packb(value)) is not None
    assert (found.job, found.ranks) == ("run", 300)
    assert found.start.tolist() == found.end.tolist() == numbers


@pytest.mark.parametrize("swapped", [False, True])
def test_messages_that_differ_in_their_numbers_are_read_together(swapped: bool) -> None:
    each = [{**PLAIN, "ts": [number, math.nan]} for number in (0.0, -0.0, 1e300, 7)]
    if swapped:
        each[1] = dict(reversed(each[1].items()))
    (found,) = parse_alike([msgpack.packb(value) for value in each])

    expected = [0.0, math.nan, -0.0, math.nan, 1e300, math.nan, 7.0, math.nan]
    assert np.array_equal(found.start, expected, equal_nan=True)
    assert found.end.tolist() == 4 * PLAIN["te"]  # type: ignore[operator]
    assert found.ranks == 4


@pytest.mark.parametrize(
    "other",
    [
        {**PLAIN, "ranks": 5},
        {**PLAIN, "b": [5e8]},
        {**PLAIN, "job": "another"},
        {"rank": 4, "bb": PLAIN["b"], "ts": PLAIN["ts"], "te": PLAIN["te"]},
    ],
)
def test_messages_that_differ_in_more_are_not_read_together(other: dict[str, Any]) -> None:
    with pytest.raises(MalformedMessageError):
        parse_alike([msgpack.packb(PLAIN), msgpack.packb(other)])
