"""The JSON of `ioprism phases`."""

from __future__ import annotations

from typing import Any

from ioprism.analyses.phases import Phases


def body(found: Phases) -> dict[str, Any]:
    """Return the keys of CLI.md for this command."""
    return found.to_dict()
