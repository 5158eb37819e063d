"""The JSON of `ioprism compare`."""

from __future__ import annotations

from typing import Any

from ioprism.analyses.compare import Comparison
from ioprism.model.trace import Trace
from ioprism.reports import to_json


def body(comparison: Comparison, before: Trace, after: Trace) -> dict[str, Any]:
    """Return the keys of CLI.md for this command."""
    return {
        "before": to_json.source(before),
        "after": to_json.source(after),
        **comparison.to_dict(),
    }
