"""The JSON of `ioprism diagnose`."""

from __future__ import annotations

from typing import Any

from ioprism.analyses.diagnosis.result import Diagnosis


def body(diagnosis: Diagnosis, *, top: int | None = None) -> dict[str, Any]:
    """Return the keys of CLI.md for this command; the ledger stays whole with `top`."""
    whole = diagnosis.to_dict()
    return {**whole, "causes": whole["causes"][:top]}
