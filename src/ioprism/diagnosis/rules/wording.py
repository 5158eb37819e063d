"""The texts of findings: titles and recommendations, from files that need no Python."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.rules.circumstances import circumstances, log_values
from ioprism.model.quantities import quantity
from ioprism.model.verdict import Recommendation

FOLDER = Path(__file__).parent / "advice"
SNIPPETS = FOLDER / "snippets"
# What the list of rules says where findings have values of their log.
USUAL = {"request_size": "1 MiB", "mean_request": "less"}

_ONE_OF_MANY = re.compile(r"(?<![\d.,])1 ([a-z]+[a-rt-z])s\b")  # "1 files", but not "1 class"
_PAST = {"read": "read", "write": "written"}
_OPPOSITE = {"read": "write", "write": "read"}


@cache
def texts(name: str) -> Mapping[str, Any]:
    """Return the texts of one advice file."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def question(name: str, direction: str | None) -> str:
    """Return what a rule asks."""
    return _fill(str(texts(name)["question"]), _direction_words(direction))


def advice_lines(name: str, direction: str | None) -> list[str]:
    """Return the first line of everything a rule may recommend, each once."""
    entries = texts(name).get("recommendation", ())
    usual = {**USUAL, **_direction_words(direction)}
    fitting = (entry for entry in entries if entry.get("direction", direction) == direction)
    filled = (_fill(entry["text"], usual) for entry in fitting)
    return list(dict.fromkeys(text.partition("\n")[0] for text in filled))


def title(
    name: str, numbers: Mapping[str, float], *, direction: str | None, words: Mapping[str, str]
) -> str:
    """Return a finding's sentence with its numbers in it."""
    shown = {key: quantity(key, value) for key, value in numbers.items()}
    said = _fill(str(texts(name)["title"]), {**_direction_words(direction), **shown, **words})
    return _ONE_OF_MANY.sub(r"1 \1", said)


def _direction_words(direction: str | None) -> dict[str, str]:
    """The words for a direction and for the other one; empty where a rule has no direction."""
    opposite = _OPPOSITE.get(direction or "", "")
    return {
        "direction": direction or "",
        "past": _PAST.get(direction or "", ""),
        "opposite": opposite,
        "opposite_past": _PAST.get(opposite, ""),
    }


def _fill(text: str, values: Mapping[str, str]) -> str:
    for key, value in values.items():
        text = text.replace("{" + key + "}", value)
    return text


def recommendations(
    name: str, evidence: Evidence, files: Sequence[int], *, direction: str | None
) -> tuple[Recommendation, ...]:
    """Return what fits the job: no advice for a file system or an interface it does not use."""
    present = circumstances(evidence, files)
    fitting = [
        entry
        for entry in texts(name).get("recommendation", ())
        if present >= set(entry.get("when", ()))
        and not present & set(entry.get("unless", ()))
        and entry.get("direction", direction) == direction
    ]
    if not fitting:
        return ()
    filled = {**log_values(evidence, files, direction), **_direction_words(direction)}
    return tuple(
        Recommendation(_fill(entry["text"], filled), _snippet(entry, filled)) for entry in fitting
    )


def _snippet(entry: Mapping[str, Any], values: Mapping[str, str]) -> str | None:
    if "snippet" not in entry:
        return None
    return _fill(_code(_fill(entry["snippet"], values)), values)


@cache
def _code(name: str) -> str:
    return (SNIPPETS / name).read_text(encoding="utf-8").rstrip()
