"""What `ioprism rules` shows a person."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from rich.console import Console
from rich.text import Text

from ioprism.diagnosis.rules import wording
from ioprism.diagnosis.rules.rule import Rule
from ioprism.reports.to_terminal import heading, table
from ioprism.reports.to_terminal.causes import STYLES
from ioprism.settings import Thresholds


def show(rules: Iterable[Rule], console: Console) -> None:
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
