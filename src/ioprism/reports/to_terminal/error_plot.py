"""Draw relative errors, sorted by measured time, with characters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

COLUMNS = 72
LEVELS = (0.5, 0.4, 0.3, 0.2, 0.1, 0.0, -0.1, -0.2, -0.3, -0.4, -0.5)


def plot(errors: npt.NDArray[np.float64]) -> list[str]:
    """Return one line for each level of error; a dot where a sample lies, # for several."""
    columns = min(COLUMNS, len(errors))
    counts = np.zeros((len(LEVELS), columns), dtype=np.int64)
    place = np.arange(len(errors)) * columns // len(errors)
    step = LEVELS[0] - LEVELS[1]
    level = np.clip(np.rint((LEVELS[0] - errors) / step), 0, len(LEVELS) - 1).astype(np.int64)
    np.add.at(counts, (level, place), 1)
    return [
        f"{height:+5.0%} {'┼' if height == 0 else '│'}{_row(row, axis=height == 0)}".rstrip()
        for height, row in zip(LEVELS, counts, strict=True)
    ]


def _row(counts: npt.NDArray[np.int64], *, axis: bool) -> str:
    empty = "─" if axis else " "
    return "".join(empty if not n else "·" if n == 1 else "•" if n < 4 else "#" for n in counts)
