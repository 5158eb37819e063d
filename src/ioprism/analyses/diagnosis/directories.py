"""The directory that most of some files lie below."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

MOST_PATHS = 20_000  # that are looked at
NEARLY_ALL = 0.9


def common_directory(paths: Sequence[str]) -> str:
    """Return the deepest directory that nine of ten paths lie below; empty if there is none."""
    parents = [posixpath.dirname(path) for path in paths[:MOST_PATHS]]
    best = "/" if parents and all(parent.startswith("/") for parent in parents) else ""
    while True:
        below = _children(parents, best)
        name = max(below, key=lambda child: below[child], default=None)
        if name is None or below[name] < NEARLY_ALL * len(parents):
            return best
        best = name


def _children(directories: Sequence[str], parent: str) -> dict[str, int]:
    """How many lie below each sub-directory of a directory."""
    found: dict[str, int] = {}
    prefix = parent.rstrip("/") + "/" if parent else ""
    for name in directories:
        if name.startswith(prefix) and name != parent:
            child = prefix + name[len(prefix) :].split("/", 1)[0]
            found[child] = found.get(child, 0) + 1
    return found
