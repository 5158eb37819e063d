"""What `ioprism formats` shows a person."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from ioprism.formats.registry import FACTS, Reader, Unavailable
from ioprism.reports.to_terminal import facts, heading


def show(known: Sequence[Reader | Unavailable], console: Console) -> None:
    """Print each format with what it can tell, then what the words mean."""
    for reader in known:
        if isinstance(reader, Unavailable):
            heading(console, reader.name)
            facts(console, [("not usable", f"the package {reader.missing} is not installed")])
        else:
            heading(console, f"{reader.name}: {reader.title}")
            recorded = [fact for fact in FACTS if fact in reader.tells]
            missing = [fact for fact in FACTS if fact not in reader.tells]
            facts(
                console,
                [("recorded", ", ".join(recorded)), ("not recorded", ", ".join(missing) or "-")],
            )
    heading(console, "What these terms mean")
    facts(console, FACTS.items())
