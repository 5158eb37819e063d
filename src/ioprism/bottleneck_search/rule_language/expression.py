"""The safe rule language: text to a checked tree to a polars expression, and nothing else.

Python's own parser reads the text; a whitelist of its nodes is turned into columns. Numbers may
have a unit. Every value has a dimension (seconds, bytes, plain, or true/false), checked before
anything is computed: seconds are never compared with bytes. Dividing by zero has no value, and a
condition without a value is false.
"""

from __future__ import annotations

import ast
import difflib
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from types import MappingProxyType

import polars as pl

from ioprism.errors import ExpressionError
from ioprism.text import printable

LONGEST = 4000  # characters in one expression
DEEPEST = 60  # nested operations
MOST_PARTS = 2000  # fields and numbers with all values written out; our rules have up to 15

Dimension = tuple[int, int]  # powers of seconds and of bytes
PLAIN: Dimension = (0, 0)
SECONDS: Dimension = (1, 0)
BYTES: Dimension = (0, 1)

UNITS: Mapping[str, tuple[float, Dimension]] = {
    "%": (0.01, PLAIN),
    "ns": (1e-9, SECONDS),
    "us": (1e-6, SECONDS),
    "µs": (1e-6, SECONDS),
    "ms": (1e-3, SECONDS),
    "s": (1.0, SECONDS),
    "min": (60.0, SECONDS),
    "h": (3600.0, SECONDS),
    "B": (1.0, BYTES),
    **{f"{p}B": (1000.0**n, BYTES) for n, p in enumerate("kMGTPE", start=1)},
    **{f"{p}iB": (1024.0**n, BYTES) for n, p in enumerate("KMGTPE", start=1)},
}
KEYWORDS = ("and", "or", "not", "true", "false")
_UNIT_NAMES = "|".join(re.escape(name) for name in sorted(UNITS, key=len, reverse=True))
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)"
    rf"(?:\s*(?P<unit>{_UNIT_NAMES})(?![A-Za-z0-9_µ]))?",
    re.ASCII,
)
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_\s()<>=!,+*/-]", re.ASCII)
_HINTS = {
    "=": "compare with `==`.",
    ".": "attributes do not exist; use the listed fields.",
    "[": "lists and indices do not exist.",
    "{": "templates do not exist inside expressions.",
    "&": "write `and`.",
    "|": "write `or`.",
    "!": "write `not`.",
    "^": "powers do not exist.",
}


@dataclass(frozen=True, slots=True)
class Value:
    """A checked part of an expression; `dimension` is None for true and false."""

    compute: pl.Expr
    dimension: Dimension | None
    at: int
    fields: frozenset[str]
    is_zero: bool = False  # zero fits every dimension
    parts: int = 1  # fields and numbers in a whole expression


