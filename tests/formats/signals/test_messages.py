"""Every known form of a live message is read, anything else is refused without harm."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioprism.formats.signals.messages import MalformedMessageError, parse_message

PLAIN = {"ranks": 4, "b": [5e8, 5e8], "ts": [0.0, 0.01], "te": [2.0, 2.02]}
MODE = ["write_sync", False, True, *[0] * 9, 8, [[1000, 1.0, 2.0, 0, 0, 0, 0, 0, 1]]]
GEKKO = [1, "node", 7, "w", [1_000_000], [3_000_000], [4096], 1, 4096]
POINTS = [[0.0, 1.0], [1.0, 5.0], [2.0, 0.0]]
PROXY = {"infos": False, "metrics": {"deriv__size___write": POINTS}}


def packed(*values: Any) -> bytes:
    return b"".join(msgpack.packb(value) for value in values)


@pytest.mark.parametrize(
    ("raw", "direction", "moved", "span"),
    [
        (packed(PLAIN), None, 2.005e9, (0.0, 2.02)),
        (json.dumps(PLAIN).encode(), None, 2.005e9, (0.0, 2.02)),
        (packed(MODE, ["io_time", *[0.0] * 18]), "write", 1000, (1.0, 2.0)),
        (packed(*GEKKO), "write", 4096, (1.0, 3.0)),
        (packed(*({"name": value} for value in GEKKO)), "write", 4096, (1.0, 3.0)),
        (packed(PROXY), "write", 6.0, (0.0, 2.0)),
        (b'\t{"read_sync":{"bandwidth":{"b_rank_avr":[3],"t_rank_s":[1],"t_rank_e":[3]}}}\n',
         "read", 6, (1.0, 3.0)),
        (b'{"b":[3,0],"t":[1,3]}', None, 6, (1.0, 3.0)),
    ],
)  # fmt: skip
def test_every_form_is_read(
    raw: bytes, direction: str | None, moved: float, span: tuple[float, float]
) -> None:
    (piece,) = parse_message(raw)

    assert piece.direction == direction
    assert piece.amount.sum() == pytest.approx(moved, rel=0.01)
    assert (piece.start.min(), piece.end.max()) == pytest.approx(span)


def test_a_message_may_name_its_job() -> None:
    (piece,) = parse_message(packed({"job": 42, **PLAIN}))

    assert (piece.job, piece.ranks) == ("42", 4)


@pytest.mark.parametrize("value", [{"job": "a\ud800b", **PLAIN}, {"metrics": {"a\ud800b": POINTS}}])
def test_a_name_of_half_a_character_can_be_written_all_the_same(value: dict[str, Any]) -> None:
    (piece,) = parse_message(json.dumps(value).encode())

    assert piece.job == "a?b"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"ping",
        b"\xc1",
        b"{",
        b"[" * 100_000,
        b"\x91" * 5000,
        b"\xdd\xff\xff\xff\xff",
        packed(5),
        packed(MODE)[:-3],
        packed(["write_sync"]),
        packed({**PLAIN, "te": [1.0]}),
        packed({**PLAIN, "b": "many"}),
        packed({**PLAIN, "b": [[1.0], [2.0]]}),
        packed({**PLAIN, "job": [1]}),
        packed({"metrics": {"name": [1, 2, 3]}}),
        packed(*GEKKO[:3], [], *GEKKO[4:]),
    ],
)
def test_anything_else_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        parse_message(raw)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_changed_bytes_are_read_or_refused(data: st.DataObject) -> None:
    raw = bytearray(
        data.draw(st.sampled_from([packed(PLAIN), packed(MODE), packed(*GEKKO), packed(PROXY)]))
    )
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(MalformedMessageError):
        parse_message(bytes(raw))
