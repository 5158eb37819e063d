"""Messages of rules: text with formatted fields, and nothing else in braces."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ioprism.bottleneck_search.rule_language.tokens import BYTES, PLAIN, SECONDS, Dimension
from ioprism.errors import ExpressionError
from ioprism.text import printable
from ioprism.units import format_bytes, format_count, format_rate, format_seconds

LONGEST = 1000  # characters
TEXT_FIELDS = ("function",)  # fields that hold a name, not a number
_PART = re.compile(r"\{\{|\}\}|\{(?P<name>[a-z_][a-z0-9_]*)(?::(?P<form>[a-z]+))?\}|[{}]")


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1%}"


FORMATS: Mapping[str, Callable[[float | None], str]] = {
    "seconds": format_seconds,
    "bytes": format_bytes,
    "count": format_count,
    "percent": _percent,
    "rate": format_rate,
    "number": _number,
}
_DEFAULTS: Mapping[Dimension | None, str] = {
    SECONDS: "seconds",
    BYTES: "bytes",
    PLAIN: "count",
    (-1, 1): "rate",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value goes in a message, and how it is shown."""

    name: str
    form: str


@dataclass(frozen=True, slots=True)
class Template:
    """A message with places for values."""

    parts: tuple[str | Place, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The values that the message shows."""
        return tuple(part.name for part in self.parts if isinstance(part, Place))

    def filled(self, values: Mapping[str, float | str | None]) -> str:
        """Put values in; names from a trace are made harmless."""
        return "".join(
            part if isinstance(part, str) else _shown(part, values[part.name])
            for part in self.parts
        )


def _shown(place: Place, value: float | str | None) -> str:
    if isinstance(value, str) or place.name in TEXT_FIELDS:
        return printable(str(value or "unknown call"))
    return FORMATS[place.form](value)


def compile_template(text: str, *, dimensions: Mapping[str, Dimension | None]) -> Template:
    """Cut a message into text and places.

    Raises:
        ExpressionError: a place names no field or format, or a brace stands alone.
    """
    if len(text) > LONGEST:
        raise ExpressionError(f"it is longer than {LONGEST} characters", text=text, at=LONGEST)
    parts: list[str | Place] = []
    position = 0
    for match in _PART.finditer(text):
        parts.append(text[position : match.start()])
        parts.append(_part(match, text, dimensions))
        position = match.end()
    parts.append(text[position:])
    return Template(tuple(printable(p) if isinstance(p, str) else p for p in parts if p))


def _part(
    match: re.Match[str], text: str, dimensions: Mapping[str, Dimension | None]
) -> str | Place:
    if match.group() in ("{{", "}}"):
        return match.group()[0]
    name, form, at = match["name"], match["form"], match.start()
    if name is None:
        raise ExpressionError(
            "only {field} or {field:format} is allowed in braces", text=text, at=at,
            hint="write {{ for a brace itself.",
        )  # fmt: skip
    if name in TEXT_FIELDS and form is None:
        return Place(name, "")
    if name not in dimensions:
        raise ExpressionError(f"there is no field {name!r}", text=text, at=at + 1)
    chosen = form or _DEFAULTS.get(dimensions[name], "number")
    if chosen not in FORMATS:
        raise ExpressionError(
            f"there is no format {chosen!r}", text=text, at=at,
            hint=f"formats are {', '.join(FORMATS)}.",
        )  # fmt: skip
    return Place(name, chosen)
