"""The JSON of `ioprism inspect`."""

from __future__ import annotations

from typing import Any

from ioprism.analyses.bottlenecks.inspection import Inspection
from ioprism.pipeline.finding_inspection import FindingInspection
from ioprism.reports.to_json.bottlenecks import whole_numbers


def body(found: Inspection | FindingInspection) -> dict[str, Any]:
    """Return the bottleneck or finding, its parts, and its longest calls."""
    plain: dict[str, Any] = whole_numbers(found.to_dict())
    return plain