# How many arguments at most, and what it computes.
FUNCTIONS: Mapping[str, tuple[int, Callable[[list[pl.Expr]], pl.Expr]]] = {
    "abs": (1, lambda values: values[0].abs()),
    "min": (9, pl.min_horizontal),
    "max": (9, pl.max_horizontal),
    "coalesce": (9, pl.coalesce),
}
_JOINS: Mapping[type[ast.boolop], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    ast.And: operator.and_,
    ast.Or: operator.or_,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def compile_condition(
    text: str,
    *,
    fields: Mapping[str, Dimension],
    definitions: Mapping[str, Value] = MappingProxyType({}),
) -> Value:
    """Turn text into a condition; no value counts as false.

    Raises:
        ExpressionError: the text is not a condition over these fields.
    """
    compiler = _Compiler(text, fields, definitions)
    value = compiler.condition(compiler.value(_tree(text)))
    return replace(value, compute=value.compute.fill_null(False), parts=compiler.parts)


def compile_quantity(
    text: str,
    *,
    fields: Mapping[str, Dimension],
    definitions: Mapping[str, Value] = MappingProxyType({}),
) -> Value:
    """Turn text into a number.

    Raises:
        ExpressionError: the text is not a quantity over these fields.
    """
    compiler = _Compiler(text, fields, definitions)
    value = compiler.quantity(compiler.value(_tree(text)))
    return replace(value, parts=compiler.parts)


def _number(match: re.Match[str], text: str) -> tuple[float, Dimension]:
    scale, dimension = UNITS[match["unit"]] if match["unit"] else (1.0, PLAIN)
    value = float(match["number"]) * scale
    if not math.isfinite(value):
        raise ExpressionError("the number is too large", text=text, at=match.start())
    if re.match(r"[\w.]", text[match.end() :]):
        raise ExpressionError(
            "the number is followed by a word that is not a unit", text=text, at=match.end(),
            hint=f"units are {', '.join(UNITS)}.",
        )  # fmt: skip
    return value, dimension


def _tree(text: str) -> ast.expr:
    """Parse text whose numbers and units became names of the same length, so that places stay."""
    plain = _NUMBER.sub(lambda match: "_" * len(match.group()), text)
    if forbidden := _FORBIDDEN.search(plain):
        raise ExpressionError(
            f"{printable(forbidden.group())!r} is not allowed in an expression",
            text=text, at=forbidden.start(), hint=_HINTS.get(forbidden.group()),
        )  # fmt: skip
    spaced = re.sub(r"\s", " ", plain)
    start = len(spaced) - len(spaced.lstrip())  # Python would take it for an indentation
    try:
        parsed = ast.parse(spaced[start:], mode="eval")
    except SyntaxError as error:
        at = start + error.offset - 1 if error.offset else len(text)  # 0: the end
        if "too many nested" in str(error.msg):
            raise ExpressionError(_TOO_DEEP, text=text, at=at) from None
        if "never closed" in str(error.msg):
            raise ExpressionError("this '(' is not closed", text=text, at=at) from None
        raise _syntax_error(text, at) from None
    except (RecursionError, MemoryError):
        raise ExpressionError(_TOO_DEEP, text=text, at=0) from None
    for node in ast.walk(parsed):
        if isinstance(node, ast.expr):
            node.col_offset += start
    return parsed.body


_TOO_DEEP = f"it is nested deeper than {DEEPEST} levels"


def _syntax_error(text: str, at: int) -> ExpressionError:
    word = re.match(r"\w+|==|<=|>=|!=|.", text[at:], re.DOTALL)
    if word is None or not word.group().strip():
        return ExpressionError(
            "a field, a number or a parenthesis is missing here", text=text, at=at
        )
    shown = printable(word.group())
    hint = _HINTS.get(shown, "join conditions with `and` or `or`.")
    return ExpressionError(f"{shown!r} is not allowed here", text=text, at=at, hint=hint)


class _Compiler:
    """Walks the tree of one expression; checks dimensions as it goes."""

    def __init__(
        self, text: str, fields: Mapping[str, Dimension], definitions: Mapping[str, Value]
    ) -> None:
        if not isinstance(text, str):
            raise ExpressionError(
                "an expression must be text", text=printable(str(text))[:80], at=0
            )
        if len(text) > LONGEST:
            raise ExpressionError(f"it is longer than {LONGEST} characters", text=text, at=LONGEST)
        self.text, self.fields, self.definitions = text, fields, definitions
        self.numbers = {match.start(): _number(match, text) for match in _NUMBER.finditer(text)}
        self.depth = self.parts = 0

    def error(self, message: str, at: int, hint: str | None = None) -> ExpressionError:
        return ExpressionError(message, text=self.text, at=at, hint=hint)

    def value(self, node: ast.expr) -> Value:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(_TOO_DEEP, node.col_offset)
        match node:
            case ast.BoolOp(op=joining, values=inner):
                parts = list(map(self.value, inner))
                joined = reduce(_JOINS[type(joining)], [self.condition(p).compute for p in parts])
                fields = frozenset[str]().union(*(part.fields for part in parts))
                value = Value(joined, None, parts[0].at, fields)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                inside = self.condition(self.value(inner))
                value = Value(~inside.compute, None, node.col_offset, inside.fields)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                inside = self.quantity(self.value(inner))
                value = replace(inside, compute=-inside.compute, at=node.col_offset)
            case ast.Compare(ops=[operation], comparators=[_]) if type(operation) in _COMPARISONS:
                value = self.comparison(node)
            case ast.Compare(comparators=[_, second, *_]):
                raise self.error(
                    "comparisons cannot be chained", second.col_offset, "join them with `and`."
                )
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                value = self.sum(node)
            case ast.BinOp(op=ast.Mult() | ast.Div()):
                value = self.product(node)
            case ast.Call(func=ast.Name(), keywords=[]):
                value = self.call(node)
            case ast.Name():
                value = self.name(node)
            case _:
                raise self.error(
                    "only fields, numbers, functions, comparisons and + - * / are allowed",
                    node.col_offset,
                )
        self.depth -= 1
        return value

    def condition(self, value: Value) -> Value:
        if value.dimension is not None:
            raise self.error(
                "this is a quantity, and true or false is needed", value.at,
                "compare it with something.",
            )  # fmt: skip
        return value

    def quantity(self, value: Value) -> Value:
        if value.dimension is None:
            raise self.error("this is true or false, and a quantity is needed", value.at)
        return value

    def count_parts(self, parts: int, at: int) -> None:
        self.parts += parts
        if self.parts > MOST_PARTS:
            raise self.error(
                f"it has more than {MOST_PARTS} parts once its values are written out", at,
                "a value counts as often as it is used, and a divisor twice.",
            )  # fmt: skip

    def comparison(self, node: ast.Compare) -> Value:
        left = self.quantity(self.value(node.left))
        right = self.quantity(self.value(node.comparators[0]))
        self.same_dimension(left, right)
        compute = _COMPARISONS[type(node.ops[0])](left.compute, right.compute)
        return Value(compute, None, left.at, left.fields | right.fields)

    def sum(self, node: ast.BinOp) -> Value:
        left, right = self.quantity(self.value(node.left)), self.quantity(self.value(node.right))
        join = operator.add if isinstance(node.op, ast.Add) else operator.sub
        dimension = self.same_dimension(left, right)
        return Value(
            join(left.compute, right.compute), dimension, left.at, left.fields | right.fields
        )

    def product(self, node: ast.BinOp) -> Value:
        left, before = self.quantity(self.value(node.left)), self.parts
        right = self.quantity(self.value(node.right))
        divide = isinstance(node.op, ast.Div)
        if divide:  # the divisor is also compared with zero
            self.count_parts(self.parts - before, right.at)
        sign = -1 if divide else 1
        one, other = left.dimension or PLAIN, right.dimension or PLAIN
        dimension = (one[0] + sign * other[0], one[1] + sign * other[1])
        if divide and right.is_zero:
            return Value(pl.lit(None, dtype=pl.Float64), dimension, left.at, frozenset())
        compute = left.compute * right.compute
        if divide:
            compute = pl.when(right.compute != 0).then(left.compute / right.compute)
        zero = left.is_zero or right.is_zero
        return Value(compute, dimension, left.at, left.fields | right.fields, zero)

    def same_dimension(self, left: Value, right: Value) -> Dimension:
        if left.is_zero or right.is_zero or left.dimension == right.dimension:
            return (right if left.is_zero else left).dimension or PLAIN
        raise self.error(
            f"{describe(left.dimension)} cannot be combined with {describe(right.dimension)}",
            right.at, "give numbers a unit, such as 1 MiB, 30 s or 50 %.",
        )  # fmt: skip

    def name(self, node: ast.Name) -> Value:
        name, at = node.id, node.col_offset
        if at in self.numbers:
            number, dimension = self.numbers[at]
            self.count_parts(1, at)
            literal = pl.lit(number, dtype=pl.Float64)
            return Value(literal, dimension, at, frozenset(), number == 0)
        if name in ("true", "false"):
            return Value(pl.lit(name == "true"), None, at, frozenset())
        if name in self.definitions:
            self.count_parts(self.definitions[name].parts, at)
            return replace(self.definitions[name], at=at)
        if name not in self.fields:
            raise self.error(f"unknown field {name!r}", at, self.nearest(name))
        self.count_parts(1, at)
        return Value(pl.col(name).cast(pl.Float64), self.fields[name], at, frozenset({name}))

    def nearest(self, name: str) -> str:
        close = difflib.get_close_matches(name, self.fields, n=3)
        if close:
            return f"did you mean {' or '.join(close)}?"
        return "`ioprism rules check --fields` lists the fields."

    def call(self, node: ast.Call) -> Value:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        at = node.col_offset
        if name not in FUNCTIONS:
            raise self.error(
                f"unknown function {name!r}", at, f"functions are {', '.join(FUNCTIONS)}."
            )
        most, compute = FUNCTIONS[name]
        if not 1 <= len(node.args) <= most:
            place = node.args[most].col_offset if node.args else at
            wanted = "1 argument" if most == 1 else f"1 to {most} arguments"
            raise self.error(f"{name} takes {wanted}", place)
        values = [self.quantity(self.value(argument)) for argument in node.args]
        for value in values[1:]:
            self.same_dimension(values[0], value)
        fields = frozenset[str]().union(*(value.fields for value in values))
        return Value(compute([v.compute for v in values]), values[0].dimension, at, fields)


def describe(dimension: Dimension | None) -> str:
    """Name a dimension for people."""
    names = {None: "true or false", PLAIN: "a plain number", (1, 0): "seconds", (0, 1): "bytes",
             (-1, 1): "bytes per second", (-1, 0): "a rate"}  # fmt: skip
    return names.get(
        dimension, f"seconds^{(dimension or PLAIN)[0]} bytes^{(dimension or PLAIN)[1]}"
    )
