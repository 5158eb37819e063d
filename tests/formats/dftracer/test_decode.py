"""Every line is read as a JSON parser reads it; what is no call is counted, not guessed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioprism.formats.dftracer.lines import NUMBERS, decode_text, hash_of, whole_number

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
CALL = {"id": 1, "name": "read", "cat": "POSIX", "pid": 7, "tid": 7, "ts": 5, "dur": 1, "ph": 1,
        "args": {"fhash": "ab", "ret": 4096}}  # fmt: skip


def text_of(objects: list[dict[str, Any]], separators: tuple[str, str] = (",", ":")) -> bytes:
    lines = (json.dumps(one, separators=separators, ensure_ascii=False) for one in objects)
    return "\n".join(lines).encode()


@settings(max_examples=100, deadline=None)
@given(st.lists(calls, max_size=8), st.sampled_from([(",", ":"), (", ", ": ")]))
def test_columns_are_what_json_says(
    objects: list[dict[str, Any]], separators: tuple[str, str]
) -> None:
    decoded = decode_text(text_of(objects, separators))

    assert decoded.damaged_count == 0
    assert len(decoded.calls) == len(objects)
    for line, one in zip(decoded.calls, objects, strict=True):
        given = one.get("args", {})
        assert (line.name, line.category) == (one["name"], one["cat"])
        assert [whole_number(getattr(line, key)) for key in ("pid", "ts", "dur")] == [
            whole_number(one[key]) for key in ("pid", "ts", "dur")
        ]
        assert [whole_number(getattr(line.arguments, key)) for key in NUMBERS] == [
            whole_number(given.get(key)) for key in NUMBERS
        ]
        assert hash_of(line.arguments.fhash) == hash_of(given.get("fhash"))
        assert line.arguments.fname == given.get("fname")


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ('{"size":"large"}', None), ('{"size":true}', None), ('{"size":[1]}', None),
        ('{"size":" 7"}', 7), ('{"size":1e3}', 1000), ('{"size":1,"size":2}', 2),
        ('{"size":99999999999999999999}', None), ("[]", None), ("null", None), ('"text"', None),
    ],
)  # fmt: skip
def test_an_argument_of_another_type_is_missing_and_its_call_is_not(
    arguments: str, wanted: int | None
) -> None:
    text = json.dumps(CALL | {"args": "ARGUMENTS"}).replace('"ARGUMENTS"', arguments)
    decoded = decode_text(text.encode())

    assert decoded.damaged_count == 0
    assert [whole_number(one.arguments.size) for one in decoded.calls] == [wanted]


@pytest.mark.parametrize(
    "line",
    ["[]", "1", "{", "{} {}", '{"ts":NaN}', '{"name":"\\ud800"}', "[" * 100_000, '{"ph":-0}'],
)
def test_a_line_that_is_not_an_object_of_a_known_kind_is_damage(line: str) -> None:
    decoded = decode_text(f"{json.dumps(CALL)}\n{line}\n{json.dumps(CALL)}".encode())

    assert (len(decoded.calls), decoded.damaged_count) == (2, 1)


@pytest.mark.parametrize("name", [["a"], {"a": 1}, None, 7])
def test_a_call_whose_name_is_not_a_text_is_damage(name: object) -> None:
    decoded = decode_text(text_of([CALL | {"name": name}, CALL]))

    assert (len(decoded.calls), decoded.damaged_count) == (1, 1)


@pytest.mark.parametrize("cut", range(1, len(json.dumps(CALL))))
def test_a_torn_line_is_damage_and_never_a_call(cut: int) -> None:
    whole = json.dumps(CALL, separators=(",", ":"))[: -cut or None]
    other = json.dumps(CALL).encode()
    decoded = decode_text(other + b"\n" + whole.encode() + b"\n" + other)

    assert len(decoded.calls) == 2
    assert decoded.damaged_count == (1 if whole else 0)


def test_two_lines_that_ran_into_each_other_are_damage() -> None:
    line = json.dumps(CALL, separators=(",", ":")).encode()
    decoded = decode_text(line + line[40:] + b"\n" + line[:60] + line + b"\n" + line + b"\n")

    assert (len(decoded.calls), decoded.damaged_count) == (1, 2)


@pytest.mark.parametrize(
    "form", ["[\n{0}\n{0}\n]", "[\n{0},\n{0},\n]\n", "{0}\r\n{0}\r\n", "{0},\n{0}"]
)
def test_brackets_and_commas_around_the_lines_are_no_damage(form: str) -> None:
    decoded = decode_text(form.replace("{0}", json.dumps(CALL)).encode())

    assert (len(decoded.calls), decoded.damaged_count) == (2, 0)


def test_bytes_that_are_no_unicode_are_kept_readable() -> None:
    line = json.dumps(CALL | {"args": {"fname": "/data/X"}}).encode().replace(b"X", b"\xe9")
    decoded = decode_text(line)

    assert [one.arguments.fname for one in decoded.calls] == ["/data/\\xe9"]


def test_a_call_without_a_time_is_damage() -> None:
    decoded = decode_text(text_of([CALL | {"ts": None}, CALL | {"dur": "soon"}, CALL]))

    assert (len(decoded.calls), decoded.damaged_count) == (1, 2)
