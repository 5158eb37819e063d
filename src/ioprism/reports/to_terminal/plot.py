"""A small picture of a signal in block characters."""

from __future__ import annotations

import numpy as np

from ioprism.model.signal import FloatArray, Signal

BLOCKS = " ▁▂▃▄▅▆▇█"


def columns(signal: Signal, *, width: int) -> FloatArray:
    """Return the highest value in each of `width` equal stretches of a signal."""
    edges = np.linspace(0, len(signal.values), width + 1)
    starts = np.minimum(edges[:-1].astype(int), len(signal.values) - 1)
    return np.maximum.reduceat(signal.values, starts)


def bars(heights: FloatArray, *, rows: int) -> list[str]:
    """Draw heights as columns of blocks, the top row first."""
    highest = float(heights.max()) if len(heights) else 0.0
    eighths = np.zeros(len(heights), int)
    if highest > 0:
        eighths = np.rint(np.maximum(heights, 0.0) / highest * rows * 8).astype(int)
        eighths = np.where((heights > 0) & (eighths == 0), 1, eighths)
    return [
        "".join(BLOCKS[min(8, max(0, e - 8 * row))] for e in eighths)
        for row in range(rows - 1, -1, -1)
    ]
