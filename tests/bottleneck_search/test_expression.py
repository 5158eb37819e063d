"""Expressions are checked before they run, point at what is wrong, and can run nothing else."""

from __future__ import annotations

import builtins

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ioprism import ExpressionError
from ioprism.bottleneck_search.rule_language.expression import (
    BYTES,
    PLAIN,
    SECONDS,
    compile_condition,
    compile_quantity,
)

FIELDS = {"time": SECONDS, "read_time": SECONDS, "size": BYTES, "count": PLAIN}
TABLE = pl.DataFrame(
    {"time": [4.0, 0.0], "read_time": [3.0, 0.0], "size": [2**20, 0], "count": [2, 0]}
)


def values(text: str) -> list[float | None]:
    found = compile_quantity(text, fields=FIELDS).compute
    return TABLE.with_columns(found.alias("found"))["found"].to_list()


def holds(text: str) -> list[bool]:
    found = compile_condition(text, fields=FIELDS).compute
    return TABLE.with_columns(found.alias("found"))["found"].to_list()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("10 - 4 - 3", 3.0),
        ("12 / 2 / 3", 2.0),
        ("-2 * -3", 6.0),
        ("50 %", 0.5),
        ("1 MiB / 1 KiB", 1024.0),
        ("30 s / 1 min", 0.5),
        ("1.5e3 * 2", 3000.0),
        ("abs(-3)", 3.0),
        ("min(3, 1, 2)", 1.0),
        ("max(count, 1)", 2.0),
        ("coalesce(count / 0, 5)", 5.0),
        ("size / count / 1 KiB", 512.0),
        ("read_time / time", 0.75),
    ],
)
def test_arithmetic(text: str, expected: float) -> None:
    assert values(text)[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("read_time > 50 % * time", [True, False]),
        ("read_time >= 75 % * time", [True, True]),
        ("size < 1 MiB", [False, True]),
        ("size == 1 MiB and count == 2", [True, False]),
        ("not (time > 0)", [False, True]),
        ("true or false and false", [True, True]),
        ("size / count > 0", [True, False]),
        ("not (size / count > 0)", [False, False]),
        ("count != 2", [False, True]),
    ],
)
def test_conditions_and_missing_values(text: str, expected: list[bool]) -> None:
    assert holds(text) == expected


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("time > 5", 8, "seconds cannot be combined with a plain number"),
        ("time + size > 0", 8, "seconds cannot be combined with bytes"),
        ("max(time, size) > 0", 11, "seconds cannot be combined with bytes"),
        ("reed_time > 0", 1, "unknown field 'reed_time'"),
        ("time >", 7, "is missing here"),
        ("(time > 0", 1, r"'\(' is not closed"),
        ("time > 0 s > 1 s", 14, "cannot be chained"),
        ("time", 1, "true or false is needed"),
        ("time and count", 1, "true or false is needed"),
        ("(time > 0) + 1 > 0", 2, "a quantity is needed"),
        ("5 parsec > 0", 3, "'parsec' is not allowed here"),
        ("5x > 0", 2, "not a unit"),
        ("1e999 > 0", 1, "too large"),
        ("", 1, "is missing here"),
        ("time = 0", 6, "not allowed"),
        ("abs(1, 2) > 0", 8, "takes 1 argument"),
        ("and", 1, "'and' is not allowed here"),
    ],
)
def test_mistakes_are_pointed_at(text: str, column: int, problem: str) -> None:
    with pytest.raises(ExpressionError, match=rf"column {column}: .*{problem}") as caught:
        compile_condition(text, fields=FIELDS)

    assert caught.value.at == column - 1


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("__import__('os').system('id')", 12),
        ("__import__(os)", 1),
        ("time.__class__ > 0", 5),
        ("[x for x in time]", 1),
        ("{{ 7 * 7 }}", 1),
        ("{% raw %}", 1),
        ("lambda: 0", 7),
        ("eval(time)", 1),
        ("open(time)", 1),
        ("time; count", 5),
        ("`id`", 1),
        ("$(id)", 1),
        ("@time", 1),
        ("time[0] > 0", 5),
        ("'a' == 'a'", 1),
        ("count ** 9 > 0", 1),
        ("count // 9 > 0", 1),
        ("time if count else time", 1),
        ("abs(*time) > 0", 5),
        ("abs(x=time) > 0", 1),
        ("time > 0 s # note", 12),
        ("1.5.2 > 0", 4),
        ("0x10 > 0", 2),
        ("1_000 > 0", 2),
        ("count := 3", 7),
        ("time\x00 > 0 s", 5),
        ("тime > 0 s", 1),
    ],
)
def test_nothing_but_the_language_gets_through(text: str, column: int) -> None:
    with pytest.raises(ExpressionError, match=f"^column {column}: "):
        compile_condition(text, fields=FIELDS)


def test_nesting_and_length_are_bounded() -> None:
    with pytest.raises(ExpressionError, match="nested deeper"):
        compile_condition("(" * 1000 + "1" + ")" * 1000, fields=FIELDS)
    with pytest.raises(ExpressionError, match="nested deeper"):
        compile_condition("-" * 1000 + "1 > 0", fields=FIELDS)
    with pytest.raises(ExpressionError, match="longer than"):
        compile_condition("1 +" * 10_000 + "1 > 0", fields=FIELDS)


def test_repeated_divisors_and_values_are_bounded() -> None:
    with pytest.raises(ExpressionError, match="more than 2000 parts"):
        compile_condition("count/(" * 40 + "count" + ")" * 40 + " > 0", fields=FIELDS)
    values = {"v0": compile_quantity("count", fields=FIELDS)}
    with pytest.raises(ExpressionError, match="more than 2000 parts"):
        for level in range(40):
            text = f"v{level} + v{level}"
            doubled = compile_quantity(text, fields=FIELDS, definitions=values)
            values[f"v{level + 1}"] = doubled
    assert len(values) == 11  # 1,024 parts are still accepted


WORDS = st.sampled_from(
    ["time", "size", "count", "and", "or", "not", "(", ")", "+", "-", "*", "/", "<", ">=", "==",
     "1", "2.5", "0", "1 MiB", "30 s", "50 %", "min(", "max(", "coalesce(", "abs(", ",", "true",
     "__import__", ".", "[", "eval(", "\n", "'", "{", "lambda"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=14).map(" ".join)))
@example("time\ud800")
@example("(" * 50)
def test_fuzzed_expressions_never_run_code_and_never_crash(text: str) -> None:
    called: list[object] = []
    kept = {name: getattr(builtins, name) for name in ("eval", "exec", "compile", "__import__")}

    def refuse(*args: object, **_: object) -> object:
        called.append(args[0])
        raise AssertionError("code was run")

    try:
        compiled = _compiled(text, refuse)
    finally:
        for name, value in kept.items():
            setattr(builtins, name, value)
    assert called == []
    if compiled is not None:
        assert TABLE.with_columns(compiled.alias("found")).height == TABLE.height


def _compiled(text: str, refuse: object) -> pl.Expr | None:
    for name in ("eval", "exec"):
        setattr(builtins, name, refuse)
    try:
        return compile_condition(text, fields=FIELDS).compute
    except ExpressionError as error:
        assert str(error).startswith("column ")
        assert "\x1b" not in str(error)
        return None


def test_the_place_is_shown_even_when_names_try_to_hide_it() -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_condition("\x1b[2J time > 0 s", fields=FIELDS)

    assert "\x1b" not in str(caught.value)
    assert "\\x1b[2J" in str(caught.value)
