"""The JSON of `ioprism characterise --ceiling`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ioprism.analyses.ceiling import Comparison


def body(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return one entry per benchmark."""
    return {
        "ceilings": [
            {
                "tool": one.ceiling.tool,
                "path": str(one.ceiling.path),
                "processes": one.ceiling.processes,
                "request_size": one.ceiling.request_size,
                "relations": [
                    {
                        "operation": relation.operation,
                        "measure": relation.measure,
                        "job": relation.job,
                        "ceiling": relation.ceiling,
                        "share": relation.share,
                    }
                    for relation in one.relations
                ],
            }
            for one in comparisons
        ]
    }
