"""The texts of findings: titles and recommendations, from files that need no Python."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ioprism.analyses.evidence import Evidence
from ioprism.model.finding import Recommendation
from ioprism.rules.circumstances import circumstances, log_values
from ioprism.units import format_bytes, format_count, format_seconds

FOLDER = Path(__file__).parent / "advice"
SNIPPETS = FOLDER / "snippets"
# What the list of rules says where findings have values of their log.
USUAL = {"request_size": "1 MiB", "mean_request": "less"}

_SHARES = frozenset({"share", "imbalance", "consecutive_share", "io_share"})
_SECONDS = frozenset({"seconds", "storage", "slowest", "middle", "mean_seconds", "mean_gap"})
_BYTES = frozenset(
    {"bytes", "others_bytes", "own_bytes", "redundant", "next_bytes", "most_bytes", "mean_bytes",
     "bytes_per_rank", "bytes_per_phase", "mean_size", "small_bytes", "small_total",
     "tiny_file_bytes", "written", "alignment"}
)  # fmt: skip


@cache
def texts(name: str) -> Mapping[str, Any]:
    """Return the texts of one advice file."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def question(name: str, direction: str | None) -> str:
    """Return what a rule asks."""
    return _filled(str(texts(name)["question"]), {"direction": direction or ""})


def advice_lines(name: str, direction: str | None) -> list[str]:
    """Return the first line of everything a rule may recommend, each once."""
    entries = texts(name).get("recommendation", ())
    usual = {**USUAL, "direction": direction or ""}
    filled = (_filled(entry["text"], usual) for entry in entries)
    return list(dict.fromkeys(text.partition("\n")[0] for text in filled))


def title(
    name: str, numbers: Mapping[str, float], *, direction: str | None, words: Mapping[str, str]
) -> str:
    """Return a finding's sentence with its numbers in it."""
    shown = {key: _shown(key, value) for key, value in numbers.items()}
    past = {"read": "read", "write": "written"}.get(direction or "", "")
    return _filled(
        str(texts(name)["title"]), {"direction": direction or "", "past": past, **shown, **words}
    )


def _shown(key: str, value: float) -> str:
    if key in _SHARES:
        return f"{value:.0%}" if value < 0.995 or value >= 1 else f"{value:.1%}"
    if key in _SECONDS:
        return format_seconds(value)
    if key in _BYTES:
        return format_bytes(value)
    return f"{value:.1f}" if key in ("factor", "ratio") else format_count(value)


def _filled(text: str, values: Mapping[str, str]) -> str:
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
    filled = {**log_values(evidence, files, direction), "direction": direction or ""}
    return tuple(
        Recommendation(_filled(entry["text"], filled), _snippet(entry, filled)) for entry in fitting
    )


def _snippet(entry: Mapping[str, Any], values: Mapping[str, str]) -> str | None:
    if "snippet" not in entry:
        return None
    return _filled(_code(_filled(entry["snippet"], values)), values)


@cache
def _code(name: str) -> str:
    return (SNIPPETS / name).read_text(encoding="utf-8").rstrip()
