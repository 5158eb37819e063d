"""The directory that most of some files lie below."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

MOST_PATHS = 20_000  # that are looked at
NEARLY_ALL, HALF = 0.9, 0.5


def common_directory(paths: Sequence[str], seconds: Sequence[float] | None = None) -> str:
    """Return the deepest directory that nine of ten paths lie below; empty if there is none.

    Where that is the root, the deepest one that half of them lie below. Paths count by the
    seconds that are spent on them, where these are given.
    """
    parents = [_parent(path) for path in paths[:MOST_PATHS]]
    weights = [1.0] * len(parents) if seconds is None else list(seconds[:MOST_PATHS])
    found = _deepest(parents, weights, NEARLY_ALL)
    return found if found not in ("", "/") else _deepest(parents, weights, HALF)


def _parent(path: str) -> str:
    name = posixpath.normpath(posixpath.dirname(path))
    if name.startswith("/"):
        return "/" + name.lstrip("/")
    return "" if name == "." else name


def _deepest(parents: Sequence[str], weights: Sequence[float], share: float) -> str:
    absolute = sum(w for p, w in zip(parents, weights, strict=True) if p.startswith("/"))
    best = "/" if absolute > 0 and absolute >= share * sum(weights) else ""
    while True:
        below = _children(parents, weights, best)
        name = max(below, key=lambda child: below[child], default=None)
        if name is None or below[name] < share * sum(weights):
            return best
        best = name


def _children(
    directories: Sequence[str], weights: Sequence[float], parent: str
) -> dict[str, float]:
    """How much lies below each sub-directory of a directory."""
    found: dict[str, float] = {}
    prefix = parent.rstrip("/") + "/" if parent else ""
    for name, weight in zip(directories, weights, strict=True):
        below = name[len(prefix) :].split("/", 1)[0] if name.startswith(prefix) else ""
        if below:
            found[prefix + below] = found.get(prefix + below, 0.0) + weight
    return found
