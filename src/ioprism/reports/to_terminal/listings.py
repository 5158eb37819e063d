"""What `ioprism formats` and `ioprism rules` show a person."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

from rich.console import Console
from rich.text import Text

from ioprism.diagnosis.rules import wording
from ioprism.diagnosis.rules.rule import Rule
from ioprism.formats.registry import FACTS, Reader, Unavailable
from ioprism.reports.to_terminal import facts, heading, table
from ioprism.reports.to_terminal.causes import STYLES
from ioprism.settings import Thresholds


def show_formats(known: Sequence[Reader | Unavailable], console: Console) -> None:
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


def show_rules(rules: Iterable[Rule], console: Console) -> None:
    """Print every rule with its level and what other tools call it."""
    heading(console, "Rules of `ioprism insights`")
    rows = [
        (
            rule.code,
            Text(rule.level.value, style=STYLES[rule.level]),
            Text(wording.question(rule.advice, rule.direction)),
            ", ".join(alias.partition(":")[2] for alias in rule.aliases),
        )
        for rule in rules
    ]
    table(console, ("code", "level", "asks", "Drishti"), rows)


def show_thresholds(console: Console) -> None:
    """Print every threshold with its default."""
    heading(console, "Thresholds (change them with `ioprism insights --thresholds FILE.toml`)")
    rows = [
        (limit.name, f"{limit.default:.12g} {limit.metadata['unit']}", limit.metadata["meaning"])
        for limit in fields(Thresholds)
    ]
    table(console, ("name", "default", "meaning"), rows)
