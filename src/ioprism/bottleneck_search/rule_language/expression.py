"""The safe rule language: text to a checked tree to a polars expression, and nothing else.

    expression  = disjunction
    disjunction = conjunction {"or" conjunction}
    conjunction = negation {"and" negation}
    negation    = "not" negation | comparison
    comparison  = sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
    sum         = product {("+" | "-") product}
    product     = factor {("*" | "/") factor}
    factor      = "-" factor | number [unit] | field | function "(" list ")" | "(" expression ")"

Every value has a dimension (seconds, bytes, plain, or true/false), checked before anything is
computed: seconds are never compared with bytes. Dividing by zero gives no value, and a
condition without a value is false.
"""

from __future__ import annotations

import difflib
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, reduce
from types import MappingProxyType

import polars as pl

from ioprism.bottleneck_search.rule_language.tokens import KEYWORDS, PLAIN, Dimension, Token, tokens
from ioprism.bottleneck_search.rule_language.values import (
    COMPARISONS,
    FUNCTIONS,
    Value,
    describe,
    scaled,
)
from ioprism.errors import ExpressionError
from ioprism.text import printable

DEEPEST = 60  # nested parentheses and signs
MOST_PARTS = 2000  # fields and numbers once values stand written out; our rules have up to 15


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
    value = _parse(text, fields, definitions, _Parser.condition)
    return replace(value, compute=value.compute.fill_null(False))


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
    return _parse(text, fields, definitions, _Parser.quantity)


def _parse(
    text: str,
    fields: Mapping[str, Dimension],
    definitions: Mapping[str, Value],
    wanted: Callable[[_Parser, Value], Value],
) -> Value:
    if not isinstance(text, str):
        raise ExpressionError("an expression must be text", text=printable(str(text))[:80], at=0)
    parser = _Parser(text, tokens(text), fields, definitions)
    value = parser.disjunction()
    parser.expect_end()
    return replace(wanted(parser, value), parts=parser.parts)


