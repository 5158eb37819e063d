"""The fast path reads every line as a JSON parser does, or leaves it to one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioprism.formats.dftracer.columns import Columns, parse
from ioprism.formats.dftracer.digits import MARGIN, Text, decimals, hexadecimals
from ioprism.formats.dftracer.forms import Forms
from ioprism.formats.dftracer.objects import MISSING, NUMBERS, hash_of, whole_number

numbers = st.integers(min_value=-(2**63) + 1, max_value=2**63 - 1)
written_numbers = st.one_of(numbers, numbers.map(str))
texts = st.text(max_size=30)
arguments = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(NUMBERS, written_numbers),
        "fhash": st.one_of(
            st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1).map(lambda n: f"{n:x}")
        ),
        "fname": texts,
        "level": st.one_of(numbers, texts, st.none(), st.floats(allow_nan=False)),
        "nested": st.dictionaries(st.sampled_from(["ret", "count"]), numbers, max_size=2),
        "list": st.lists(numbers, max_size=2),
    },
)
calls = st.builds(
    lambda name, cat, pid, ts, dur, phase, args, has_args: {
        "id": 1, "name": name, "cat": cat, "pid": pid, "tid": pid, "ts": ts, "dur": dur,
        "ph": phase, **({"args": args} if has_args else {}),
    },
    texts, texts, st.integers(0, 2**31), written_numbers, written_numbers,
    st.sampled_from(["X", 1]), arguments, st.booleans(),
)  # fmt: skip


def columns_of(objects: list[dict[str, Any]], separators: tuple[str, str] = (",", ":")) -> Columns:
    return parse(text_of(objects, separators))


def text_of(objects: list[dict[str, Any]], separators: tuple[str, str] = (",", ":")) -> bytes:
    lines = "\n".join(json.dumps(one, separators=separators, ensure_ascii=False) for one in objects)
    return MARGIN + lines.encode("utf-8", "surrogatepass") + MARGIN


@settings(max_examples=150, deadline=None)
@given(st.lists(calls, max_size=8), st.sampled_from([(",", ":"), (", ", ": ")]))
def test_columns_are_what_json_says(
    objects: list[dict[str, Any]], separators: tuple[str, str]
) -> None:
    columns = columns_of(objects, separators)

    assert len(columns) == len(objects)
    assert columns.damaged == 0
    assert columns.ts.tolist() == [int(one["ts"]) for one in objects]
    assert columns.dur.tolist() == [int(one["dur"]) for one in objects]
    for key in NUMBERS:
        expected = [whole_number(one.get("args", {}).get(key)) for one in objects]
        assert columns.numbers[key].tolist() == [MISSING if e is None else e for e in expected]
    names = [columns.name.values[code] for code in columns.name.codes]
    assert names == [one["name"] for one in objects]
    paths = [None if c < 0 else columns.path.values[c] for c in columns.path.codes]
    assert paths == [one.get("args", {}).get("fname") for one in objects]
    hashes = [hash_of(one.get("args", {}).get("fhash")) for one in objects]
    assert [
        int(h) if has else None for h, has in zip(columns.file_hash, columns.has_hash, strict=True)
    ] == hashes


@settings(max_examples=80, deadline=None)
@given(st.lists(calls, min_size=1, max_size=4), st.lists(calls, max_size=4))
def test_a_form_that_is_known_is_read_as_one_that_is_not(
    before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    forms = Forms()
    parse(text_of(before * 20), forms)
    learnt, fresh = (parse(text_of(before * 20 + after), f) for f in (forms, None))

    for column in ("ts", "dur", "pid", "tid", "has_hash"):
        assert getattr(learnt, column).tolist() == getattr(fresh, column).tolist()
    hashes = [columns.file_hash[columns.has_hash].tolist() for columns in (learnt, fresh)]
    assert hashes[0] == hashes[1]
    for column in ("name", "cat", "path"):
        texts = [
            [None if code < 0 else strings.values[code] for code in strings.codes]
            for strings in (getattr(learnt, column), getattr(fresh, column))
        ]
        assert texts[0] == texts[1]
    for key in NUMBERS:
        assert learnt.numbers[key].tolist() == fresh.numbers[key].tolist()
    assert learnt.damaged == fresh.damaged == 0


@pytest.mark.parametrize("value", ["1.5", "-1", "1e3", "null", '"7"', "12345678901234567890", "07"])
def test_values_of_another_kind_do_not_follow_the_form(value: str) -> None:
    line = (
        '{"id":%d,"name":"read","cat":"POSIX","pid":7,"tid":7,"ts":%d,'
        '"dur":5,"ph":1,"args":{"ret":%s}}'
    )
    forms = Forms()
    plain = [line % (n, 10**15 + n, n * n) for n in range(40)]
    parse(MARGIN + "\n".join(plain).encode() + MARGIN, forms)
    columns = parse(MARGIN + "\n".join([*plain, line % (1, 2, value)]).encode() + MARGIN, forms)
    expected = whole_number(json.loads(value)) if value != "07" else None

    assert forms.chains
    assert columns.numbers["ret"].tolist()[:40] == [n * n for n in range(40)]
    if value == "07":  # no JSON, but what a number is can be seen
        assert len(columns) + columns.damaged == 41
    else:
        assert columns.numbers["ret"].tolist()[40] == (MISSING if expected is None else expected)


@given(st.lists(numbers, min_size=1))
def test_decimal_numbers_are_read_to_the_last_digit(values: list[int]) -> None:
    words = [str(value).encode() for value in values]
    text = Text(MARGIN + b" ".join(words) + MARGIN)
    ends = np.cumsum([len(word) + 1 for word in words]) + len(MARGIN) - 1
    read, sound = decimals(text, ends - [len(word) for word in words], ends)

    assert sound.all()
    assert read.tolist() == values


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1))
def test_hexadecimal_numbers_are_read_to_the_last_digit(values: list[int]) -> None:
    words = [f"{value:x}".encode() for value in values]
    text = Text(MARGIN + b" ".join(words) + MARGIN)
    ends = np.cumsum([len(word) + 1 for word in words]) + len(MARGIN) - 1
    read, sound = hexadecimals(text, ends - [len(word) for word in words], ends)

    assert sound.all()
    assert read.tolist() == values


def test_numbers_that_are_none_are_marked() -> None:
    words = [b"1.5", b"12a", b"", b"99999999999999999999", b"-", b"9223372036854775808"]
    text = Text(MARGIN + b" ".join(words) + MARGIN)
    ends = np.cumsum([len(word) + 1 for word in words]) + len(MARGIN) - 1
    _, sound = decimals(text, ends - [len(word) for word in words], ends)

    assert not sound.any()
