"""The JSON of `ioprism bottlenecks`."""

from __future__ import annotations

from typing import Any

from ioprism.analyses.bottlenecks.result import Bottlenecks


def body(found: Bottlenecks, *, page: int, top: int | None) -> dict[str, Any]:
    """Return the keys of CLI.md for this command."""
    return {**whole_numbers(found.to_dict()), "page": {"number": page, "per_view": top}}


def whole_numbers(value: Any) -> Any:  # noqa: ANN401 - JSON is any nesting
    """Write numbers that are whole without a fraction: counts are sums of parts of calls."""
    if isinstance(value, dict):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value
