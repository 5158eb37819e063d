"""By how much does the user say that clocks are ahead?

Every reading of a trace asks, so nothing here needs a table library.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from ioprism.errors import UsageError

_said: ContextVar[Mapping[str, float] | None] = ContextVar("clock_offsets", default=None)


def said_offsets() -> Mapping[str, float] | None:
    """Return the seconds by which clocks are ahead; None: nothing was said."""
    return _said.get()


@contextmanager
def clock_offsets(offsets: Mapping[str, float] | None) -> Iterator[None]:
    """Say by how many seconds the clocks of hosts are ahead, for traces read meanwhile."""
    token = _said.set(offsets)
    try:
        yield
    finally:
        _said.reset(token)


def read_clock_offsets(path: Path) -> dict[str, float]:
    """Read lines of a host, a rank (`rank3`) or a trace file, and the seconds its clock is ahead.

    Raises:
        UsageError: the file cannot be read, or has a line of another kind.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
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
