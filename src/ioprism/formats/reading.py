"""How traces are read: on whose clocks, and by which workers.

Every command that reads a trace needs this module, so it does not load a table library.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ioprism.errors import UsageError
from ioprism.text import read_small_text

Item = TypeVar("Item")
Result = TypeVar("Result")
Workers = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

THREADS = max(1, min(8, os.cpu_count() or 1))


@dataclass(frozen=True, slots=True)
class Reading:
    """What the user knows about the clocks, and who looks through the files."""

    clock_offsets: Mapping[str, float] | None = None  # seconds ahead, by host, rank or file
    workers: Workers | None = None  # None: threads of this process
    indexes_beside_files: bool = False  # where indexes of compressed files are kept

    def each(self, look: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return what `look` returns for each item, in their order."""
        if self.workers is not None:
            return self.workers(look, items)
        if THREADS == 1 or len(items) == 1:
            return list(map(look, items))
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(THREADS, thread_name_prefix="survey") as pool:
            return list(pool.map(look, items))


def read_clock_offsets(path: Path) -> dict[str, float]:
    """Read lines of a host, a rank (`rank3`) or a trace file, and the seconds its clock is ahead.

    Raises:
        UsageError: the file cannot be read, or has a line of another kind.
    """
    try:
        lines = read_small_text(path).splitlines()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path}: the clock offsets cannot be read ({error}).\n"
            "Hint: give a text file with lines such as `node2 60.0`."
        ) from error
    offsets = {}
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            host, ahead = words
            offsets[host] = float(ahead)
            if not math.isfinite(offsets[host]):
                raise ValueError
        except ValueError:
            raise UsageError(
                f"{path}, line {number}: this is not a host and a number of seconds: {line!r}.\n"
                "Hint: write lines such as `node2 60.0`."
            ) from None
    return offsets
