"""Templates read what the decoder reads, and leave to it whatever is not quite the same."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioprism.formats.calls import UNKNOWN
from ioprism.formats.dftracer.calls import UNDEFINED, CallColumns, CallParser, FileIndex
from ioprism.formats.dftracer.lines import NUMBERS, REQUIRED
from ioprism.formats.dftracer.templates import PADDING

FILES = {"0123456789abcdef": 3, "fedcba9876543210": 4, "1234567890123456": 5, "77": 6, "0077": 7}
LINE = (
    b'{"id":%d,"name":"read","cat":"POSIX","type":3,"pid":7,"tid":7,"ts":%d,"dur":2,"ph":1,'
    b'"args":{"hhash":"ab","ret":%d,"offset":0,"fhash":"0123456789abcdef"}}\n'
)
MANY = 40


def read(*pieces: bytes, templates: bool = True) -> tuple[CallParser, list[CallColumns]]:
    parser = CallParser(FileIndex(FILES, {}), least=0 if templates else 2**63)
    return parser, [parser.read(piece + b"\n" * PADDING) for piece in pieces]


def rows(parser: CallParser, calls: CallColumns) -> list[tuple[object, ...]]:
    kinds = list(parser.kinds)
    columns = [calls.file.tolist(), *(calls[key].tolist() for key in (*REQUIRED, *NUMBERS))]
    return [(kinds[kind], *row) for kind, *row in zip(calls.kind.tolist(), *columns, strict=True)]


def assert_same(*pieces: bytes) -> tuple[CallParser, list[CallColumns]]:
    parser, by_templates = read(*pieces)
    plain, decoded = read(*pieces, templates=False)
    for calls, wanted in zip(by_templates, decoded, strict=True):
        assert rows(parser, calls) == rows(plain, wanted)
        for name in ("damaged", "sums", "undefined"):
            assert getattr(calls, name) == getattr(wanted, name)
    return parser, by_templates


whole = st.one_of(
    st.integers(0, 12), st.integers(-(10**4), 10**9), st.integers(-(2**63) + 1, 2**63 - 1)
)
written = st.one_of(whole, whole.map(str), st.floats(allow_nan=False, allow_infinity=False))
hashes = st.one_of(st.sampled_from([*FILES, "00000000deadbeef", "ab"]), st.just(77))
kinds_of_call = st.fixed_dictionaries(
    {"name": st.sampled_from(["read", "a name of 23 characters", 'a "quoted" one'])},
    optional={
        "keys": st.permutations(["ret", "count", "offset", "fhash", "level"]),
        "quoted": st.booleans(),
        "own": st.booleans(),
    },
)
values = st.tuples(whole, whole, written, written, whole, hashes)


def line_of(kind: dict[str, Any], number: int, said: tuple[Any, ...], thread: int) -> str:
    pid, ts, ret, count, offset, fhash = said
    given = {"ret": ret, "count": count, "offset": offset, "fhash": fhash, "level": number % 3}
    read = {"id": number, "name": kind["name"], "cat": "dftracer" if kind.get("own") else "POSIX",
            "pid": pid % 5, "tid": thread, "ts": str(ts) if kind.get("quoted") else ts, "dur": 1,
            "ph": 1, "args": {key: given[key] for key in kind.get("keys", given)}}  # fmt: skip
    return json.dumps(read, separators=(",", ":"))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(kinds_of_call, min_size=1, max_size=3),
    st.lists(values, min_size=1, max_size=5),
    st.integers(1, 20),
    st.randoms(use_true_random=False),
)
def test_templates_say_what_the_decoder_says(
    kinds: list[dict[str, Any]], said: list[tuple[Any, ...]], threads: int, random: Any
) -> None:
    lines = [
        line_of(random.choice(kinds), number, random.choice(said), number % threads)
        for number in range(3 * MANY)
    ]
    assert_same("\n".join(lines[:MANY]).encode() + b"\n", "\n".join(lines[MANY:]).encode())


@pytest.mark.parametrize("ret", [0, 9, 10**7, 10**8 - 1, 10**8, 10**15, 10**16, 2**63 - 1])
def test_numbers_of_any_length_are_read(ret: int) -> None:
    text = b"".join(LINE % (number, 10**15 + number, ret + number % 2) for number in range(MANY))
    if ret + 1 < 2**63:
        parser, (calls,) = assert_same(text)
        assert parser._templates
        assert calls["ret"].tolist() == [ret, ret + 1] * (MANY // 2)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"ret":5', b'"ret":05'), (b'"ret":5', b'"ret":'), (b'"ret":5', b'"ret":5.5'),
        (b'"ret":5', b'"ret":-5'), (b'"ret":5', b'"ret":99999999999999999999'),
        (b'"ret":5', b'"rot":5'), (b'"ret":5,', b""), (b'"ret":5', b'"ret":5,"ret":6'),
        (b"abcdef", b"abcdeg"), (b"abcdef", b'ab"def'), (b"}}", b"}"), (b"}}", b"}}}"),
        (b"}}", b'},"ts":3}'), (b"}}", b"},"), (b'"ph":1', b'"ph":4'), (b'"tid":7', b'"tid":8'),
        (b'"name":"read"', b'"name":"re\\u0061d"'), (b'"POSIX"', b'"POSIX\xe9"'),
        (b'{"id"', b'[{"id"'), (b'"cat"', b'"cat" '), (b'"ts":', b'"ts":"'), (b",", b", "),
    ],
)  # fmt: skip
def test_a_line_that_is_not_quite_the_same_is_decoded_by_itself(old: bytes, new: bytes) -> None:
    lines = [LINE % (number, 10**15 + number, 5) for number in range(MANY)]
    assert old in lines[17]
    lines[17] = lines[17].replace(old, new, 1)

    assert_same(b"".join(lines))


@pytest.mark.parametrize("cut", range(1, len(LINE % (20, 10**15, 5)), 3))
def test_a_torn_line_is_damage_in_the_middle_and_at_the_end(cut: int) -> None:
    lines = [LINE % (number, 10**15 + number, 5) for number in range(MANY)]
    torn = lines[20][:-1][:-cut] + b"\n"
    _, (middle,) = assert_same(b"".join((*lines[:20], torn, *lines[20:])))
    _, (end,) = assert_same(b"".join((*lines, torn[:-1])))

    assert [len(one.kind) for one in (middle, end)] == [MANY, MANY]
    assert middle.damaged == end.damaged == bool(torn.strip())


@pytest.mark.parametrize("form", ["[\n{0}\n]", "[\n{0},\n]\n", "{0}\n\n", "\n{0}\r\n"])
def test_brackets_commas_and_blank_lines_are_no_damage(form: str) -> None:
    end = {"[\n{0},\n]\n": ",\n", "\n{0}\r\n": "\r\n"}.get(form, "\n")
    lines = (LINE % (number, number, 5) for number in range(MANY))
    text = form.replace("{0}", end.join(line.decode().strip() for line in lines))
    _, (calls,) = assert_same(text.encode())

    assert (len(calls.kind), calls.damaged) == (MANY, 0)


def test_calls_stay_in_the_order_of_the_file() -> None:
    lines = [
        (LINE % (number, number, 5)).replace(b"abcdef", b"beef!!" if number % 7 == 0 else b"abcdef")
        for number in range(3 * MANY)
    ]
    parser, parts = assert_same(b"".join(lines[:MANY]), b"".join(lines[MANY:]))
    times, files = (np.concatenate([part[key] for part in parts]) for key in ("ts", "fhash"))

    assert times.tolist() == list(range(3 * MANY))
    assert set(files.tolist()) == {3, UNDEFINED}
    assert len(parser._templates) == 1
    assert sum(part.undefined for part in parts) == np.count_nonzero(files == UNDEFINED)


def test_lines_that_do_not_repeat_are_decoded() -> None:
    lines = [
        (LINE % (number, number, 5)).replace(b'"ab"', b'"x%x"' % number) for number in range(1500)
    ]
    parser, (calls,) = assert_same(b"".join(lines))

    assert not parser._templates
    assert (calls["count"] == UNKNOWN).all()


@pytest.mark.parametrize("damage", [b"", b"}"])
def test_definitions_of_names_are_no_calls_and_no_damage_unless_they_are_torn(
    damage: bytes,
) -> None:
    named = (
        b'{"name":"FH","cat":"dftracer","type":1,"pid":7,"tid":7,"ph":4,'
        b'"args":{"hhash":"ab","name":"/a file","value":"0123456789abcdef"}}%s\n' % damage
    )
    lines = [LINE % (number, number, 4096) for number in range(MANY)]
    _, (calls,) = assert_same(b"".join(lines) + named)

    assert (len(calls.kind), calls.damaged) == (MANY, len(damage))
