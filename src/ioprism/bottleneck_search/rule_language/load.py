"""Read rule files (TOML, or YAML) and check every expression before anything runs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import Any

from ioprism.bottleneck_search.rule_language.expression import (
    BYTES,
    KEYWORDS,
    PLAIN,
    SECONDS,
    Dimension,
    Value,
    compile_condition,
    compile_quantity,
)
from ioprism.errors import ExpressionError, MissingPackageError, RuleError
from ioprism.text import MOST_NESTED, printable, read_small_text, read_toml
from ioprism.units import format_bytes, format_count, format_rate, format_seconds
from ioprism.views.records import FIELDS

LONGEST = 1000  # characters
TEXT_FIELDS = ("function",)  # fields that hold a name, not a number
_PART = re.compile(r"\{\{|\}\}|\{(?P<name>[a-z_][a-z0-9_]*)(?::(?P<form>[a-z]+))?\}|[{}]")


FORMATS: Mapping[str, Callable[[float | None], str]] = {
    "seconds": format_seconds,
    "bytes": format_bytes,
    "count": format_count,
    "percent": lambda value: "unknown" if value is None else f"{value:.1%}",
    "rate": format_rate,
    "number": lambda value: "unknown" if value is None else f"{value:.3g}",
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

    def show(self, value: float | str | None) -> str:
        """Put a value into words."""
        if isinstance(value, str) or self.name in TEXT_FIELDS:
            return printable(str(value or "unknown call"))
        return FORMATS[self.form](value)


@dataclass(frozen=True, slots=True)
class Template:
    """A message with places for values."""

    parts: tuple[str | Place, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The values that the message shows."""
        return tuple(part.name for part in self.parts if isinstance(part, Place))

    def fill(self, values: Mapping[str, float | str | None]) -> str:
        """Put values in; names from a trace are made harmless."""
        return "".join(
            part if isinstance(part, str) else part.show(values[part.name]) for part in self.parts
        )


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
        raise ExpressionError(f"unknown field {name!r}", text=text, at=at + 1)
    chosen = form or _DEFAULTS.get(dimensions[name], "number")
    if chosen not in FORMATS:
        raise ExpressionError(
            f"unknown format {chosen!r}", text=text, at=at,
            hint=f"formats are {', '.join(FORMATS)}.",
        )  # fmt: skip
    return Place(name, chosen)


BUNDLED = ("paper.toml", "more.toml")
MOST_RULES = 500
_KEY = re.compile(r"[a-z][a-z0-9_]{0,63}")
_RULE_KEYS = {"name", "condition", "explains", "enabled", "values", "reasons"}
_REASON_KEYS = {"condition", "message"}
_UNITS: Mapping[str, Dimension] = {"s": SECONDS, "B": BYTES, "": PLAIN}
DIMENSIONS: Mapping[str, Dimension] = {name: _UNITS[f.unit] for name, f in FIELDS.items()}


@dataclass(frozen=True, slots=True, eq=False)
class ReasonRule:
    """One reason that a rule may give."""

    condition: Value
    message: Template


@dataclass(frozen=True, slots=True, eq=False)
class BottleneckRule:
    """Explains bottlenecks for which its condition holds, by those of its reasons that hold."""

    key: str
    name: str
    condition: Value
    values: Mapping[str, Value]
    reasons: tuple[ReasonRule, ...]
    explains: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class RuleFile:
    """What one file says: rules by key; None switches a rule off."""

    rules: Mapping[str, BottleneckRule | None] = field(default_factory=dict)
    defaults: bool = True  # whether the bundled rules stay


def rules(*paths: Path) -> tuple[BottleneckRule, ...]:
    """Return the bundled rules, changed and added to by files in the order given.

    Raises:
        RuleError: a file cannot be read, or a rule in it is wrong.
    """
    chosen: dict[str, BottleneckRule | None] = dict(bundled_rules())
    for path in paths:
        read = read_rules(path)
        if not read.defaults:
            chosen = {}
        chosen.update(read.rules)
    return tuple(rule for rule in chosen.values() if rule is not None)


@cache
def bundled_rules() -> Mapping[str, BottleneckRule]:
    """The rules that come with ioprism, by key."""
    folder = files("ioprism.bottleneck_search.rule_language")
    rules_by_key: dict[str, BottleneckRule] = {}
    for name in BUNDLED:
        content = tomllib.loads((folder / name).read_text(encoding="utf-8"))
        rules_by_key.update({rule.key: rule for rule in _rules(content, name).values() if rule})
    return rules_by_key


def read_rules(path: Path) -> RuleFile:
    """Read and check one file."""
    name = printable(path.name)
    content = _content(path, name)
    defaults = content.pop("defaults", True)
    if not isinstance(defaults, bool):
        raise RuleError(f"{name}: `defaults` must be true or false.")
    return RuleFile(_rules(content, name), defaults)


