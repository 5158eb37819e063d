"""The values that titles and advice of a cause are filled with, as text."""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import dirname
from typing import Any

from ioprism.analyses.diagnosis.directories import common_directory
from ioprism.analyses.diagnosis.result import COUNTS, Cause
from ioprism.model.quantities import kind_of, quantity
from ioprism.model.usage import FileFacts
from ioprism.rules.causes.circumstances import Surroundings
from ioprism.text import printable
from ioprism.units import format_bytes, format_count

MOST_NAMED = 8
BLOCK = 2**20  # bytes: what small requests are joined to


def values(cause: Cause, around: Surroundings) -> dict[str, str]:
    """Return every value that the words of a cause may name."""
    known: dict[str, Any] = {
        "ranks": around.job.ranks or 1,
        "nodes": around.nodes,
        **cause.facts,
        **cause.culprit,
    }
    stripe = int(known.get("stripe_size") or _stripe_size(around.files, str(known.get("file", ""))))
    shown = {key: _shown(key, value) for key, value in known.items()}
    where = known.get("directory")
    size = float(known.get("bytes_per_request", BLOCK) or BLOCK)
    return {
        "directory": dirname(str(known.get("file", ""))) or _striped_directory(around.files),
        "other_targets": _other_targets(cause, around.files),
        **shown,
        "ratio": _ratio(cause),
        "by_ranks": _whose(cause, "by"),
        "of_ranks": _whose(cause, "of"),
        "calls_of": f"{known['direction']}s" if known.get("direction") else "requests",
        "stripe": format_bytes(stripe),
        "stripe_bytes": str(stripe),
        "stripe_short": f"{stripe >> 20}M" if stripe % 2**20 == 0 else f"{stripe >> 10}K",
        "where": f", below {printable(str(where))}" if where else _of_file(cause),
        "joined": format_count(max(2.0, BLOCK / max(1.0, size))),
    }


def _shown(key: str, value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        named = ", ".join(str(item) for item in value[:MOST_NAMED])
        return named + (f" and {len(value) - MOST_NAMED} more" if len(value) > MOST_NAMED else "")
    if key == "read" and isinstance(value, int | float):
        return format_bytes(value)  # findings count calls under this name
    if key in (*COUNTS, "files") and isinstance(value, int | float):
        return format_count(value)
    if kind_of(key) in ("bytes", "seconds"):
        return quantity(key, value)
    if isinstance(value, float):
        return format_count(value) if value >= 10 or value.is_integer() else f"{value:.1f}"
    return printable(str(value))


def _of_file(cause: Cause) -> str:
    return f", on {printable(str(cause.culprit['file']))}" if cause.culprit.get("file") else ""


def _whose(cause: Cause, word: str) -> str:
    """Whose calls they are: of an application of a workflow, or of a few ranks."""
    if cause.culprit.get("application"):
        return f" {word} {printable(str(cause.culprit['application']))}"
    ranks = cause.culprit.get("ranks", ())
    several = "s" if len(ranks) > 1 else ""
    return f" {word} rank{several} {_shown('ranks', ranks)}" if ranks else ""


def _ratio(cause: Cause) -> str:
    slow, peers = cause.contrast.slow, cause.contrast.peers
    if peers is None or not slow.median_seconds or not peers.median_seconds:
        return "several"
    return f"{slow.median_seconds / peers.median_seconds:.1f}"


def _stripe_size(files: FileFacts, path: str) -> int:
    sizes = (one.size for file, one in files.striping.items() if files.paths.get(file) == path)
    size = next(sizes, 0)
    return size if size > 0 else BLOCK


def _striped_directory(files: FileFacts) -> str:
    """Where the files lie whose layout is known."""
    paths = [files.paths[file] for file, one in files.striping.items() if one.targets]
    return printable(common_directory(paths)) or "OUTPUT_DIRECTORY"


def _other_targets(cause: Cause, files: FileFacts) -> str:
    """Targets that the job used and that are not to blame."""
    slow = set(cause.culprit.get("targets", [cause.culprit.get("target")]))
    used = sorted({name for striping in files.striping.values() for name in striping.targets})
    return ",".join(str(name) for name in used if name not in slow) or "OTHERS"
