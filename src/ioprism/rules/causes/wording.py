"""Titles and advice of causes, with values from the log, from files that need no Python."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ioprism.analyses.diagnosis.result import Cause, Diagnosis
from ioprism.model.finding import Recommendation
from ioprism.rules.causes.circumstances import Surroundings, circumstances
from ioprism.rules.causes.symptoms import explained
from ioprism.rules.causes.values import values

FOLDER = Path(__file__).parent / "texts"


@cache
def texts(code: str) -> Mapping[str, Any]:
    """Return the words for a cause; those of a plug-in tell theirs in their facts, or have none."""
    file = FOLDER / f"{code}.toml"
    if not file.is_file():
        return {"title": code, "subject": code, "groups": [code, "peers"]}
    return tomllib.loads(file.read_text(encoding="utf-8"))


def worded(found: Diagnosis, around: Surroundings, findings: Iterable[str] = ()) -> Diagnosis:
    """Return the diagnosis with title, advice and symptoms for every cause.

    Each finding is told under one cause only: the first that explains it.
    """
    left = dict.fromkeys(findings)
    causes = []
    for cause in found.causes:
        known = explained(
            cause.code, cause.facts.get("direction"), of_ranks="ranks" in cause.culprit
        )
        symptoms = tuple(code for code in known if code in left)
        for code in symptoms:
            del left[code]
        causes.append(_worded(cause, around, symptoms))
    return replace(found, causes=tuple(causes))


def _worded(cause: Cause, around: Surroundings, symptoms: tuple[str, ...]) -> Cause:
    words = texts(cause.code)
    filled = values(cause, around)
    present = circumstances(cause, around)
    advice = tuple(
        Recommendation(fill(entry["text"], filled), _code(entry, filled))
        for entry in words.get("recommendation", ())
        if present >= set(entry.get("when", ())) and not present & set(entry.get("unless", ()))
    )
    advice += tuple(Recommendation(text, None) for text in cause.facts.get("advice", ()))
    one = "_of_one" if len(cause.culprit.get("ranks", ())) == 1 else ""
    title, subject = (
        str(cause.facts.get(key) or fill(words.get(f"{key}{one}", words[key]), filled))
        for key in ("title", "subject")
    )
    groups = tuple(str(group) for group in words["groups"])
    return replace(
        cause,
        title=title,
        advice=advice,
        symptoms=symptoms,
        facts={**cause.facts, "subject": subject, "groups": groups},
    )


def _code(entry: Mapping[str, Any], filled: Mapping[str, str]) -> str | None:
    return fill(entry["code"], filled) if "code" in entry else None


def fill(text: str, filled: Mapping[str, str]) -> str:
    """Put values in the place of their names."""
    for key, value in filled.items():
        text = text.replace("{" + key + "}", value)
    return text
