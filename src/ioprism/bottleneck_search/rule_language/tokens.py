"""Cut the text of a rule into words, numbers with units, and signs, each with its position."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ioprism.errors import ExpressionError
from ioprism.text import printable

LONGEST = 4000  # characters in one expression

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
_UNIT_NAMES = "|".join(re.escape(name) for name in sorted(UNITS, key=len, reverse=True))
_TOKEN = re.compile(
    rf"""
    (?P<space>\s+)
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
      (?:\s*(?P<unit>{_UNIT_NAMES})(?![A-Za-z0-9_µ]))?
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<sign><=|>=|==|!=|[-+*/()<>,])
    """,
    re.VERBOSE | re.ASCII,
)
KEYWORDS = ("and", "or", "not", "true", "false")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of an expression."""

    kind: Literal["number", "word", "sign", "end"]
    text: str
    at: int  # position of its first character
    value: float = 0.0
    dimension: Dimension = PLAIN


def tokens(text: str) -> list[Token]:
    """Cut an expression into tokens; the last one marks the end.

    Raises:
        ExpressionError: a character or number has no place in the language.
    """
    if len(text) > LONGEST:
        raise ExpressionError(f"it is longer than {LONGEST} characters", text=text, at=LONGEST)
    found = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _no_place(text, position)
        if match["space"] is None:
            found.append(_token(match, text))
        position = match.end()
    return [*found, Token("end", "", len(text))]


def _token(match: re.Match[str], text: str) -> Token:
    at = match.start()
    if match["number"] is not None:
        scale, dimension = UNITS[match["unit"]] if match["unit"] else (1.0, PLAIN)
        value = float(match["number"]) * scale
        if not math.isfinite(value):
            raise ExpressionError("the number is too large", text=text, at=at)
        if text[match.end() : match.end() + 1].isalpha():
            raise ExpressionError(
                "the number is followed by a word that is not a unit", text=text, at=match.end(),
                hint=f"units are {', '.join(UNITS)}.",
            )  # fmt: skip
        return Token("number", match.group(), at, value, dimension)
    if match["word"] is not None:
        return Token("word", match["word"], at)
    return Token("sign", match["sign"], at)


def _no_place(text: str, position: int) -> ExpressionError:
    character = text[position]
    hints = {
        "=": "compare with `==`.",
        ".": "there are no attributes; only the listed fields exist.",
        "[": "there are no lists or indices.",
        "{": "there are no templates inside expressions.",
        "&": "write `and`.",
        "|": "write `or`.",
        "!": "write `not`.",
        "^": "there are no powers.",
    }
    return ExpressionError(
        f"{printable(character)!r} is not allowed in an expression",
        text=text,
        at=position,
        hint=hints.get(character),
    )
