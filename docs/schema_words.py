"""A few words to say what a JSON document holds; result types say it themselves."""

from __future__ import annotations

import enum
import inspect
import re
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Schema = dict[str, Any]

ANY: Schema = {}
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
PLAIN = {str: TEXT, Path: TEXT, float: NUMBER, int: WHOLE, bool: FLAG, type(None): {"type": "null"}}


def keys(needed: Mapping[str, Schema], **optional: Schema) -> Schema:
    """An object that has these keys, and may have the optional ones; others may come."""
    return {
        "type": "object",
        "required": list(needed),
        "properties": {**needed, **optional},
    }


def each(schema: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": schema}


def named(schema: Schema) -> Schema:
    """An object whose keys are names from the trace, and whose values are alike."""
    return {"type": "object", "additionalProperties": schema}


def maybe(schema: Schema) -> Schema:
    """The value, or null where there is none."""
    return one_of(schema, PLAIN[type(None)])


def one_of(*schemas: Schema) -> Schema:
    """Any of these; plain types are joined in one list."""
    if all(set(schema) == {"type"} for schema in schemas):
        kinds = [schema["type"] for schema in schemas]
        return {
            "type": [one for kind in kinds for one in ([kind] if isinstance(kind, str) else kind)]
        }
    return {"anyOf": list(schemas)}


def said(schema: Schema, text: str) -> Schema:
    """The same, with words for people."""
    return {**schema, "description": text}


def joined(*objects: Schema) -> Schema:
    """One object with the keys of all."""
    every = [key for one in objects for key in one["required"]]
    properties = {key: value for one in objects for key, value in one["properties"].items()}
    return {"type": "object", "required": list(dict.fromkeys(every)), "properties": properties}


def some(one: Schema, *chosen: str) -> Schema:
    """An object with some of the keys of another."""
    return keys({key: one["properties"][key] for key in chosen})


def of(result: type, *, without: Iterable[str] = (), **other: Schema) -> Schema:
    """The fields of a result type, each with the comment beside it; `other` replaces or adds."""
    hints, told = get_type_hints(result), comments(result)
    held = {
        f.name: _of_type(hints[f.name]) for f in fields(result) if f.name not in (*without, *other)
    }
    held = {name: said(value, told[name]) if name in told else value
            for name, value in held.items()}  # fmt: skip
    return keys({**held, **other})


def comments(result: type) -> dict[str, str]:
    """Return the comment beside each field of a class, or above it, inherited ones included."""
    told, above = {}, ""
    ours = [kind for kind in reversed(result.__mro__) if kind.__module__.startswith("ioprism.")]
    for line in "".join(map(inspect.getsource, ours)).splitlines():
        alone = re.match(r"^    # (.+)$", line)
        declared = re.match(r"^    (\w+): .*?(?:  # (.+))?$", line)
        if declared and (text := declared[2] or above):
            told[declared[1]] = text
        above = f"{above} {alone[1]}".strip() if alone else ""
    return told


def purpose(result: type) -> str:
    """Return the first sentence of a class, in the words of JSON."""
    line = (inspect.getdoc(result) or "").partition("\n")[0].rstrip(".").replace("None", "null")
    return line if line[1:2].isupper() else line[:1].lower() + line[1:]


def _of_type(hint: Any) -> Schema:  # noqa: ANN401 - any annotation
    origin, inner = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        return dict(PLAIN[hint])
    if origin in (Union, types.UnionType):
        return one_of(*map(_of_type, inner))
    if origin is Literal:
        return {"enum": list(inner)}
    if inspect.isclass(origin) and issubclass(origin, Mapping):
        return named(_of_type(inner[1]))
    if inspect.isclass(origin) and issubclass(origin, Sequence):
        return _of_sequence(inner)
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if hasattr(hint, "__dataclass_fields__"):
        return said(of(hint), purpose(hint))
    return ANY


def _of_sequence(inner: tuple[Any, ...]) -> Schema:
    items = dict.fromkeys(hint for hint in inner if hint is not Ellipsis)
    held = each(one_of(*map(_of_type, items)) if len(items) > 1 else _of_type(inner[0]))
    count = len(inner)
    return (
        held if count == 1 or Ellipsis in inner else {**held, "minItems": count, "maxItems": count}
    )