def _content(path: Path, name: str) -> dict[str, Any]:
    try:
        content = (
            _parsed_yaml(read_small_text(path), name)
            if path.suffix in (".yaml", ".yml")
            else read_toml(path)
        )
    except FileNotFoundError:
        raise RuleError(f"{name}: no such rule file.\nHint: check the spelling.") from None
    except OSError as error:
        raise RuleError(
            f"{name}: the file cannot be read ({error.strerror}).\n"
            "Hint: give a rule file that you may read."
        ) from error
    except UnicodeDecodeError as error:
        raise RuleError(
            f"{name}: the file is not text: byte {error.start} is not UTF-8.\n"
            "Hint: give a rule file, TOML or YAML; save it as UTF-8."
        ) from error
    except ValueError as error:
        raise RuleError(
            f"{name}: this is not TOML: {printable(str(error))}.\n"
            "Hint: write tables such as [my_rule], with condition and reasons."
        ) from error
    if not isinstance(content, dict):
        raise RuleError(f"{name}: a rule file holds rules by name.")
    return content


def _parsed_yaml(text: str, name: str) -> Any:  # noqa: ANN401 - whatever the file holds
    try:
        import yaml
    except ImportError:
        raise MissingPackageError(
            needed_by="a rule file in YAML", package="pyyaml", install="'ioprism[yaml]'"
        ) from None
    try:
        depth = max(accumulate((c in "[{") - (c in "]}") for c in text), default=0)
        if depth > MOST_NESTED:  # the parser takes the square of it
            raise RuleError(
                f"{name}: lists are nested more than {MOST_NESTED} deep.\n"
                "Hint: a rule is a table with a condition and reasons."
            )
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, yaml.SafeLoader)):
            raise RuleError(  # nested aliases double at each level
                f"{name}: there is an alias (`*name`), which rule files may not have.\n"
                "Hint: write its text out."
            )
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a 30 February is a ValueError
        raise RuleError(
            f"{name}: this is not YAML: {printable(str(error))}.\n"
            "Hint: write entries such as `my_rule:`, with condition and reasons below."
        ) from error


def _rules(content: Mapping[str, Any], file: str) -> dict[str, BottleneckRule | None]:
    if len(content) > MOST_RULES:
        raise RuleError(f"{file}: there are more than {MOST_RULES} rules.")
    rules_by_key = {}
    for key, entry in content.items():
        rules_by_key[key] = _Entry(file, key, entry).rule()
    return rules_by_key


@dataclass(frozen=True, slots=True)
class _Entry:
    """One rule as the file has it."""

    file: str
    key: str
    entry: Any

    def wrong(self, what: str) -> RuleError:
        return RuleError(f"{self.file}: rule {printable(str(self.key))[:80]}: {what}")

    def rule(self) -> BottleneckRule | None:
        self._check_form()
        if self.entry.get("enabled", True) is False:
            return None
        values = self._values()
        text = self.entry.get("condition", "true")
        with self._naming("condition"):
            condition = compile_condition(text, fields=DIMENSIONS, definitions=values)
        known = {n: v.dimension for n, v in values.items()} | dict(DIMENSIONS)
        return BottleneckRule(
            key=self.key,
            name=printable(str(self.entry.get("name", self.key))),
            condition=condition,
            values=values,
            reasons=tuple(self._reasons(values, known)),
            explains=self.entry.get("explains", True) is not False,
        )

    def _check_form(self) -> None:
        if not isinstance(self.key, str) or not _KEY.fullmatch(self.key):
            raise self.wrong("a rule's key consists of lower-case letters, digits and underscores.")
        if not isinstance(self.entry, dict):
            raise self.wrong("a rule is a table with a condition and reasons.")
        unknown = {str(key) for key in self.entry} - _RULE_KEYS
        if unknown:
            raise self.wrong(
                f"there is no {printable(min(unknown))!r} in a rule.\n"
                f"Hint: a rule has {', '.join(sorted(_RULE_KEYS))}."
            )

    def _values(self) -> dict[str, Value]:
        entries = self.entry.get("values", {})
        if not isinstance(entries, dict):
            raise self.wrong("`values` is a table of names and expressions.")
        known: dict[str, Value] = {}
        for name, text in entries.items():
            taken = name in DIMENSIONS or name in KEYWORDS or name in TEXT_FIELDS
            if not isinstance(name, str) or not _KEY.fullmatch(name) or taken:
                raise self.wrong(f"the value {printable(str(name))[:80]!r} needs another name.")
            with self._naming(f"values.{name}"):
                known[name] = compile_quantity(text, fields=DIMENSIONS, definitions=known)
        return known

    @contextmanager
    def _naming(self, place: str) -> Iterator[None]:
        """Say of an expression that is wrong where it is."""
        try:
            yield
        except ExpressionError as error:
            raise self.wrong(f"{place}, {error}") from error

    def _reasons(
        self, values: Mapping[str, Value], known: Mapping[str, Dimension | None]
    ) -> Iterator[ReasonRule]:
        entries = self.entry.get("reasons", [])
        if not isinstance(entries, list) or not entries:
            raise self.wrong("a rule needs at least one entry in `reasons`.")
        for number, entry in enumerate(entries, start=1):
            where = f"reason {number}"
            if not isinstance(entry, dict) or not {str(k) for k in entry} <= _REASON_KEYS:
                raise self.wrong(f"{where} has a message and may have a condition, nothing else.")
            message = entry.get("message")
            if not isinstance(message, str) or not message:
                raise self.wrong(f"{where} needs a message.")
            with self._naming(f"message of {where}"):
                template = compile_template(message, dimensions=known)
            text = entry.get("condition", "true")
            with self._naming(f"condition of {where}"):
                condition = compile_condition(text, fields=DIMENSIONS, definitions=values)
            yield ReasonRule(condition, template)