class _Parser:
    """Recursive descent over the tokens; checks dimensions as it goes."""

    def __init__(
        self,
        text: str,
        found: list[Token],
        fields: Mapping[str, Dimension],
        definitions: Mapping[str, Value],
    ) -> None:
        self.text = text
        self.tokens = found
        self.fields = fields
        self.definitions = definitions
        self.position = 0
        self.depth = 0
        self.parts = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.position]

    def error(self, message: str, at: int, hint: str | None = None) -> ExpressionError:
        return ExpressionError(message, text=self.text, at=at, hint=hint)

    def take(self, *texts: str) -> Token | None:
        token = self.next
        if token.kind in ("sign", "word") and token.text in texts:
            self.position += 1
            return token
        return None

    def expect(self, text: str) -> None:
        if self.take(text) is None:
            raise self.error(f"{text!r} is missing here", self.next.at)

    def expect_end(self) -> None:
        if self.next.kind != "end":
            raise self.error(
                f"the expression should end before {self.next.text!r}", self.next.at,
                "chain comparisons with `and`.",
            )  # fmt: skip

    def nested(self, parse: Callable[[], Value]) -> Value:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"it is nested deeper than {DEEPEST} levels", self.next.at)
        value = parse()
        self.depth -= 1
        return value

    def grow(self, parts: int, at: int) -> None:
        self.parts += parts
        if self.parts > MOST_PARTS:
            raise self.error(
                f"it has more than {MOST_PARTS} parts once its values are written out", at,
                "a value counts as often as it is used, and a divisor twice.",
            )  # fmt: skip

    def disjunction(self) -> Value:
        return self._joined("or", operator.or_, self.conjunction)

    def conjunction(self) -> Value:
        return self._joined("and", operator.and_, self.negation)

    def _joined(
        self,
        word: str,
        join: Callable[[pl.Expr, pl.Expr], pl.Expr],
        part: Callable[[], Value],
    ) -> Value:
        left = part()
        while self.take(word):
            left = self.condition(left)
            right = self.condition(part())
            compute = join(left.compute, right.compute)
            left = Value(compute, None, left.at, left.fields | right.fields)
        return left

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

    def negation(self) -> Value:
        token = self.take("not")
        if token is None:
            return self.comparison()
        inner = self.condition(self.nested(self.negation))
        return Value(~inner.compute, None, token.at, inner.fields)

    def comparison(self) -> Value:
        left = self.sum()
        token = self.take(*COMPARISONS)
        if token is None:
            return left
        right = self.sum()
        self.same_dimension(self.quantity(left), self.quantity(right), token.at)
        compute = COMPARISONS[token.text](left.compute, right.compute)
        return Value(compute, None, left.at, left.fields | right.fields)

    def sum(self) -> Value:
        left = self.product()
        while token := self.take("+", "-"):
            right = self.quantity(self.product())
            dimension = self.same_dimension(self.quantity(left), right, token.at)
            join = operator.add if token.text == "+" else operator.sub
            compute = join(left.compute, right.compute)
            left = Value(compute, dimension, left.at, left.fields | right.fields)
        return left

    def product(self) -> Value:
        left = self.factor()
        while token := self.take("*", "/"):
            before, divide = self.parts, token.text == "/"
            right = self.quantity(self.factor())
            left = scaled(self.quantity(left), right, divide=divide)
            if divide:  # the divisor is also compared with zero
                self.grow(self.parts - before, token.at)
        return left

    def same_dimension(self, left: Value, right: Value, at: int) -> Dimension:
        if left.is_zero or right.is_zero or left.dimension == right.dimension:
            shown = right if left.is_zero else left
            return shown.dimension or PLAIN
        raise self.error(
            f"{describe(left.dimension)} cannot be combined with {describe(right.dimension)}", at,
            "give numbers a unit, such as 1 MiB, 30 s or 50 %.",
        )  # fmt: skip

    def factor(self) -> Value:
        token = self.next
        if self.take("-"):
            inner = self.quantity(self.nested(self.factor))
            return Value(-inner.compute, inner.dimension, token.at, inner.fields, inner.is_zero)
        if self.take("("):
            value = self.nested(self.disjunction)
            self.expect(")")
            return value
        if token.kind == "number":
            self.position += 1
            self.grow(1, token.at)
            number = pl.lit(token.value, dtype=pl.Float64)
            return Value(number, token.dimension, token.at, frozenset(), token.value == 0)
        if token.kind == "word":
            return self.word(token)
        raise self.error("a field, a number or a parenthesis is missing here", token.at)

    def word(self, token: Token) -> Value:
        if token.text in ("true", "false"):
            self.position += 1
            return Value(pl.lit(token.text == "true"), None, token.at, frozenset())
        if token.text in KEYWORDS:
            raise self.error(f"{token.text!r} is not allowed here", token.at)
        self.position += 1
        if self.take("("):
            return self.nested(partial(self.call, token))
        if token.text in self.definitions:
            self.grow(self.definitions[token.text].parts, token.at)
            return replace(self.definitions[token.text], at=token.at)
        if token.text not in self.fields:
            raise self.error(f"there is no field {token.text!r}", token.at, self.nearest(token))
        self.grow(1, token.at)
        field = pl.col(token.text).cast(pl.Float64)
        return Value(field, self.fields[token.text], token.at, frozenset({token.text}))

    def nearest(self, token: Token) -> str:
        close = difflib.get_close_matches(token.text, self.fields, n=3)
        if close:
            return f"did you mean {' or '.join(close)}?"
        return "`ioprism rules check --fields` lists the fields."

    def call(self, name: Token) -> Value:
        if name.text not in FUNCTIONS:
            raise self.error(
                f"there is no function {name.text!r}", name.at,
                f"functions are {', '.join(FUNCTIONS)}.",
            )  # fmt: skip
        arguments = [self.quantity(self.disjunction())]
        while self.take(","):
            arguments.append(self.quantity(self.disjunction()))
        self.expect(")")
        most, compute = FUNCTIONS[name.text]
        if len(arguments) > most:
            raise self.error(f"{name.text} takes {most} argument", arguments[most].at)
        dimension = reduce(self.agreed, arguments[1:], arguments[0].dimension)
        every = frozenset[str]().union(*(value.fields for value in arguments))
        return Value(compute([v.compute for v in arguments]), dimension, name.at, every)

    def agreed(self, known: Dimension | None, value: Value) -> Dimension | None:
        if value.is_zero or value.dimension == known:
            return known
        raise self.error(
            f"{describe(known)} cannot be combined with {describe(value.dimension)}", value.at
        )
