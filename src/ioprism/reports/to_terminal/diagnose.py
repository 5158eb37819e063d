"""What `ioprism diagnose` shows a person."""

from __future__ import annotations

from rich.console import Console

from ioprism.analyses.diagnosis.result import Diagnosis


def show(found: Diagnosis, console: Console, *, top: int | None = None) -> None:
    """Print the answer."""
    console.print(found.to_dict())
