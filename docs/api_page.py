"""The Python API as a page: every public name, its parameters or fields, from the code itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from types import ModuleType
from typing import Any, get_type_hints

import ioprism
from benchmarks import synthetic
from docs.schema_words import comments
from ioprism import client, servers, write_time
from ioprism.model.result import Result
from ioprism.model.schema import Table

MODULES: tuple[ModuleType, ...] = (ioprism, servers, write_time, client, synthetic)
LINE = 90  # characters that a signature may take
_SECTION = re.compile(r"^(Args|Raises|Returns):$")


def page() -> str:
    """Return the page."""
    lines = ["# Python API\n", *_preface()]
    for module in MODULES:
        lines += [f"## {module.__name__}\n", *_prose(inspect.getdoc(module) or "")]
        for name in public_names(module):
            lines += list(_entry(name, getattr(module, name)))
    lines += ["## What results are made of\n"]
    for kind in parts():
        lines += list(_class(kind.__name__, kind))
    return "\n".join(lines)


def _preface() -> Iterator[str]:
    yield "There is one function per command. What most of them return has `to_dict()` (the JSON of"
    yield "the command), `to_frame()` (a polars table) and `summary()`, and shows in notebooks."
    yield "[Errors](errors.md) and [settings](settings.md) have pages of their own.\n"


def public_names(module: ModuleType) -> list[str]:
    """Return what a module offers, functions before classes; errors are on another page."""
    offered = getattr(module, "__all__", None) or _defined(module)
    things = {name: getattr(module, name) for name in offered if not name.startswith("_")}
    wanted = [name for name, thing in things.items() if _is_documented_here(thing)]
    return sorted(wanted, key=lambda name: (isinstance(things[name], type), name))


def _defined(module: ModuleType) -> list[str]:
    own = vars(module).items()
    return [name for name, thing in own if getattr(thing, "__module__", "") == module.__name__]


def _is_documented_here(thing: object) -> bool:
    is_error = isinstance(thing, type) and issubclass(thing, BaseException)
    return not is_error and not isinstance(thing, ModuleType)


def parts() -> list[type]:
    """Return the classes of fields of public results that are not public by name."""
    named = [getattr(m, name) for m in MODULES for name in public_names(m)]
    waiting = [thing for thing in named if isinstance(thing, type)]
    found: dict[type, None] = {}
    while waiting:
        kind = waiting.pop()
        if kind in found:
            continue
        found[kind] = None
        waiting += _field_types(kind)
    return sorted(set(found) - set(named), key=lambda kind: (kind.__name__, kind.__module__))


def _field_types(kind: type) -> list[type]:
    if not is_dataclass(kind):
        return []
    try:
        hints = get_type_hints(kind)
    except NameError:  # types that are imported for the type checker alone
        return []
    return [one for hint in hints.values() for one in _classes(hint) if _is_result(one)]


def _classes(hint: Any) -> Iterator[type]:  # noqa: ANN401 - any annotation
    if isinstance(hint, type):
        yield hint
    for inner in getattr(hint, "__args__", ()):
        yield from _classes(inner)


def _is_result(kind: type) -> bool:
    return is_dataclass(kind) and kind.__module__.startswith("ioprism.")


def _entry(name: str, thing: Any) -> Iterator[str]:  # noqa: ANN401 - any public name
    if isinstance(thing, type):
        yield from _class(name, thing)
    elif callable(thing):
        yield from (f"### {name}\n", "```python", f"{name}{_signature(thing)}", "```\n")
        yield from _prose(inspect.getdoc(thing) or "")
    elif isinstance(thing, Table):
        yield from (f"### {name}\n", f"A table: {thing.purpose}\n")


def _signature(function: Callable[..., object]) -> str:
    known = inspect.signature(function)
    pieces = [piece for piece in _parameters(known) if piece != "self"]
    line = f"({', '.join(pieces)}) -> {known.return_annotation}"
    if len(line) < LINE:
        return line
    return (
        "(\n" + "".join(f"    {piece},\n" for piece in pieces) + f") -> {known.return_annotation}"
    )


def _parameters(known: inspect.Signature) -> Iterator[str]:
    """Yield parameters as they are written in the code, annotations unquoted."""
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}
    keyword_only = False
    for one in known.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not keyword_only:
            yield "*"
        keyword_only |= one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        kind = "" if one.annotation is one.empty else f": {one.annotation}"
        default = "" if one.default is one.empty else f" = {_shown(one.default)}"
        yield f"{stars.get(one.kind.name, '')}{one.name}{kind}{default}"


def _class(name: str, kind: type) -> Iterator[str]:
    yield f"### {name}\n"
    yield from _prose(inspect.getdoc(kind) or "")
    if is_dataclass(kind):
        yield from field_table(kind)
    methods = list(_methods(kind))
    yield from methods
    if methods:
        yield ""


def field_table(kind: type) -> Iterator[str]:
    """Yield a table of a class's fields: type, default, and the comment beside each."""
    told = comments(kind)
    yield from ("| field | type | default | meaning |", "|---|---|---|---|")
    for one in fields(kind):
        meaning = one.metadata.get("meaning") or told.get(one.name, "")
        cells = (f"`{one.name}`", f"`{one.type}`", _default(one), meaning)
        yield "| " + " | ".join(_escaped(cell) for cell in cells) + " |"
    yield ""


def _default(one: Field[Any]) -> str:
    if one.default is not MISSING:
        return f"`{_shown(one.default)}`"
    if one.default_factory is MISSING:
        return ""
    made = one.default_factory()
    return f"`{type(made).__name__}()`" if is_dataclass(made) else f"`{_shown(made)}`"


def _shown(value: object) -> str:
    """A value as code; what has no form of its own as dots."""
    text = repr(value)
    return "…" if " at 0x" in text else text


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")


def _methods(kind: type) -> Iterator[str]:
    families = [one for one in kind.__mro__ if one.__module__.startswith("ioprism.")]
    members = {
        name: thing
        for one in families[::-1]
        if one is not Result
        for name, thing in vars(one).items()
    }
    for name, thing in members.items():
        if name.startswith("_") or not (inspect.getdoc(thing) or "").strip():
            continue
        about = (inspect.getdoc(thing) or "").partition("\n")[0]
        if inspect.isfunction(thing):
            shown = " ".join(_signature(thing).split())
            yield f"- `{name}{shown}`: {about}"
        elif isinstance(thing, property) or hasattr(thing, "attrname"):
            yield f"- `{name}`: {about}"


def _prose(text: str) -> Iterator[str]:
    """Turn a docstring into Markdown: sections become lists, examples stay as they are."""
    section = ""
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        if lines and (found := _SECTION.match(lines[0])):
            section = found[1]
            lines = lines[1:]
        elif lines and not lines[0].startswith(" "):
            section = ""
        if not lines:
            continue
        if lines[0].lstrip().startswith(">>>"):
            yield from (
                "```python",
                *(line.partition("  # doctest")[0].strip() for line in lines),
                "```\n",
            )
        elif section:
            yield from _section(section, lines)
        else:
            yield from (*lines, "")


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{title}:\n"
    for line in lines:
        entry = re.match(r"^    (\*{0,2}\w+): (.*)$", line)
        yield f"- `{entry[1]}`: {entry[2]}" if entry and title != "Returns" else f"  {line.strip()}"
    yield ""
