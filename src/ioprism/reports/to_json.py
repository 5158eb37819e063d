"""Results as JSON documents: plain numbers in base units, the contract people script against."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from ioprism.model.pseudonyms import chosen_pseudonyms
from ioprism.model.trace import Trace
from ioprism.text import name_of
from ioprism.version import __version__

SCHEMA = 2
# Characters: indenting takes the standard library 40 ns each, as long as loading msgspec here.
LARGE = 2**18
BATCH = 10_000  # items of a list that are written at a time


def document(trace: Trace, body: Mapping[str, Any]) -> str:
    """Return one JSON document: the version, the source, and the result."""
    return plain_document({"source": source(trace), **body})


def document_of(
    body: Mapping[str, Any],
    *,
    paths: Iterable[Path],
    format_name: str,
    warnings: Iterable[str] = (),
) -> str:
    """Return one JSON document of what was read from files that are no single trace."""
    return plain_document({"source": _source(paths, format_name, warnings), **body})


def source(trace: Trace) -> dict[str, Any]:
    """Return where an answer comes from, and what is missing there."""
    return _source(trace.paths, trace.format, trace.completeness.warnings)


def between(before: Trace, after: Trace) -> dict[str, Any]:
    """Return where the two sides of a comparison come from."""
    return {"before": source(before), "after": source(after)}


def _source(paths: Iterable[Path], format_name: str, warnings: Iterable[str]) -> dict[str, Any]:
    given, said, names = list(paths), list(warnings), chosen_pseudonyms()
    if names is not None:
        said = [names.text(message, given) for message in said]
        given = [names.source(path) for path in given]
    return {"paths": [*map(name_of, given)], "format": format_name, "warnings": said}


def plain_document(body: Mapping[str, Any]) -> str:
    """Return a JSON document that no trace stands behind."""
    return dump({"ioprism": __version__, "schema": SCHEMA, **body})


def document_pieces(trace: Trace, body: Mapping[str, Any]) -> Iterator[str]:
    """Return what `document` does in pieces; iterators in the body are lists read meanwhile."""
    return _pieces({"ioprism": __version__, "schema": SCHEMA, "source": source(trace), **body})


def dump(value: Mapping[str, Any]) -> str:
    """Return JSON in ASCII, so that no name in it can move a terminal's cursor."""
    return "".join(_pieces(value))


def line(value: Any) -> str:  # noqa: ANN401 - JSON is any nesting
    """Return JSON on one line, in ASCII."""
    return json.dumps(_plain(value), allow_nan=False).replace("\x7f", "\\u007f")


def _pieces(value: Any, new_line: str = "\n") -> Iterator[str]:  # noqa: ANN401 - JSON is any nesting
    """Yield indented JSON, long lists in batches, so that no list is in memory as text."""
    if isinstance(value, Mapping) and value:
        for number, (key, item) in enumerate(value.items()):
            yield f"{',' if number else '{'}{new_line}  {line(str(key))}: "
            yield from _pieces(item, f"{new_line}  ")
        yield f"{new_line}}}"
    elif isinstance(value, list | tuple | Iterator):
        items, separator = iter(value), "["
        while batch := list(islice(items, BATCH)):
            inside = _indented(batch).removeprefix("[").removesuffix("\n]")
            yield separator + inside.replace("\n", new_line)
            separator = ","
        yield "[]" if separator == "[" else f"{new_line}]"
    else:
        yield line(value)


def _indented(value: list[Any]) -> str:
    text = line(value)
    if len(text) > LARGE:
        import msgspec  # 10 ms that a small answer has no use for

        with suppress(msgspec.DecodeError):  # half of a surrogate pair, in a name
            return str(msgspec.json.format(text, indent=2))
    return json.dumps(json.loads(text), indent=2).replace("\x7f", "\\u007f")


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON is any nesting
    if type(value) in (str, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
