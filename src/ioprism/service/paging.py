"""How does a long answer fit a client that reads a page at a time?

Lists that are longer than a page are cut; the answer says how long each was, and with which
offset to ask for more. Keys and the order of lists stay as the command prints them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ioprism.reports import to_json

MOST_CHARACTERS = 40_000
LONGEST_TEXT = 2_000
PAGE = 20
FEWEST = 4  # items of a page: pairs and other short lists stay whole


@dataclass(slots=True)
class _Cutter:
    offset: int
    limit: int
    totals: dict[str, int] = field(default_factory=dict)

    def cut(self, value: Any, path: str) -> Any:  # noqa: ANN401 - JSON is any nesting
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            return f"{value[:LONGEST_TEXT]}…"
        if isinstance(value, Mapping):
            return {key: self.cut(item, f"{path}.{key}") for key, item in value.items()}
        if isinstance(value, list | tuple):
            return self._items(value, path)
        return value

    def _items(self, items: list[Any] | tuple[Any, ...], path: str) -> list[Any]:
        first = 0
        if len(items) > self.limit:
            self.totals[path] = len(items)
            first = self.offset
        shown = items[first : first + self.limit]
        return [self.cut(item, f"{path}[{first + place}]") for place, item in enumerate(shown)]


def page(body: Mapping[str, Any], *, offset: int = 0, limit: int = PAGE) -> str:
    """Return one page of an answer as JSON; pages that are too long get fewer items."""
    limit = max(limit, FEWEST)
    while True:
        cutter = _Cutter(offset, limit)
        shown = cutter.cut(body, "$")
        whole = to_json.plain_document({**shown, "page": _page(cutter)})
        if len(whole) <= MOST_CHARACTERS or limit == FEWEST:
            return whole
        limit = max(FEWEST, limit // 2)


def _page(cutter: _Cutter) -> dict[str, Any]:
    later = any(total > cutter.offset + cutter.limit for total in cutter.totals.values())
    return {
        "offset": cutter.offset,
        "limit": cutter.limit,
        "cut": cutter.totals,
        "next_offset": cutter.offset + cutter.limit if later else None,
    }
