"""The JSON of `ioprism rules`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from ioprism.diagnosis.rules import wording
from ioprism.diagnosis.rules.rule import Rule
from ioprism.settings import Thresholds


def body(rules: Iterable[Rule]) -> dict[str, Any]:
    """Return every rule and every threshold."""
    return {
        "rules": [
            {
                "code": rule.code,
                "level": rule.level.value,
                "interface": rule.interface,
                "question": wording.question(rule.advice, rule.direction),
                "thresholds": list(rule.thresholds),
                "aliases": list(rule.aliases),
                "advice": f"{rule.advice}.toml",
            }
            for rule in rules
        ],
        "thresholds": [
            {"name": limit.name, "default": limit.default, **limit.metadata}
            for limit in fields(Thresholds)
        ],
    }
