"""What a diagnosis knows of files: names, file systems and layout, from a trace or a log."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ioprism.diagnosis.limits import MAJORITY, NEARLY_ALL
from ioprism.diagnosis.rows import Flags, Ints
from ioprism.model.usage import OF_PROGRAMS, OF_SYSTEM, FileFacts

MAX_PATHS = 20_000  # paths that a common directory is looked for in

# File systems whose page cache all processes of a node share, without locks between nodes.
LOCAL = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "tmpfs", "ramfs", "f2fs", "overlay"}
)
_program = re.compile(f"{OF_SYSTEM}|{OF_PROGRAMS}").search


@dataclass(frozen=True, slots=True, eq=False)
class Files:
    """Files by their row."""

    path_of: Callable[[int], str | None]
    filesystem_of: Callable[[int], str | None]
    targets_of: Mapping[int, Sequence[int]]  # rows whose layout is known
    stripe_size: Ints  # bytes by row; 0 unknown
    numbers: Ints | None = None  # the trace's number of each row, ascending; None: the row

    def rows(self, numbers: Sequence[int]) -> Ints:
        """Return the rows of files that the trace numbers so."""
        wanted = np.asarray(list(numbers), np.int64)
        if self.numbers is None or not len(self.numbers):
            return wanted
        place = np.minimum(np.searchsorted(self.numbers, wanted), len(self.numbers) - 1)
        return np.asarray(place[self.numbers[place] == wanted], np.int64)

    @property
    def striped_rows(self) -> Ints:
        """Rows whose layout is known."""
        rows = (r for r, names in self.targets_of.items() if len(names) and self.stripe_size[r] > 0)
        return np.array(sorted(rows), np.int64)

    def path(self, file: int) -> str:
        """The name of a file; empty where it is unknown."""
        return (self.path_of(file) or "") if file >= 0 else ""

    def targets(self, file: int) -> Sequence[int]:
        """The targets that a file is striped over; none where its layout is unknown."""
        return self.targets_of.get(file, ())

    def block_sizes(self, file: Ints, default: int) -> Ints:
        """The lock block of each file: its stripe, or a default."""
        known = np.where(file >= 0, self.stripe_size[np.maximum(file, 0)], 0)
        return np.where(known > 0, known, default)

    def is_local(self, file: int) -> bool:
        """Whether the file is on a file system of one node."""
        return self.filesystem_of(file) in LOCAL

    def of_programs(self, files: Ints) -> set[int]:
        """Which of these files belong to programs and the system, by their names."""
        return {int(file) for file in files if _program(self.path(int(file)))}

    def common_directory(self, files: Sequence[int], weights: Sequence[float]) -> str:
        """The deepest directory that holds most of these files, by weight."""
        return common_directory([self.path(file) for file in files], weights)


def files_of_log(facts: FileFacts, count: int) -> Files:
    """Return the files of a log of counters."""
    size = np.zeros(max(count, max(facts.striping, default=-1) + 1, 1), np.int64)
    for file, striping in facts.striping.items():
        size[file] = striping.size
    return Files(
        facts.path,
        facts.filesystem,
        {file: striping.targets for file, striping in facts.striping.items()},
        size,
    )


def common_directory(paths: Sequence[str], weights: Sequence[float] | None = None) -> str:
    """Return the deepest directory that nine of ten paths are below; empty if there is none.

    Where that is the root, the deepest one that half of them are below. Paths count by weight.
    """
    parents = [_parent(path) for path in paths[:MAX_PATHS]]
    by_weight = [1.0] * len(parents) if weights is None else list(weights[:MAX_PATHS])
    deepest = _deepest(parents, by_weight, NEARLY_ALL)
    return deepest if deepest not in ("", "/") else _deepest(parents, by_weight, MAJORITY)


def _parent(path: str) -> str:
    name = posixpath.normpath(posixpath.dirname(path))
    if name.startswith("/"):
        return "/" + name.lstrip("/")
    return "" if name == "." else name


def _deepest(parents: Sequence[str], weights: Sequence[float], share: float) -> str:
    total = sum(weights)
    absolute = sum(w for p, w in zip(parents, weights, strict=True) if p.startswith("/"))
    best = "/" if absolute > 0 and absolute >= share * total else ""
    while True:
        below = _children(parents, weights, best)
        name = max(below, key=lambda child: below[child], default=None)
        if name is None or below[name] < share * total:
            return best
        best = name


def _children(
    directories: Sequence[str], weights: Sequence[float], parent: str
) -> dict[str, float]:
    """The weight below each sub-directory of a directory."""
    sums: dict[str, float] = {}
    prefix = parent.rstrip("/") + "/" if parent else ""
    for name, weight in zip(directories, weights, strict=True):
        below = name[len(prefix) :].split("/", 1)[0] if name.startswith(prefix) else ""
        if below:
            sums[prefix + below] = sums.get(prefix + below, 0.0) + weight
    return sums


def is_in(values: Ints, chosen: set[int]) -> Flags:
    """Which values are among some others."""
    return np.isin(values, np.fromiter(chosen, np.int64, len(chosen)))
