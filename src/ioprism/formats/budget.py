"""How much memory an input may take: bounded by the size of the input itself.

What streams may be any size: calls are read in pieces, however many there are. What has to be
in memory together (tables of names, inflated blobs, lists that were written in a short form) is
refused before it is allocated if it needs more than `BASE` and `PER_BYTE` times the bytes of the
file. Real inputs stay far below: text and logs compress to a tenth or a twentieth.

`ioprism --reading-budget SIZE`, or the variable IOPRISM_READING_BUDGET, sets another limit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ioprism.errors import OverBudgetError
from ioprism.units import parse_bytes

VARIABLE = "IOPRISM_READING_BUDGET"
BASE = 256 * 2**20  # bytes that any input may take
PER_BYTE = 200  # bytes of memory for each byte of the file
BLOCK = 512  # bytes, in which stat(2) counts what a file takes on the disk


class Budget:
    """Counts what is held for one input."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.allowed = allowance(source)
        self.held = 0

    def take(self, size: int, what: str) -> None:
        """Count what is about to be allocated, in bytes.

        Raises:
            OverBudgetError: that would be more than the input may take.
        """
        self.held += size
        if self.held > self.allowed:
            raise OverBudgetError(self.source, what=what, needed=self.held, allowed=self.allowed)


@contextmanager
def reading_budget(size: int) -> Iterator[None]:
    """Set the limit, in bytes, here and in processes that are started meanwhile."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(size)
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def allowance(source: Path) -> int:
    """Return how many bytes of memory a file may take.

    Raises:
        UsageError: the variable is set, but not to a size.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return parse_bytes(chosen)
    status = source.stat()
    return BASE + PER_BYTE * min(status.st_size, BLOCK * status.st_blocks)  # holes do not count
