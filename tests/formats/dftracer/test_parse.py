"""Every line is read as a JSON parser reads it; what is no call is counted, not guessed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from ioprism.formats.dftracer import few_lines
from ioprism.formats.dftracer.objects import hash_of, whole_number
from ioprism.formats.dftracer.parse import NUMBERS, parse

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
    parsed = parse([text_of(objects, separators)])

    assert parsed.damaged == 0
    assert parsed.calls.height == len(objects)
    for row, one in zip(parsed.calls.iter_rows(named=True), objects, strict=True):
        said = one.get("args", {})
        assert row["name"] == one["name"]
        assert row["cat"] == one["cat"]
        assert [row[key] for key in ("pid", "ts", "dur")] == [
            whole_number(one[key]) for key in ("pid", "ts", "dur")
        ]
        assert [row[key] for key in NUMBERS] == [whole_number(said.get(key)) for key in NUMBERS]
        assert row["fhash"] == hash_of(said.get("fhash"))
        assert row["fname"] == said.get("fname")


strange = st.sampled_from(
    [b'{"pid":1,"pid":2}', b'{"pid":true}', b'{"pid":NaN}', b'{"ph":-0,"args":null}', b"[]", b"1",
     b'{"name":1.5,"ts":1.5}', b'{"args":[]}', b'{"ts":9223372036854775808}', b" ", b"{} {}", b"{"]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(calls.map(lambda one: text_of([one])), strange), max_size=4))
def test_a_few_lines_are_read_as_many_are(lines: list[bytes]) -> None:
    text = b"\n".join(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_lines, "MOST", -1)
        wanted = parse([text]).rows

    assert_frame_equal(parse([text]).rows, wanted)


@pytest.mark.parametrize("cut", range(1, len(json.dumps(CALL))))
def test_a_torn_line_is_damage_and_never_a_call(cut: int) -> None:
    whole = json.dumps(CALL, separators=(",", ":"))[: -cut or None]
    other = json.dumps(CALL).encode()
    parsed = parse([other + b"\n" + whole.encode() + b"\n" + other])

    assert parsed.calls.height == 2
    assert parsed.damaged == (1 if whole else 0)


def test_two_lines_that_ran_into_each_other_are_damage() -> None:
    line = json.dumps(CALL, separators=(",", ":")).encode()
    parsed = parse([line + line[40:] + b"\n" + line[:60] + line + b"\n" + line + b"\n"])

    assert (parsed.calls.height, parsed.damaged) == (1, 2)


@pytest.mark.parametrize(
    "form", ["[\n{0}\n{0}\n]", "[\n{0},\n{0},\n]\n", "{0}\r\n{0}\r\n", "{0},\n{0}"]
)
def test_brackets_and_commas_around_the_lines_are_no_damage(form: str) -> None:
    parsed = parse([form.replace("{0}", json.dumps(CALL)).encode()])

    assert (parsed.calls.height, parsed.damaged) == (2, 0)


def test_bytes_that_are_no_unicode_are_kept_readable() -> None:
    line = json.dumps(CALL | {"args": {"fname": "/data/X"}}).encode().replace(b"X", b"\xe9")
    parsed = parse([line])

    assert parsed.calls["fname"].to_list() == ["/data/\\xe9"]


def test_a_call_without_a_time_is_damage() -> None:
    parsed = parse([text_of([CALL | {"ts": None}, CALL | {"dur": "soon"}, CALL])])

    assert (parsed.calls.height, parsed.damaged) == (1, 2)


def test_the_parser_is_loaded_when_it_is_needed_and_leaves_quietly() -> None:
    program = (
        "import sys; from ioprism.formats.dftracer.parse import parse;"
        "parse([b'{}']); assert 'duckdb' not in sys.modules;"
        "parse([b'{']); assert 'duckdb' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")


def test_no_line_is_lost_where_the_text_is_longer_than_the_parsers_buffer() -> None:
    padding = "x" * 99_000
    lines = [
        b'{"id":%d,"name":"read","cat":"POSIX","pid":1,"tid":1,"ts":%d,"dur":1,"ph":"X",'
        b'"args":{"ret":7,"pad":"%s"}}\n' % (number, number, padding.encode())
        for number in range(800)
    ]
    pieces = [b"".join(lines[first : first + 43]) for first in range(0, len(lines), 43)]

    found = parse(pieces)

    assert found.damaged == 0
    assert found.calls["ts"].to_list() == list(range(800))
