"""The JSON of `ioprism inspect`."""

from __future__ import annotations

from typing import Any

from ioprism.analyses.bottlenecks.inspection import Inspection
from ioprism.reports.to_json.bottlenecks import whole_numbers


def body(found: Inspection) -> dict[str, Any]:
    """Return the bottleneck, its parts from other perspectives, and its longest calls."""
    plain: dict[str, Any] = whole_numbers(found.to_dict())
    return plain
